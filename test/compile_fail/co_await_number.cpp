// expect: this can't be awaited: it has neither operator co_await nor await_ready\(\) and await_resume\(\)
// at-most: 10 lines
#include <weft/weft.hpp>

weft::task<int> number() { co_return co_await 3; }
