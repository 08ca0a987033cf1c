// expect: this can't be awaited: it has neither operator co_await nor await_ready\(\) and await_resume\(\)
// expect: sync_wait\(1\)
// at-most: 10 lines
#include <weft/task.hpp>

int main() { return weft::sync_wait(1); }
