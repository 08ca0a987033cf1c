// A sweep of failing system calls: a scenario is run with each fault, which strikes at the first of the calls that it makes, at the
// second, and so on.
//
// A scenario has `those`, the calls that are to fail; and perhaps may_meet(fault), whether it can meet that one, and nudge(),
// which has the system report once more that there is something to read.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>
#include <weft/clock.hpp>
#include <weft/task.hpp>

#include "net/faults.hpp"
#include "support/sweep.hpp"
#include "support/system_calls.hpp"

namespace test {

using weft::as_result;
using weft::task;

struct scenario {
  std::vector<int> spared;
  std::vector<std::error_code> failures;

  // For what comes of a failure besides the failure itself.
  void check(std::error_code failed) const {
    const std::vector<std::error_code> expected(failed ? 1 : 0, failed);
    EXPECT_EQ(failures, expected);
  }
};

// What was given may fail once, and is done again.
template <class By, class Make>
part<By, typename std::invoke_result_t<Make>::value_type> again(scenario& of, Make make) {
  auto how = co_await as_result(make());
  if (how.has_value()) co_return std::move(how).value();
  of.failures.push_back(how.error());
  co_return co_await make();
}
// The same of what gives nothing. False: it has failed twice.
template <class By, class Make>
part<By, bool> again_or_not(scenario& of, Make make) {
  for (int i = 0; i != 2; ++i) {
    auto how = co_await as_result(make());
    if (how.has_value()) co_return true;
    of.failures.push_back(how.error());
  }
  co_return false;
}

// So that others wait meanwhile.
inline auto breathe() { return weft::sleep_for(std::chrono::microseconds{20}); }

template <class Scenario>
task<> run_once(const fault& what, std::size_t before, std::size_t& struck) {
  Scenario one;
  std::function<void()> nudges;
  if constexpr (requires { one.nudge(); }) nudges = [&one] { one.nudge(); };
  const injection injected{what, before, nudges};
  for (const int number : one.spared) injected.spares(number);
  co_await as_played(one.run());
  struck = injected.struck();
  one.check(failure_of(what, struck));
}

template <class Scenario>
void sweep_in(place where, std::string_view by) {
  runner run{where};
  const fault none{call::none, {0}};
  std::size_t struck = 0;
  run([&] { return run_once<Scenario>(none, 0, struck); });  // what is made once is made
  for (const fault& what : all_faults) {
    if (std::ranges::find(Scenario::those, what.at) == Scenario::those.end()) continue;
    if (what.at == call::epoll_ctl && where >= place::uring) continue;
    if constexpr (requires { Scenario::may_meet(what); })
      if (!Scenario::may_meet(what)) continue;
    for (std::size_t before = 0;; ++before) {
      const testing::ScopedTrace trace{
          __FILE__, __LINE__, what.to_string() + " behind " + std::to_string(before) + " calls, by " + std::string{by}};
      const std::size_t open = open_descriptors();
      struck = 0;
      run([&] { return run_once<Scenario>(what, before, struck); });
      EXPECT_EQ(open_descriptors(), open);
      if (testing::Test::HasFailure()) return;
      if (struck != 0) continue;
      EXPECT_GT(before, 0U) << "no such call is made";
      break;
    }
  }
}

template <template <class> class Scenario>
void sweep_faults(place where) {
  sweep_in<Scenario<by_task>>(where, "tasks");
  if (where == place::threads)
    sweep_in<Scenario<by_plain_thread>>(where, "plain threads");
  else
    sweep_in<Scenario<by_fiber>>(where, "fibers");
}

}  // namespace test
