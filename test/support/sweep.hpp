// Both sweeps of the test kit at once, and what the scenarios have in common.
//
//     TEST(sweep, timeout) { test::sweep<timed>("timeout"); }  // the names are read by tools/check_swept
#pragma once

#include <atomic>
#include <chrono>
#include <string_view>
#include <weft/clock.hpp>
#include <weft/task.hpp>
#include <weft/test.hpp>

#include "support/weft_test.hpp"

namespace test {

/// With a stop at each place of each await, then with each allocation failing.
template <class Scenario>
void sweep(std::string_view names, const weft::test::sweep_options& options = {}) {
  weft::test::cancellation_sweep<Scenario>(names, options);
  weft::test::allocation_sweep<Scenario>(names, options);
}
template <class F>
void sweep(std::string_view names, const F& make, const weft::test::sweep_options& options = {}) {
  weft::test::cancellation_sweep(names, make, options);
  weft::test::allocation_sweep(names, make, options);
}

/// Whether it ended for want of memory, as an allocation sweep has it end.
template <class T>
bool lacked_memory(const weft::result<T>& how) {
  if (!how.exception()) return false;
  try {
    std::rethrow_exception(how.exception());
  } catch (const std::bad_alloc&) {
    return true;
  } catch (...) {
    return false;
  }
}

/// Values that are counted: a scenario that has this for a base fails if one is left, or was destroyed twice.
struct counts_values {
  std::atomic<int> alive{0};

  void check() const {
    weft::test::require(alive >= 0, "a value was destroyed twice");
    weft::test::require(alive == 0, "a value was not destroyed");
  }
  counted value() { return counted{alive}; }
};

/// Takes a while, and gives something.
inline weft::task<int> nap(int milliseconds, int value = 1) {
  co_await weft::sleep_for(std::chrono::milliseconds{milliseconds});
  co_return value;
}
inline weft::task<> rest(int milliseconds) { co_await weft::sleep_for(std::chrono::milliseconds{milliseconds}); }

/// Takes a while, with a value in its frame.
inline weft::task<int> hold(counts_values& of, int milliseconds, int value = 1) {
  const counted held = of.value();
  co_return co_await nap(milliseconds, value);
}

/// Takes a while, and gives a value.
inline weft::task<counted> make(counts_values& of, int milliseconds) {
  counted made = of.value();
  co_await rest(milliseconds);
  co_return made;
}

/// Takes a while, and fails.
inline weft::task<int> fail(int milliseconds, const char* what = "as planned") {
  co_await rest(milliseconds);
  throw std::runtime_error{what};
}

/// What sweeps say all the time.
namespace in_sweeps {
using namespace std::chrono_literals;
using test::counted;
using test::counts_values;
using test::fail;
using test::hold;
using test::make;
using test::nap;
using test::rest;
using test::sweep;
using weft::as_result;
using weft::task;
using weft::test::require;

/// Where one is stopped, the other may wait for ever, as it should: then it is stopped, too.
inline constexpr weft::test::sweep_options waits_for_the_other{.stop_when_idle = true};
}  // namespace in_sweeps

}  // namespace test
