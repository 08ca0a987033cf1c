#include <pthread.h>
#include <sys/prctl.h>

#include <atomic>
#include <mutex>
#include <new>
#include <weft/clock.hpp>

#include "base/futex.hpp"
#include "base/helper_signals.hpp"
#include "base/thread_id.hpp"
#include "base/unloading.hpp"
#include "core/timer_store.hpp"
#include "core/worker.hpp"

namespace weft {
namespace {

// Never destroyed: timers may be armed and cancelled by the last destructors of the process.
class steady final : public clock {
 public:
  constexpr steady() = default;

  time_point now() const noexcept override { return std::chrono::steady_clock::now(); }

  void arm(timer& one, time_point when) noexcept override {
    detail::worker& here = detail::this_worker();
    if (here.of_pool == nullptr || (here.wheel == nullptr && !has_got_wheel(here))) return arm_in_common(one, when);
    switch (armed_.arm(*here.wheel, one, when)) {
      case armed::later: break;
      case armed::first: look_again_for(*here.wheel); break;
      case armed::here: arm_in_common(one, when); break;
    }
  }

  bool cancel(timer& one) noexcept override { return armed_.cancel(detail::this_worker().wheel, one); }

 private:
  using armed = detail::timer_store::armed;
  using tick = detail::timer_wheel::tick;

  // A number that tells the calling thread from others that are alive; 0: a pool's worker, whose tasks no forked child has.
  static std::uint32_t who_arms() noexcept {
    return detail::this_worker().of_pool != nullptr ? 0 : static_cast<std::uint32_t>(detail::this_thread_id() >> 8);
  }

  void arm_in_common(timer& one, time_point when) noexcept {
    std::unique_lock guard{armed_.lock()};
    if (!armed_.is_running()) start();
    look_again_at(armed_.arm(one, when, who_arms()), guard);
  }
  WEFT_SELDOM void look_again_for(const detail::worker_wheel& one) noexcept {
    std::unique_lock guard{armed_.lock()};
    if (!armed_.is_running()) start();
    look_again_at(detail::timer_store::look_at(one.first.load(std::memory_order_relaxed)), guard);  // as declared
  }
  // Under the lock: wakes the clock's thread, if it sleeps longer than that.
  void look_again_at(time_point when, std::unique_lock<detail::tiny_lock>& guard) noexcept {
    if (when >= asleep_until_) return;
    changes_.fetch_add(1, std::memory_order_relaxed);  // the kernel orders it before the wake-up
    guard.unlock();
    detail::futex_wake(&changes_);
  }

  // False: there is no memory for it, or there are too many. Then it uses the common one.
  WEFT_SELDOM bool has_got_wheel(detail::worker& here) noexcept {
    if (here.wheel_refused) return false;  // else each timer would ask for memory, and perhaps give it back
    here.wheel_refused = true;
    auto* const one = new (std::nothrow) detail::worker_wheel;
    if (one == nullptr) return false;
    one->wheel.advance(tick_ahead(now()), 0, [](timer&) {});
    const std::lock_guard guard{armed_.lock()};
    if (!armed_.is_running()) start();
    if (!armed_.enter(*one)) return (delete one, false);
    here.wheel = one;
    here.wheel_refused = false;
    return true;
  }

  static tick tick_ahead(time_point now) noexcept {
    return detail::timer_wheel::tick_of(now) + detail::timer_store::ahead;
  }

  // Under the lock, as all that follows.
  void start() noexcept {
    static const bool once = [] {
      static_cast<void>(detail::this_worker());  // so that its fork handlers run before these in the child
      // The locks are held over a fork(); the clock's thread is in the parent.
      pthread_atfork([] { instance().armed_.before_fork(); }, [] { instance().armed_.after_fork(); },
                     [] {
                       instance().armed_.forget_those_of_others(who_arms());
                       instance().armed_.after_fork();
                     });
      return true;
    }();
    static_cast<void>(once);
    if (!ends_in_time_) ends_in_time_ = detail::at_end([] { instance().end(); });
    ending_ = false;
    asleep_until_ = time_point::min();
    const detail::helper_signals as_helper;
    const int refused = pthread_create(
        &thread_, nullptr,
        [](void*) -> void* {
          instance().run();
          return nullptr;
        },
        nullptr);
    WEFT_EXPECTS(refused == 0, "the clock needs a thread to wake who sleeps, and the system gave none");
    armed_.transition_to_running();
  }

