// A function that gives nothing, among what is awaited. Only an ellipsis takes it; without one clang lists all overloads.
// expect[clang]: :10:12: error: calling 'when_all<0>' with incomplete return type 'detail::void_is_no_awaitable'
// expect[clang]: \| struct void_is_no_awaitable;  // a call that gives void can't be awaited
// expect[gcc]: :10:28: error: invalid use of void expression
// at-most: 10 lines
#include <weft/weft.hpp>

void f();
weft::task<> g();
void h() { weft::when_all(f(), g()); }
