// expect: a fork takes an awaitable, or a function with arguments that it takes as rvalues
// at-most: 10 lines
#include <weft/weft.hpp>

weft::task<> add(int& to, int one);
void in(weft::scope& s, int to) { s.fork(add, to, 1); }
