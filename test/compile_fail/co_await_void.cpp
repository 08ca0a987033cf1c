// A function that gives nothing, called where an awaitable is expected.
// expect[clang]: :9:12: error: .*'void'
// expect[gcc]: :9:13: error: invalid use of void expression
// at-most: 4 lines
#include <weft/weft.hpp>

void f();
weft::task<> g() {
  co_await f();
  co_return;
}
