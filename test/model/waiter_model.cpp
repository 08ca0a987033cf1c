// The claim of a wait, by every interleaving of a few threads. The code is weft's own, src/core/waiter.cpp; only its
// atomics are the model's (weft/detail/base/atomic.hpp in this folder). relacy also finds each access of a `plain` variable
// that no edge orders, so a weaker memory order on an edge fails here.
// Mutates: src/core/waiter.cpp src/core/claim.hpp include/weft/detail/core/waiter.hpp
#include "core/waiter.cpp"
#include "model.hpp"

namespace {

using namespace weft::detail;

// A sleeper whose "executor" is one flag: set when it is woken, taken back by the thread that sleeps.
struct napper : sleeper {
  napper() : sleeper{wake} {}

  static void wake(sleeper& self, wake_up how) noexcept {
    auto& mine = static_cast<napper&>(self);
    const int seen = mine.woken.exchange(how == wake_up::completed ? 1 : 2, std::memory_order_acq_rel);
    RL_ASSERT(seen == 0);  // woken once a wait
    ++mine.wakes;
  }
  // True: completed.
  bool sleep() {
    for (;;) {
      const int how = woken.exchange(0, std::memory_order_acquire);
      if (how != 0) return how == 1;
      rl::yield(1, RL_INFO);
    }
  }

  atomic<int> woken{0};
  int wakes = 0;  // the model's own
};

struct leaves : waiter {
  leaves() : waiter{type} {}
  static constexpr wait_type type{.leave = [](waiter&) noexcept { return on_stop::left; }, .name = "nothing"};
};

struct forwards : waiter {
  forwards() : waiter{type} {}
  static on_stop forward(waiter& self) noexcept {
    ++static_cast<forwards&>(self).forwarded;
    return on_stop::forwarded;
  }
  static constexpr wait_type type{.leave = forward, .name = "nothing"};
  int forwarded = 0;
};

// A primitive of weft in small: permits, a line and a lock.
struct permits {
  rl::mutex lock;
  waiter_line line;
  plain<int> free{0};

  struct place : waiter {
    explicit place(permits& of) : waiter{type}, of{of} {}
    static on_stop leave(waiter& self) noexcept {
      permits& of = static_cast<place&>(self).of;
      of.lock.lock(RL_INFO);
      of.line.remove(self);
      of.lock.unlock(RL_INFO);
      return on_stop::left;
    }
    static constexpr wait_type type{.leave = leave, .name = "permits"};
    permits& of;
  };

  void give() {
    lock.lock(RL_INFO);
    waiter* woken = nullptr;
    while ((woken = line.pop()) != nullptr && !woken->try_claim()) {
    }
    if (woken == nullptr) free = free + 1;
    lock.unlock(RL_INFO);
    if (woken != nullptr) woken->wake();
  }
  // False: stopped.
  bool take(napper& self) {
    place mine{*this};
    lock.lock(RL_INFO);
    if (free > 0) {
      free = free - 1;
      lock.unlock(RL_INFO);
      return true;
    }
    line.push(mine);
    const bool parked = self.park(mine);
    if (!parked) line.remove(mine);
    lock.unlock(RL_INFO);
    return parked && self.sleep();
  }
};

// ---- the scenarios --------------------------------------------------------------------------------------------------

// wake x stop x the next wait. The waiter is gone as soon as its sleeper goes on, so a late access is seen.
struct wake_stop_and_wait_again : rl::test_suite<wake_stop_and_wait_again, 3> {
  napper self;
  permits some;
  plain<int> cause{0};
  int taken = 0;

  void thread(unsigned which) {
    if (which == 0) {
      while (taken < 2 && some.take(self)) ++taken;
      if (taken < 2) RL_ASSERT(cause == 1);
    } else if (which == 1) {
      some.give();
      some.give();
    } else {
      cause = 1;
      self.request_stop();
    }
  }
  void after() { RL_ASSERT(taken + some.free == 2); }  // no permit is lost, none made
};

// finish x stop of a wait that forwards its stops.
struct finish_and_stop : rl::test_suite<finish_and_stop, 3> {
  napper self;
  forwards one;
  atomic<int> parked{0};
  plain<int> cause{0};
  int forwarded_late = 0;

  void thread(unsigned which) {
    if (which == 0) {
      const bool stopped_before = self.park_forwarding(one);
      if (stopped_before) {
        RL_ASSERT(cause == 1);
        ++forwarded_late;
      }
      parked.store(1, std::memory_order_release);
      RL_ASSERT(self.sleep());
      if (self.stop_requested()) RL_ASSERT(cause == 1);
    } else if (which == 1) {
      while (parked.load(std::memory_order_acquire) == 0) rl::yield(1, RL_INFO);
      one.finish();
    } else {
      cause = 1;
      RL_ASSERT(self.request_stop());
    }
  }
  void after() {
    RL_ASSERT(self.wakes == 1);
    RL_ASSERT(one.forwarded + forwarded_late <= 1);  // a stop is forwarded once
  }
};

// Somebody looks at what a wait has in its frame, while it may be woken, stopped, and change that.
struct look_wake_and_stop : rl::test_suite<look_wake_and_stop, 3> {
  napper self;
  leaves one;
  plain<int> in_frame{1};

  void before() { RL_ASSERT(self.park(one)); }
  void thread(unsigned which) {
    if (which == 0) {
      const held_wait held{self};
      if (held) RL_ASSERT(in_frame == 1);
    } else if (which == 1) {
      if (one.try_claim()) one.wake();
      self.sleep();
      in_frame = 2;  // it goes on
    } else {
      self.request_stop();
    }
  }
  void after() { RL_ASSERT(self.wakes == 1); }
};

// The same of one that is shielded, as a cleanup is: told to stop, it waits on until it is woken.
struct look_at_a_shielded_one : rl::test_suite<look_at_a_shielded_one, 3> {
  napper self;
  leaves one;
  atomic<int> parked{0};
  plain<int> in_frame{0};

  void thread(unsigned which) {
    if (which == 0) {
      const held_wait held{self};
      if (held) RL_ASSERT(in_frame == 1);
    } else if (which == 1) {
      self.shield(true);
      in_frame = 1;
      RL_ASSERT(self.park(one));
      parked.store(1, std::memory_order_release);
      RL_ASSERT(self.sleep());
      in_frame = 2;
    } else {
      self.request_stop();
      while (parked.load(std::memory_order_acquire) == 0) rl::yield(1, RL_INFO);
      if (one.try_claim()) one.wake();
    }
  }
  void after() { RL_ASSERT(self.wakes == 1); }
};

// Somebody else, as a child does of its parent, asks a sleeper that is being stopped whether it was told.
struct stop_and_ask : rl::test_suite<stop_and_ask, 2> {
  napper self;
  leaves one;
  plain<int> cause{0};

  void before() { RL_ASSERT(self.park(one)); }
  void thread(unsigned which) {
    if (which == 0) {
      cause = 1;
      RL_ASSERT(self.request_stop());
    } else if (self.stop_requested()) {
      RL_ASSERT(cause == 1);
    }
  }
  void after() { RL_ASSERT(self.wakes == 1); }
};

}  // namespace

int main() {
  model::check<wake_stop_and_wait_again>("wake, stop and wait again", 3);
  model::check<finish_and_stop>("finish and stop", 2);
  model::check<look_wake_and_stop>("look, wake and stop", 3);
  model::check<look_at_a_shielded_one>("look at a shielded one", 2);
  model::check<stop_and_ask>("stop and ask", 3);
}
