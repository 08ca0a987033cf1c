// Each of these says it of a call that gives nothing.
// expect[clang]: \| struct void_is_no_awaitable;  // a call that gives void can't be awaited
// expect[clang]: \|   weft::as_result\(f\(\)\);
// expect[clang]: \|   weft::when_all\(g\(\), g\(\), f\(\)\);
// expect[clang]: \|   weft::when_any\(f\(\), g\(\)\);
// expect[clang]: \|   weft::timeout\(1s, f\(\)\);
// expect[clang]: \|   weft::start_on\(ex, f\(\)\);
// expect[clang]: \|   weft::shielded\(f\(\)\);
// expect[clang]: \|   weft::nothrow\(f\(\)\);
// expect[clang]: \|   weft::await\(f\(\)\);
// expect[clang]: \|   weft::sync_wait\(f\(\)\);
// expect[clang]: \|   weft::run\(f\(\)\);
// expect[clang]: \|   weft::run\(\{.threads = 1\}, f\(\)\);
// expect[clang]: \|   weft::run_main\(f\(\)\);
// expect[clang]: \|   weft::run_main\(\{.threads = 1\}, f\(\)\);
// expect[clang]: \|   weft::as_future\(f\(\)\);
// expect[gcc]: invalid use of void expression
// at-most: 150 lines
#include <weft/weft.hpp>

using namespace std::chrono_literals;
void f();
weft::task<> g();
void all(weft::executor& ex) {
  weft::as_result(f());
  weft::when_all(g(), g(), f());
  weft::when_any(f(), g());
  weft::timeout(1s, f());
  weft::start_on(ex, f());
  weft::shielded(f());
  weft::nothrow(f());
  weft::await(f());
  weft::sync_wait(f());
  weft::run(f());
  weft::run({.threads = 1}, f());
  weft::run_main(f());
  weft::run_main({.threads = 1}, f());
  weft::as_future(f());
}
