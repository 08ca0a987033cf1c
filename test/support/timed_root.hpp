// Roots that a test drives by hand, on a virtual clock; for what test::run() does not show: a stop before the first step,
// executors of the test's own. Most tests want weft::test::run.
//
//     test::virtual_clock time;
//     const auto how = test::run_timed(time, nap());  // sleeps end as soon as nothing else is left to do
//     EXPECT_EQ(time.elapsed(), 5ms);
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <weft/task.hpp>
#include <weft/test.hpp>

namespace test {

using weft::test::virtual_clock;

struct owns_env {
  weft::env own_env;
};

/// A root with an environment of the test's choice.
template <class T>
class timed_root final : owns_env, weft::detail::top_root {
 public:
  timed_root(weft::env environment, weft::task<T>&& work)
      : owns_env{environment},
        top_root{weft::detail::root_kind::task, &own_env, ended},
        frame_{weft::detail::task_access::release(std::move(work))} {
    adopt(frame_, frame_.promise());
  }
  using weft::detail::root::request_stop;
  using weft::detail::root::schedule;

  bool over() const { return how_.has_value(); }
  weft::result<T> take() { return *std::move(how_); }

 private:
  static void ended(root& self, bool stopped) noexcept {
    auto& mine = static_cast<timed_root&>(self);
    if (stopped) {
      mine.how_.emplace(weft::stopped{});
    } else {
      mine.how_.emplace(mine.frame_.promise().take_result());
      mine.frame_.destroy();
    }
    weft::detail::leave_root();
  }

  std::coroutine_handle<weft::detail::task_promise<T>> frame_;
  std::optional<weft::result<T>> how_;
};

/// Has chaos, where there is some, make the wake-ups now that it keeps for later.
inline void settle() noexcept { weft::detail::wait_watch::settle(); }

/// Runs a task by `time` on this thread. Whenever all of it waits, time goes on to the next timer; if there is none, it
/// is told to stop. `before_waiting` is called each time that all of it waits.
template <class T, class BeforeWaiting>
weft::result<T> run_timed(virtual_clock& time, weft::task<T> work, BeforeWaiting before_waiting) {
  weft::manual_executor loop;
  timed_root<T> root{{.executor = &loop, .clock = &time}, std::move(work)};
  root.schedule();
  for (;;) {
    loop.run_all();
    if (root.over()) return root.take();
    before_waiting(root);
    // What was woken by that, or by a timer, is ready; under chaos it may come late, until somebody asks for it.
    if (loop.run_one() || time.advance_to_next() || loop.run_one() || root.request_stop()) continue;
    ADD_FAILURE() << "nobody will ever wake it, and it ignores its stop";
    std::abort();
  }
}
template <class T>
weft::result<T> run_timed(virtual_clock& time, weft::task<T> work) {
  return run_timed(time, std::move(work), [](auto&) {});
}

/// Runs a task that is told to stop before its first step.
template <class T>
weft::result<T> run_stopped(virtual_clock& time, weft::task<T> work) {
  weft::manual_executor loop;
  timed_root<T> root{{.executor = &loop, .clock = &time}, std::move(work)};
  root.request_stop();
  root.schedule();
  loop.run_all();
  return root.take();
}

}  // namespace test
