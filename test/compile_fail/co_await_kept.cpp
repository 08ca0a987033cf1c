// expect: this is awaited as an rvalue that is not const: co_await std::move\(x\)
// at-most: 10 lines
#include <weft/weft.hpp>

struct given_away {
  std::suspend_never operator co_await() && { return {}; }
};

weft::task<> waits() {
  given_away x;
  co_await x;
  co_return;
}
