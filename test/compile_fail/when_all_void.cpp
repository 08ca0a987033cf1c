// A function that gives nothing, among what is awaited. clang deduces void for each overload, and lists them all.
// expect[clang]: :11:12: error: no matching function for call to 'when_all'
// expect[clang]: cannot convert argument of incomplete type 'void'
// expect[gcc]: :11:28: error: invalid use of void expression
// at-most[clang]: 46 lines
// at-most[gcc]: 4 lines
#include <weft/weft.hpp>

void f();
weft::task<> g();
void h() { weft::when_all(f(), g()); }
