// What is refused behind options is refused in the same words.
// expect: a function is no awaitable, but what it gives is: call it, f\(\)
// expect: a task is awaited once, as an rvalue: pass std::move\(t\)
// expect: this can't be awaited: it has neither operator co_await nor await_ready\(\) and await_resume\(\)
// expect: weft::run_main\(\{.threads = 1\}, f\);
// expect: weft::run\(\{.threads = 1\}, t\);
// expect: weft::run\(\{\}, 3, weft::stop_token\{\}\);
// at-most: 30 lines
#include <weft/weft.hpp>

weft::task<> f();

void all(weft::task<>& t) {
  weft::run_main({.threads = 1}, f);
  weft::run({.threads = 1}, t);
  weft::run({}, 3, weft::stop_token{});
}
