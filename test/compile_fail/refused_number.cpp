// Each function says it of what it does not take.
// expect: this can't be awaited
// expect: \|   weft::sync_wait\(3\);
// expect: \|   weft::as_result\(3\);
// expect: \|   weft::start\(3, \[\]\(auto\) \{\}\);
// expect: \|   weft::start\(ex, 3, \[\]\(auto\) \{\}\);
// expect: \|   weft::when_all\(f\(\), 3\);
// expect: \|   weft::when_any\(3, f\(\)\);
// expect: \|   weft::timeout\(1s, 3\);
// expect: \|   weft::start_on\(ex, 3\);
// expect: \|   weft::shielded\(3\);
// expect: \|   weft::nothrow\(3\);
// expect: \|   weft::as_future\(3\);
// expect: \|   weft::as_future\(ex, 3\);
// expect: \|   weft::run\(3\);
// expect: \|   weft::run\(3, weft::runtime_options\{\}\);
// expect: \|   weft::run_main\(3\);
// expect: \|   weft::await\(3\);
// expect: \|   static_cast<void>\(\(3 \| weft::timeout\(1s\)\)\);
// expect: \|   static_cast<void>\(\(3 \| weft::start_on\(ex\)\)\);
// at-most: 180 lines
#include <weft/weft.hpp>

using namespace std::chrono_literals;
weft::task<> f();
void all(weft::executor& ex) {
  weft::sync_wait(3);
  weft::as_result(3);
  weft::start(3, [](auto) {});
  weft::start(ex, 3, [](auto) {});
  weft::when_all(f(), 3);
  weft::when_any(3, f());
  weft::timeout(1s, 3);
  weft::start_on(ex, 3);
  weft::shielded(3);
  weft::nothrow(3);
  weft::as_future(3);
  weft::as_future(ex, 3);
  weft::run(3);
  weft::run(3, weft::runtime_options{});
  weft::run_main(3);
  weft::await(3);
  static_cast<void>((3 | weft::timeout(1s)));
  static_cast<void>((3 | weft::start_on(ex)));
}
