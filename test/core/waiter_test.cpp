// The claim of a wait, by threads that race for it. test/model/ has the same by every interleaving.
#include <weft/detail/core/waiter.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <vector>
#include <weft/detail/sync/learning_lock.hpp>
#include <weft/executor.hpp>
#include <weft/pool.hpp>
#include <weft/task.hpp>
#include <weft/with.hpp>

#include "support/weft_test.hpp"

namespace {

using weft::detail::on_stop;
using weft::detail::sleeper;
using weft::detail::wait_type;
using weft::detail::waiter;
using weft::detail::waiter_line;
using weft::detail::wake_up;

// A sleeper that counts how it was woken. It may be destroyed once it was.
class napper : public sleeper {
 public:
  napper() : sleeper{wake} {}
  int completed() const { return completed_.load(); }
  int stopped() const { return stopped_.load(); }
  int ends() const { return completed() + stopped(); }

 private:
  static void wake(sleeper& self, wake_up how) noexcept {
    auto& mine = static_cast<napper&>(self);
    ++(how == wake_up::completed ? mine.completed_ : mine.stopped_);
  }
  std::atomic<int> completed_ = 0, stopped_ = 0;
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
  std::atomic<int> forwarded = 0;
};

// ---- one thread -----------------------------------------------------------------------------------------------------

// Nobody has asked for chaos, and no test kit is at work: then a wait pays for one relaxed load.
TEST(wait_watch, there_is_none) { EXPECT_EQ(weft::detail::wait_watch::now(), nullptr); }

TEST(waiter, a_wait_is_claimed_once) {
  napper self;
  leaves one;
  ASSERT_TRUE(self.park(one));
  EXPECT_TRUE(one.try_claim());
  EXPECT_FALSE(one.try_claim());
  EXPECT_EQ(self.ends(), 0) << "a claim wakes nobody yet";
  one.wake();
  EXPECT_EQ(self.completed(), 1);
}

TEST(waiter, a_stop_wins_or_comes_too_late) {
  napper self;
  leaves one;
  ASSERT_TRUE(self.park(one));
  EXPECT_TRUE(self.request_stop());
  EXPECT_EQ(self.stopped(), 1);
  EXPECT_FALSE(one.try_claim());

  napper other;
  leaves two;
  ASSERT_TRUE(other.park(two));
  ASSERT_TRUE(two.try_claim());
  EXPECT_TRUE(other.request_stop());
  EXPECT_EQ(other.stopped(), 0);
  two.wake();
  EXPECT_EQ(other.completed(), 1);
}

TEST(waiter, does_not_park_once_stopped) {
  napper self;
  leaves one;
  EXPECT_TRUE(self.request_stop());
  EXPECT_FALSE(self.request_stop());
  EXPECT_TRUE(self.stop_requested());
  EXPECT_FALSE(self.park(one));
  EXPECT_EQ(self.ends(), 0);
}

TEST(waiter, a_ticket_of_an_earlier_wait_claims_nothing) {
  napper self;
  leaves early, late;
  ASSERT_TRUE(self.park(early));
  ASSERT_TRUE(early.try_claim());
  early.wake();
  ASSERT_TRUE(self.park(late));
  EXPECT_FALSE(early.try_claim());
  EXPECT_TRUE(late.try_claim());
  late.wake();
  EXPECT_EQ(self.completed(), 2);
}

TEST(waiter, a_shield_puts_a_stop_off) {
  napper self;
  leaves one, two;
  self.shield(true);
  ASSERT_TRUE(self.park(one));
  EXPECT_TRUE(self.request_stop());
  EXPECT_EQ(self.ends(), 0);
  EXPECT_FALSE(self.stop_requested());
  ASSERT_TRUE(one.try_claim());
  one.wake();
  ASSERT_TRUE(self.park(two)) << "still shielded";
  ASSERT_TRUE(two.try_claim());
  two.wake();
  self.shield(false);
  EXPECT_TRUE(self.stop_requested());
  leaves three;
  EXPECT_FALSE(self.park(three));
}

TEST(waiter, a_forwarding_wait_goes_on_after_a_stop) {
  napper self;
  forwards one;
  EXPECT_FALSE(self.park_forwarding(one));
  self.request_stop();
  EXPECT_EQ(one.forwarded, 1);
  EXPECT_EQ(self.ends(), 0);
  one.finish();
  EXPECT_EQ(self.completed(), 1);

  forwards two;
  EXPECT_TRUE(self.park_forwarding(two)) << "the stop came before: the caller forwards it";
  EXPECT_EQ(two.forwarded, 0);
  two.finish();
  EXPECT_EQ(self.completed(), 2);
}

// ---- threads ----------------------------------------------------------------------------------------------------------

// Calls each of `bodies` on a thread of its own, all at once, `rounds` times; `before` and `after` run in between. Threads
// sleep for each other: ones that yield get a turn after all else that runs on a loaded machine.
template <std::size_t N, class Before, class After>
void race(int rounds, Before before, std::array<std::function<void()>, N> bodies, After after) {
  std::mutex lock;
  std::condition_variable changed;
  int round = 0, done = 0;
  const auto await = [&](const int& counter, int value) {
    std::unique_lock guard{lock};
    changed.wait(guard, [&] { return counter == value; });
  };
  const auto add_to = [&](int& counter, int until) {
    const std::lock_guard guard{lock};
    if (++counter == until) changed.notify_all();
  };
  std::vector<std::jthread> threads;
  before();
  for (auto& body : bodies)
    threads.emplace_back([&, mine = std::move(body)] {
      for (int i = 1; i <= rounds; ++i) {
        await(round, i);
        mine();
        add_to(done, i * static_cast<int>(N));
      }
    });
  for (int i = 1; i <= rounds; ++i) {
    add_to(round, i);
    await(done, i * static_cast<int>(N));
    after();
    if (i != rounds) before();
  }
}

TEST(waiter, two_wakers_and_a_stop_end_it_once) {
  std::optional<napper> self;
  std::optional<leaves> one;
  const auto wake = [&] {
    if (one->try_claim()) one->wake();
  };
  race<3>(
      test::rounds(10'000),
      [&] {
        self.emplace();
        one.emplace();
        ASSERT_TRUE(self->park(*one));
      },
      {wake, wake, [&] { self->request_stop(); }}, [&] { ASSERT_EQ(self->ends(), 1); });
}

TEST(waiter, finish_and_a_stop_end_a_forwarding_wait_once) {
  std::optional<napper> self;
  std::optional<forwards> one;
  race<2>(
      test::rounds(10'000),
      [&] {
        self.emplace();
        one.emplace();
        ASSERT_FALSE(self->park_forwarding(*one));
      },
      {[&] { one->finish(); }, [&] { self->request_stop(); }}, [&] { ASSERT_EQ(self->completed(), 1); });
}

// ---- a primitive ------------------------------------------------------------------------------------------------------

// A semaphore as a primitive of weft is written, reduced to what the protocol is about.
class permits {
 public:
  explicit permits(int free) : free_{free} {}

  void give() {
    waiter* woken = nullptr;
    {
      std::lock_guard guard{lock_};
      while ((woken = line_.pop()) != nullptr && !woken->try_claim()) {  // a stop came first: the next
      }
      if (woken == nullptr) ++free_;
    }
    if (woken != nullptr) woken->wake();
  }

  class awaiter : waiter {
   public:
    explicit awaiter(permits& of) noexcept : waiter{type}, of_{of} {}
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller) noexcept {
      auto& self = *caller.promise().owner;
      {
        std::lock_guard guard{of_.lock_};
        if (of_.free_ > 0) return --of_.free_, false;
        of_.line_.push(*this);
        if (self.park(*this)) return true;
        of_.line_.remove(*this);
      }
      weft::detail::end_stopped(self);
      return true;
    }
    void await_resume() const noexcept {}

   private:
    static on_stop leave(waiter& self) noexcept {
      permits& of = static_cast<awaiter&>(self).of_;
      std::lock_guard guard{of.lock_};
      of.line_.remove(self);
      return on_stop::left;
    }
    static constexpr wait_type type{.leave = leave, .name = "permits"};
    permits& of_;
  };
  friend awaiter awaiter_in_root(permits& of) noexcept { return awaiter{of}; }

  int free() const { return free_; }

 private:
  std::mutex lock_;
  waiter_line line_;
  int free_;
};

// Threads take and give back permits and are stopped at any moment. What comes out is what went in.
TEST(waiter, a_semaphore_loses_no_permit_under_stops) {
  permits three{3};
  std::atomic<int> inside = 0, most = 0, stopped = 0, taken = 0;
  auto use = [&]() -> weft::task<> {
    co_await three;
    const int now = ++inside;
    for (int seen = most.load(); seen < now && !most.compare_exchange_weak(seen, now);) {
    }
    ++taken;
    std::this_thread::yield();
    --inside;
    three.give();
  };
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      std::minstd_rand random{t + 1};
      for (int i = 0; i < test::rounds(2'000); ++i) {
        weft::stop_source stop;
        std::jthread stopper;
        if (random() % 4 == 0) stopper = std::jthread{[&] { stop.request_stop(); }};
        try {
          weft::sync_wait(use(), stop.token());
        } catch (weft::stopped) {
          ++stopped;
        }
      }
    });
  threads.clear();
  EXPECT_EQ(three.free(), 3);
  EXPECT_LE(most, 3);
  EXPECT_EQ(taken + stopped, 6 * test::rounds(2'000));
}

// Each thread becomes the owner, has that revoked by the next one, and comes once more while that one is at it.
TEST(learning_lock, lets_one_in_whoever_is_the_owner) {
  const weft::pool makes_light_fences_free{{.threads = 1}};
  for (int round = 0; round != test::rounds(20); ++round) {
    weft::detail::learning_lock lock{3};
    int number = 0;
    std::atomic<int> next{0};
    auto use = [&](int times) {
      for (int i = 0; i != times; ++i) {
        lock.lock();
        ++number;
        lock.unlock();
      }
    };
    std::vector<std::jthread> threads;
    for (int t = 0; t != 6; ++t)
      threads.emplace_back([&, t] {
        for (int now = next; now != t; now = next) next.wait(now);
        use(2000);
        ++next;
        next.notify_all();
        use(10);
      });
    threads.clear();
    EXPECT_EQ(number, 6 * 2010);
  }
}

}  // namespace
