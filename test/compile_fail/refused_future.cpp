// expect: this is awaited as an rvalue that is not const: pass std::move\(x\)
// at-most: 10 lines
#include <weft/weft.hpp>

int waits(weft::future<int>& answer) { return weft::sync_wait(answer); }
