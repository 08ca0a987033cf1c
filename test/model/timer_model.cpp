// The clock's timers: armed by a worker into its own wheel, cancelled by that worker and by another thread, while the clock
// brings them into its heap and fires them. Each fires once or was cancelled, and is not used after cancel() has returned.
// And the lock of a wheel by itself, whose bias goes and comes back.
// Mutates: src/base/rebiasing_lock.hpp
#include "base/lock.cpp"
#include "core/timer_store.hpp"
#include "model.hpp"

namespace {

using weft::detail::bed;
using weft::detail::plain;
using weft::detail::rebiasing_lock;
using weft::detail::timer_store;
using weft::detail::timer_wheel;
using weft::detail::worker_wheel;

// The owner, who has the bias again after one use, and two others change one number.
template <class Self, int owner_uses>
struct sections_of : rl::test_suite<Self, 3> {
  rebiasing_lock lock{1};
  plain<int> changed = 0;

  void thread(unsigned which) {
    if (which == 0) {
      for (int i = 0; i != owner_uses; ++i) {
        lock.enter();
        changed = changed + 1;
        lock.leave();
      }
    } else {
      lock.lock();
      changed = changed + 1;
      lock.unlock();
    }
  }
  void after() { RL_ASSERT(changed == owner_uses + 2); }
};
struct sections : sections_of<sections, 3> {};

// One other, who comes twice: the second time without a bias, or after it has come back.
struct comes_twice : rl::test_suite<comes_twice, 2> {
  rebiasing_lock lock{1};
  plain<int> changed = 0;
  void thread(unsigned which) {
    for (int i = 0; i != (which == 0 ? 3 : 2); ++i) {
      which == 0 ? lock.enter() : lock.lock();
      changed = changed + 1;
      which == 0 ? lock.leave() : lock.unlock();
    }
  }
  void after() { RL_ASSERT(changed == 5); }
};

// Where the kernel makes no fences, the bias never comes.
struct fences_cost {
  fences_cost() { weft::detail::fences_are_free = false; }
  ~fences_cost() { weft::detail::fences_are_free = true; }
};
struct sections_with_fences : fences_cost, rl::test_suite<sections_with_fences, 2> {
  comes_twice all;
  void thread(unsigned which) { all.thread(which); }
  void after() { all.after(); }
};

// A timer whose every use is checked.
struct watched_timer : weft::timer {
  watched_timer()
      : timer{[](timer& self) noexcept {
          auto& mine = static_cast<watched_timer&>(self);
          mine.fires = mine.fires + 1;
        }} {}
  plain<int> fires = 0;
};

constexpr timer_wheel::tick soon = 5, late = 500;

template <class Self, unsigned threads>
struct clock_of : rl::test_suite<Self, threads> {
  bed sleeps;
  timer_store store;
  worker_wheel mine{1};

  void before() {
    bed::all = &sleeps;
    mine.wheel.advance(1, 0, [](weft::timer&) {});
    RL_ASSERT(store.enter(mine));
  }

  void arm(weft::timer& one, timer_wheel::tick at) {
    if (store.arm(mine, one, timer_wheel::begin_of(at)) != timer_store::armed::here) return;
    const std::lock_guard guard{store.lock()};
    store.arm(one, timer_wheel::begin_of(at), 0);
  }
  // What the clock's thread does at the time of that tick.
  void look(timer_wheel::tick at) {
    std::unique_lock guard{store.lock()};
    while (worker_wheel* const from = store.wheel_with(at)) {
      guard.unlock();
      store.bring(*from, at);
      guard.lock();
    }
    while (weft::timer* const one = store.take_due(timer_wheel::begin_of(at))) {
      guard.unlock();
      one->fire(*one);
      guard.lock();
      store.has_fired();
    }
  }
};

// The worker arms two, and cancels one of them; another thread cancels the other; the clock fires.
struct arm_cancel_and_fire : clock_of<arm_cancel_and_fire, 3> {
  watched_timer one, two;
  bool cancelled[2]{};

  void before() {
    clock_of::before();
    arm(two, soon);
  }
  void end(watched_timer& which, int index, worker_wheel* by) {
    cancelled[index] = store.cancel(by, which);
    RL_ASSERT(which.fires <= 1 && (!cancelled[index] || which.fires == 0));
    if (!cancelled[index]) RL_ASSERT(which.fires == 1);
    which.fires = -1;  // it may end now
  }
  void thread(unsigned which) {
    if (which == 0) {
      arm(one, soon);
      end(one, 0, &mine);
    } else if (which == 1) {
      end(two, 1, nullptr);
    } else {
      look(late);
    }
  }
};

// A timer that lies far away moves down a level meanwhile, and is cancelled by both sides' neighbours.
struct cascade_and_cancel : clock_of<cascade_and_cancel, 2> {
  watched_timer one, two;

  void before() {
    clock_of::before();
    arm(one, late);
    arm(two, late + 1);
  }
  void thread(unsigned which) {
    if (which == 0) {
      RL_ASSERT(store.cancel(&mine, one));
      arm(one, late + 2);
      RL_ASSERT(store.cancel(&mine, one));
    } else {
      look(late - 1);
      RL_ASSERT(store.cancel(nullptr, two));
    }
  }
  void after() { RL_ASSERT(one.fires == 0 && two.fires == 0); }
};

// The clock ends while the worker arms, and perhaps starts again. Then its thread knows where the first timer is; or there
// is none, and the worker says so of the next one that it arms, whichever that is.
template <class Self, bool starts_again>
struct ends_of : clock_of<Self, starts_again ? 3 : 2> {
  watched_timer one, two, three;
  bool started = false, found = false;

  void before() {
    clock_of<Self, starts_again ? 3 : 2>::before();
    store.transition_to_running();
    this->arm(three, soon);  // cancelled long before its time
    RL_ASSERT(store.cancel(&mine, three));
    this->arm(two, late + 1);
  }
  void begin_if_none_runs() {
    const std::lock_guard guard{store.lock()};
    if (store.is_running()) return;
    store.transition_to_running();
    started = true;
  }
  bool is_to_find() {
    const std::lock_guard guard{store.lock()};
    return started;
  }
  void find() {
    store.find_first_of_all();
    found = true;
  }
  void thread(unsigned which) {
    if (which == 0) {
      if (store.arm(mine, one, timer_wheel::begin_of(late)) == timer_store::armed::first) begin_if_none_runs();
    } else if (which == 1) {
      store.transition_to_ended();
    } else if (begin_if_none_runs(); is_to_find()) {
      find();
    }
  }
  void after() {
    if (started && !found) find();
    const timer_wheel::tick first = late >> timer_wheel::digit_bits << timer_wheel::digit_bits;  // of the slot of both
    RL_ASSERT(mine.first.load(std::memory_order_relaxed) == (started ? first : timer_wheel::never));
  }

 private:
  using base = clock_of<Self, starts_again ? 3 : 2>;
  using base::mine, base::store;
};
struct ends : ends_of<ends, false> {};
struct ends_and_starts_again : ends_of<ends_and_starts_again, true> {};

}  // namespace

int main() {
  model::check<sections>("sections", 3);
  model::check<comes_twice>("comes twice", 4);
  model::check<sections_with_fences>("sections, fences cost", 3);
  model::check<arm_cancel_and_fire>("arm, cancel and fire", 2);
  model::check<cascade_and_cancel>("cascade and cancel", 3);
  model::check<ends>("ends", 3);
  model::check<ends_and_starts_again>("ends and starts again", 2);
}
