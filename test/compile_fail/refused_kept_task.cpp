// Each function says it of what it does not take.
// expect: a task is awaited once, as an rvalue: pass std::move\(t\)
// expect: \|   weft::sync_wait\(t\);
// expect: \|   weft::as_result\(t\);
// expect: \|   weft::start\(t, \[\]\(auto\) \{\}\);
// expect: \|   weft::start\(ex, t, \[\]\(auto\) \{\}\);
// expect: \|   weft::when_all\(f\(\), t\);
// expect: \|   weft::when_any\(t, f\(\)\);
// expect: \|   weft::timeout\(1s, t\);
// expect: \|   weft::start_on\(ex, t\);
// expect: \|   weft::shielded\(t\);
// expect: \|   weft::nothrow\(t\);
// expect: \|   weft::as_future\(t\);
// expect: \|   weft::as_future\(ex, t\);
// expect: \|   weft::run\(t\);
// expect: \|   weft::run\(t, weft::runtime_options\{\}\);
// expect: \|   weft::run_main\(t\);
// expect: \|   weft::await\(t\);
// expect: \|   static_cast<void>\(\(t \| weft::timeout\(1s\)\)\);
// expect: \|   static_cast<void>\(\(t \| weft::start_on\(ex\)\)\);
// at-most: 180 lines
#include <weft/weft.hpp>

using namespace std::chrono_literals;
weft::task<> f();
void all(weft::executor& ex, weft::task<>& t) {
  weft::sync_wait(t);
  weft::as_result(t);
  weft::start(t, [](auto) {});
  weft::start(ex, t, [](auto) {});
  weft::when_all(f(), t);
  weft::when_any(t, f());
  weft::timeout(1s, t);
  weft::start_on(ex, t);
  weft::shielded(t);
  weft::nothrow(t);
  weft::as_future(t);
  weft::as_future(ex, t);
  weft::run(t);
  weft::run(t, weft::runtime_options{});
  weft::run_main(t);
  weft::await(t);
  static_cast<void>((t | weft::timeout(1s)));
  static_cast<void>((t | weft::start_on(ex)));
}
