// expect: this can't be awaited: it has neither operator co_await nor await_ready\(\) and await_resume\(\)
// expect[clang]: 9 \|   co_await weft::when_all\(f\(\), 3\);
// expect[clang]: \^
// at-most: 10 lines
#include <weft/weft.hpp>

weft::task<> f();
weft::task<> both() {
  co_await weft::when_all(f(), 3);
  co_return;
}
