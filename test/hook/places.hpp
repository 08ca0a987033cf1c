// Where the tests of hooks run their fibers: on one worker, so that a call that blocks it holds up all others.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <ostream>
#include <string_view>
#include <utility>
#include <vector>
#include <weft/hook.hpp>
#include <weft/hop.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>
#include <weft/sync.hpp>
#include <weft/task.hpp>
#include <weft/with.hpp>

namespace test {

/// Runs the task on a worker of a runtime that waits as WEFT_TEST_IN_RUNTIME in the environment says; or of a worker_group.
inline void on_a_worker(weft::task<> body) {
  const char* const by = std::getenv("WEFT_TEST_IN_RUNTIME");
  if (by == nullptr) {
    const weft::worker_group group{1};
    weft::sync_wait(weft::start_on(group.worker(0), std::move(body)));
    return;
  }
  const bool rings = std::string_view{by} == "uring";
  std::optional<weft::runtime> rt;
  try {
    rt.emplace(weft::runtime_options{.threads = 1, .io = rings ? weft::io_backend::uring : weft::io_backend::epoll});
  } catch (const weft::error&) {  // the system has no rings
    rt.emplace(weft::runtime_options{.threads = 1, .io = weft::io_backend::epoll});
  }
  rt->run(weft::start_on(rt->workers().worker(0), std::move(body)));
}

/// All at once, each in a fiber of its own with hooks, begun in this order.
inline weft::task<> at_once(std::vector<std::function<void()>> those) {
  const auto body = [&](weft::scope& inside) -> weft::task<> {
    for (auto& one : those) inside.fork(weft::hooked([&one] { one(); }));
    co_return;
  };
  co_await weft::with_scope(body);
}
inline void run_at_once(std::vector<std::function<void()>> those) { on_a_worker(at_once(std::move(those))); }
inline void run_hooked(std::function<void()> one) { run_at_once({std::move(one)}); }

/// What a call has returned, and errno if it has failed.
struct failure {
  long result = 0;
  int error = 0;
  friend bool operator==(const failure&, const failure&) = default;
};
inline std::ostream& operator<<(std::ostream& to, const failure& one) {
  return to << one.result << " (" << std::strerror(one.error) << ")";
}
template <class Call>
failure told(Call call) {
  errno = 0;
  const auto result = static_cast<long>(call());
  return {result, result < 0 ? errno : 0};
}

/// `wait` blocks until `wake` has run, on the same worker; if it did block that, the test would hang.
inline void expect_waits(std::function<void()> wait, std::function<void()> wake) {
  bool over = false, was_first = false;
  run_at_once({[&] {
                 wait();
                 over = true;
               },
               [&] {
                 was_first = !over;
                 wake();
               }});
  EXPECT_TRUE(over);
  EXPECT_TRUE(was_first) << "it did not wait";
}

}  // namespace test
