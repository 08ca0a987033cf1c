// expect: make\(0\) to make\(n - 1\) are awaited, and what this function gives can't be
// at-most: 10 lines
#include <weft/weft.hpp>

weft::task<> all() {
  co_await weft::when_all(3, [](std::size_t i) { return i; });
  co_return;
}
