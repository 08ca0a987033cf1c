// expect: a fiber runs a plain function, and this one gives a task, which nobody would start
#include <weft/fiber.hpp>

weft::task<int> think(int n) { co_return n; }

weft::task<> thinks(weft::scope& s) {
  s.go(think, 7);
  co_return;
}
