// Time that passes only when a test says so.
//
//     test::virtual_clock time;
//     const auto how = test::run_timed(time, nap());  // sleeps end as soon as nothing else is left to do
//     EXPECT_EQ(time.elapsed(), 5ms);
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>
#include <weft/clock.hpp>
#include <weft/task.hpp>

namespace test {

/// Fires timers, in the order of their times and then of arming, on the thread that advances it.
class virtual_clock final : public weft::clock {
 public:
  time_point now() const noexcept override {
    std::lock_guard guard{lock_};
    return now_;
  }

  void arm(weft::timer& one, time_point when) noexcept override {
    std::lock_guard guard{lock_};
    EXPECT_FALSE(one.armed);
    if (firing_ == &one) firing_ = nullptr;
    one.when = when;
    one.armed = true;
    armed_.insert(std::ranges::upper_bound(armed_, when, {}, [](const weft::timer* t) { return t->when; }), &one);
    ++total_;
  }

  bool cancel(weft::timer& one) noexcept override {
    std::unique_lock guard{lock_};
    while (!one.armed) {
      if (firing_ != &one || firer_ == std::this_thread::get_id()) return false;
      guard.unlock();
      std::this_thread::yield();
      guard.lock();
    }
    one.armed = false;
    std::erase(armed_, &one);
    return true;
  }

  /// Lets time pass; fires what falls due, each at its time. One thread at a time.
  void advance(duration by) {
    const time_point until = now() + by;
    while (fire_next(until)) {
    }
    std::lock_guard guard{lock_};
    now_ = until;
  }

  /// Goes on to the next timer. False: there is none.
  bool advance_to_next() { return fire_next(time_point::max()); }

  duration elapsed() const { return now() - begin(); }
  std::size_t armed() const {
    std::lock_guard guard{lock_};
    return armed_.size();
  }
  std::size_t armed_so_far() const {
    std::lock_guard guard{lock_};
    return total_;
  }

 private:
  static constexpr time_point begin() { return time_point{std::chrono::hours{1}}; }

  bool fire_next(time_point until) {
    std::unique_lock guard{lock_};
    if (armed_.empty() || armed_.front()->when > until) return false;
    weft::timer& one = *armed_.front();
    armed_.erase(armed_.begin());
    one.armed = false;
    now_ = std::max(now_, one.when);
    firing_ = &one;
    firer_ = std::this_thread::get_id();
    guard.unlock();
    one.fire(one);  // may be gone after this line
    guard.lock();
    firing_ = nullptr;
    return true;
  }

  mutable std::mutex lock_;
  time_point now_ = begin();
  std::vector<weft::timer*> armed_;
  const weft::timer* firing_ = nullptr;
  std::thread::id firer_;
  std::size_t total_ = 0;
};

struct owns_env {
  weft::env own_env;
};

/// A root with an environment of the test's choice.
template <class T>
class timed_root final : owns_env, weft::detail::root {
 public:
  timed_root(weft::env environment, weft::task<T>&& work)
      : owns_env{environment},
        root{&own_env, nullptr, ended},
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
    if (loop.empty() && !time.advance_to_next() && loop.empty() && !root.request_stop()) {
      ADD_FAILURE() << "nobody will ever wake it, and it ignores its stop";
      std::abort();
    }
  }
}
template <class T>
weft::result<T> run_timed(virtual_clock& time, weft::task<T> work) {
  return run_timed(time, std::move(work), [](auto&) {});
}

}  // namespace test