  void run() noexcept {
    ::prctl(PR_SET_TIMERSLACK, 1);  // ns; else the system lets each sleep last up to 50 µs longer
    armed_.find_first_of_all();
    std::unique_lock guard{armed_.lock()};
    time_point seen{};  // now, or a little earlier
    for (unsigned in_a_row = 0; !ending_;) {
      if (timer* const one = in_a_row != most_in_a_row ? armed_.take_due(seen) : nullptr; one != nullptr) {
        ++in_a_row;
        guard.unlock();
        one->fire(*one);  // may be gone after this line
        guard.lock();
        armed_.has_fired();
        continue;
      }
      in_a_row = 0;
      seen = now();
      while (brings(guard, tick_ahead(seen))) {  // all of it, so that timers fire in order
      }
      const time_point until = armed_.next();
      if (until <= seen) continue;
      const std::uint32_t changes = changes_.load(std::memory_order_relaxed);  // under the lock
      asleep_until_ = until;
      guard.unlock();
      if (until == time_point::max())
        detail::futex_wait(&changes_, changes);
      else
        detail::futex_wait_until(&changes_, changes, until);
      guard.lock();
      asleep_until_ = time_point::min();
    }
  }

  // Whether there was something in a wheel up to that tick. Lets go of the lock meanwhile.
  bool brings(std::unique_lock<detail::tiny_lock>& guard, tick to) noexcept {
    if (armed_.common_wheel_with(to)) {
      armed_.bring(to);
      return true;
    }
    detail::worker_wheel* const from = armed_.wheel_with(to);
    if (from == nullptr) return false;
    guard.unlock();
    armed_.bring(*from, to);
    guard.lock();
    return true;
  }

  // Called at the end of the process, or when the library is unloaded.
  void end() noexcept {
    {
      std::lock_guard guard{armed_.lock()};
      if (detail::is_unloading()) ends_in_time_ = false;  // the destructor of a static may start the thread again
      if (!armed_.is_running() || pthread_equal(thread_, pthread_self()) != 0) return;
      ending_ = true;
      changes_.fetch_add(1, std::memory_order_relaxed);  // as in arm()
    }
    detail::futex_wake(&changes_);
    pthread_join(thread_, nullptr);  // other threads may arm timers meanwhile, but start no thread
    armed_.transition_to_ended();    // from here on they do
  }

  static steady& instance() noexcept;

  static constexpr unsigned most_in_a_row = 64;  // timers that fire before the clock looks at the wheels again

  detail::timer_store armed_;                    // its lock guards all that follows
  time_point asleep_until_ = time_point::min();  // of the thread; min(): it is awake, and will look at the timers
  bool ending_ = false;
  bool ends_in_time_ = false;  // end() will be called, or was, at the end of the process
  pthread_t thread_{};
  std::atomic<std::uint32_t> changes_{0};  // a futex, on which the clock's thread sleeps; written under the lock
};

constinit steady real;
steady& steady::instance() noexcept { return real; }

}  // namespace

clock& real_clock() noexcept { return real; }

clock& current_clock() noexcept {
  const env& mine = current_env();
  return mine.clock != nullptr ? *mine.clock : real;
}

namespace detail {

bool sleep_awaiter::suspend(root& self) noexcept {
  if (self.sleeper::stop_requested()) return (end_stopped(self), true);
  clock_ = &clock_of(self);
  const clock::time_point now = clock_->now();
  const clock::time_point when = relative_ ? later(now, for_) : until_;
  if (when <= now) return false;
  clock_->arm(*this, when);
  if (!self.park(*this)) {
    clock_->cancel(*this);
    return (end_stopped(self), true);
  }
  switch (fired_.enter(*this)) {
    case handover::entry::waits: break;  // self may be gone since then
    case handover::entry::ready: finish(); break;
    case handover::entry::left:
      clock_->cancel(*this);
      finish(wake_up::stopped);
      break;
  }
  return true;
}

void sleep_awaiter::fire_now(timer& self) noexcept {
  if (waiter* one = static_cast<sleep_awaiter&>(self).fired_.complete(); one != nullptr) one->finish();
}

// If the timer fires meanwhile, the wait has ended, and it wakes nobody.
on_stop sleep_awaiter::leave(waiter& self) noexcept {
  auto& mine = static_cast<sleep_awaiter&>(self);
  if (!mine.fired_.leave(mine)) return on_stop::forwarded;
  mine.clock_->cancel(mine);
  return on_stop::left;
}

}  // namespace detail
}  // namespace weft
