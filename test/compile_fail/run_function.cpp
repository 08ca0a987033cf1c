// expect: a function is no awaitable, but what it gives is: call it, f\(\)
// at-most: 10 lines
#include <weft/weft.hpp>

weft::task<> f();

int main() { weft::run(f); }
