// The real clock as workers use it: each has a wheel of its own, into which other threads reach.
#include "core/timer_store.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <random>
#include <thread>
#include <vector>
#include <weft/combine.hpp>
#include <weft/hop.hpp>
#include <weft/pool.hpp>
#include <weft/test.hpp>
#include <weft/timed.hpp>

#include "core/worker.hpp"
#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::clock;
using weft::real_clock;
using weft::task;
using weft::detail::timer_store;
using weft::detail::worker_wheel;

// Counts how often it fires, and whether that was early.
struct alarm : weft::timer {
  alarm(fire_function f = ring) noexcept : timer{f} {}
  static void ring(timer& self) noexcept {
    auto& mine = static_cast<alarm&>(self);
    if (real_clock().now() < mine.due) ++mine.early;
    ++mine.rings;
  }
  void set(clock::time_point at) {
    due = at;
    real_clock().arm(*this, at);
  }
  void set_in(std::chrono::nanoseconds d) { set(real_clock().now() + d); }

  clock::time_point due{};
  std::atomic<int> rings{0}, early{0};
};

task<> in_a_task(auto& f) {
  f();
  co_return;
}
// Runs it on that executor, and waits for it.
void run_on(weft::executor& there, auto f) { weft::sync_wait(weft::start_on(there, in_a_task(f))); }

TEST(timer_store, takes_no_more_wheels_than_it_has_room_for) {
  auto store = std::make_unique<timer_store>();
  std::vector<std::unique_ptr<worker_wheel>> wheels;
  for (unsigned i = 0; i != timer_store::most_wheels; ++i)
    EXPECT_TRUE(store->enter(*wheels.emplace_back(std::make_unique<worker_wheel>())));
  worker_wheel one_more;
  EXPECT_FALSE(store->enter(one_more));
}

TEST(timer_store, looks_at_a_wheel_before_its_first_slot_begins) {
  using weft::detail::timer_wheel;
  EXPECT_EQ(timer_store::look_at(0), clock::time_point{});
  EXPECT_EQ(timer_store::look_at(1), clock::time_point{});
  EXPECT_EQ(timer_store::look_at(10), timer_wheel::begin_of(10 - timer_store::ahead));
  EXPECT_EQ(timer_store::look_at(timer_wheel::never), clock::time_point::max());
}

// As where the owner of a wheel has set its flag when another thread, which has all locks, forks.
TEST(timer_store, may_be_forked_again_in_a_child_that_lacks_the_owner_of_a_wheel) {
  timer_store store;
  worker_wheel one;
  ASSERT_TRUE(store.enter(one));
  one.lock.enter();  // and never left: the child does not have that thread
  const pid_t child = fork();
  if (child == 0) {
    ::alarm(60);  // instead of for ever
    store.lock().lock();
    store.forget_those_of_others(0);
    store.after_fork();
    store.before_fork();
    store.after_fork();
    _exit(17);
  }
  one.lock.leave();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 17);
}

TEST(real_clock, fires_what_a_worker_has_armed) {
  weft::pool workers{{.threads = 1}};
  std::array<alarm, 4> all;
  run_on(workers.executor(), [&] {
    all[0].set({});
    all[1].set(clock::time_point::min());
    all[2].set_in(1ms);
    all[3].set_in(20ms);
  });
  for (alarm& one : all) {
    test::until([&] { return one.rings == 1; });
    EXPECT_EQ(one.early, 0);
    EXPECT_FALSE(real_clock().cancel(one));
  }
}

// Nobody else looks for jobs meanwhile.
TEST(real_clock, fires_while_the_worker_that_has_armed_computes) {
  weft::pool workers{{.threads = 1}};
  run_on(workers.executor(), [] {
    std::array<alarm, 3> all;
    all[0].set_in(100us);
    all[1].set_in(5ms);
    all[2].set_in(40ms);
    for (alarm& one : all)
      while (one.rings == 0) std::this_thread::yield();
    for (alarm& one : all) EXPECT_EQ(one.early, 0);
  });
}

TEST(real_clock, gives_back_what_a_worker_has_armed_for_later) {
  weft::pool workers{{.threads = 1}};
  alarm never, late, later;
  const auto arms = [&] {
    never.set(clock::time_point::max());
    late.set_in(1h);
    later.set_in(1h);
  };
  run_on(workers.executor(), arms);
  EXPECT_TRUE(real_clock().cancel(late)) << "by another thread";
  EXPECT_FALSE(real_clock().cancel(late));
  run_on(workers.executor(), [&] {
    EXPECT_TRUE(real_clock().cancel(never));
    EXPECT_TRUE(real_clock().cancel(later));
    EXPECT_FALSE(real_clock().cancel(later));
    for (int i = 0; i != 1000; ++i) {  // the lock has its bias again
      late.set_in(1h);
      EXPECT_TRUE(real_clock().cancel(late));
    }
  });
  EXPECT_EQ(never.rings + late.rings + later.rings, 0);
}

TEST(real_clock, fires_what_was_armed_in_a_pool_that_has_ended) {
  alarm soon, late;
  {
    weft::pool workers{{.threads = 2}};
    run_on(workers.executor(), [&] {
      soon.set_in(20ms);
      late.set_in(1h);
    });
  }
  test::until([&] { return soon.rings == 1; });
  EXPECT_EQ(soon.early, 0);
  EXPECT_TRUE(real_clock().cancel(late));
  EXPECT_EQ(late.rings, 0);
}

// Workers come and go, and each thread gets the wheel of one that has ended.
TEST(real_clock, fires_what_many_short_pools_have_armed) {
  constexpr std::size_t pools = 20;
  std::array<alarm, pools> all;
  for (alarm& one : all) {
    weft::pool workers{{.threads = 1}};
    run_on(workers.executor(), [&] { one.set_in(10ms); });
  }
  for (alarm& one : all) {
    test::until([&] { return one.rings == 1; });
    EXPECT_EQ(one.early, 0);
  }
}

TEST(real_clock, a_worker_may_arm_what_has_just_fired_there) {
  struct again : weft::timer {
    again()
        : timer{[](timer& self) noexcept {
            auto& mine = static_cast<again&>(self);
            mine.fires = mine.fires + 1;
            if (mine.fires == 1) {  // on the worker, while this function still runs
              mine.told = true;
              test::until([&] { return mine.armed_again.load(); });
              for (int i = 0; i != 100; ++i) std::this_thread::yield();
            }
          }} {}
    std::atomic<int> fires{0};
    std::atomic<bool> told{false}, armed_again{false};
  };
  static again one;  // since the function may run on when it is cancelled
  weft::pool workers{{.threads = 1}};
  run_on(workers.executor(), [&] {
    real_clock().arm(one, real_clock().now() + 1ms);
    test::until([&] { return one.told.load(); });
    real_clock().arm(one, real_clock().now() + 1h);
    one.armed_again = true;
    EXPECT_TRUE(real_clock().cancel(one)) << "it was armed, although the function still runs";
    EXPECT_FALSE(real_clock().cancel(one));
  });
  EXPECT_EQ(one.fires, 1);
}

// Cancelled by its worker and by others, at the time when it fires.
TEST(real_clock, a_timer_of_a_worker_either_fires_or_was_cancelled) {
  weft::pool workers{{.threads = 2}};
  std::atomic<int> both{0}, neither{0};
  for (int round = 0; round != test::rounds(2'000); ++round) {
    auto one = std::make_unique<alarm>();
    run_on(workers.executor(), [&] { one->set_in(std::chrono::microseconds{round % 60}); });
    const auto cancels = [&] {
      const bool cancelled = real_clock().cancel(*one);
      const int rings = one->rings;
      if (cancelled && rings != 0) ++both;
      if (!cancelled && rings == 0) ++neither;
    };
    if (round % 2 == 0)
      cancels();
    else
      run_on(workers.executor(), cancels);
    EXPECT_EQ(one->early, 0);
  }
  EXPECT_EQ(both, 0);
  EXPECT_EQ(neither, 0);
}

// A million, from workers of two pools and from plain threads, each of which cancels its own and those of its neighbour.
TEST(real_clock, a_million_timers_each_fire_once_or_were_cancelled) {
  constexpr std::size_t parties = 6;
  const std::size_t each = static_cast<std::size_t>(test::rounds(1'000'002)) / parties;
  std::vector<std::vector<alarm>> timers;
  for (std::size_t i = 0; i != parties; ++i) timers.emplace_back(each);
  std::vector<std::vector<std::atomic<int>>> cancelled;
  for (std::size_t i = 0; i != parties; ++i) cancelled.emplace_back(each);
  std::array<std::atomic<std::size_t>, parties> armed{};

  const auto use = [&](std::size_t party) {
    std::minstd_rand random{static_cast<unsigned>(party) + 1};
    const std::size_t neighbour = (party + 1) % parties;
    const auto cancel = [&](std::size_t whose, std::size_t which) {
      if (real_clock().cancel(timers[whose][which])) ++cancelled[whose][which];
    };
    auto now = real_clock().now();
    for (std::size_t i = 0; i != each; ++i) {
      if (i % 64 == 0) now = real_clock().now();
      const auto range = std::uint64_t{1} << random() % 29;  // up to half a second
      timers[party][i].set(now + std::chrono::nanoseconds{random() % range});
      armed[party].store(i + 1, std::memory_order_release);
      if (random() % 4 == 0) cancel(party, i - std::min<std::size_t>(i, random() % 100));
      if (random() % 4 == 0)  // an armed one
        if (const std::size_t its = armed[neighbour].load(std::memory_order_acquire); its != 0)
          cancel(neighbour, random() % its);
    }
  };
  {
    weft::pool one{{.threads = 2}}, other{{.threads = 2}};
    std::vector<std::jthread> threads;
    for (std::size_t party = 0; party != parties; ++party)
      threads.emplace_back([&, party] {
        const auto mine = [&] { use(party); };
        if (party < 2)
          mine();
        else
          run_on((party < 4 ? one : other).executor(), mine);
      });
  }
  for (std::size_t party = 0; party != parties; ++party)
    for (std::size_t i = 0; i != each; ++i) {
      alarm& one = timers[party][i];
      const int gone = cancelled[party][i];
      ASSERT_LE(gone, 1);
      if (gone == 0) test::until([&] { return one.rings != 0; });
      static_cast<void>(real_clock().cancel(one));  // its function has returned
      ASSERT_EQ(one.rings, 1 - gone);
      ASSERT_EQ(one.early, 0);
    }
}

// Many in one slot, of which the clock brings 64 at a time, and all of which are late.
TEST(real_clock, fires_in_order_what_lies_in_one_slot) {
  struct numbered : alarm {
    numbered() : alarm{ring_in_turn} {}
    static void ring_in_turn(timer& self) noexcept {
      auto& mine = static_cast<numbered&>(self);
      if (mine.latest->exchange(mine.due) > mine.due) ++*mine.disorders;
      ring(self);
    }
    std::atomic<clock::time_point>* latest = nullptr;
    std::atomic<int>* disorders = nullptr;
  };
  struct holder : weft::timer {  // nothing else fires while this does
    holder()
        : timer{[](timer& self) noexcept {
            auto& mine = static_cast<holder&>(self);
            mine.held = true;
            test::until([&] { return mine.released.load(); });
          }} {}
    std::atomic<bool> held{false}, released{false};
  } hold;
  real_clock().arm(hold, {});
  test::until([&] { return hold.held.load(); });
  weft::pool workers{{.threads = 1}};
  std::atomic<clock::time_point> latest{clock::time_point{}};
  std::atomic<int> disorders{0};
  std::vector<numbered> all(static_cast<std::size_t>(test::rounds(20'000)));
  run_on(workers.executor(), [&] {
    std::minstd_rand random{1};
    const auto at = real_clock().now() + 20ms;
    for (numbered& one : all) {
      one.latest = &latest;
      one.disorders = &disorders;
      one.set(at + std::chrono::microseconds{random() % 1'000});
    }
    while (real_clock().now() < at + 1ms) std::this_thread::yield();
  });
  hold.released = true;
  for (alarm& one : all) {
    test::until([&] { return one.rings == 1; });
    EXPECT_EQ(one.early, 0);
  }
  EXPECT_EQ(disorders, 0);
  EXPECT_FALSE(real_clock().cancel(hold));
}

WEFT_TEST("timeout: migrates with its task") {
  weft::pool workers{{.threads = 4}};
  const auto hops = [&]() -> task<int> {
    int sum = 0;
    for (int i = 0; i != test::rounds(2'000); ++i) {
      const auto there = [&]() -> task<int> {
        co_await weft::yield();
        co_return 1;
      };
      sum += co_await weft::timeout(1h, there());
    }
    co_return sum;
  };
  const auto [a, b, c] = co_await weft::start_on(workers.executor(), weft::when_all(hops(), hops(), hops()));
  EXPECT_EQ(a + b + c, 3 * test::rounds(2'000));
}

// The child has none of the pool's threads, and arms in wheels of its own.
TEST(real_clock, works_with_a_pool_in_a_forked_child) {
#if defined(WEFT_TEST_TSAN)
  GTEST_SKIP() << "the thread sanitizer starts no threads after a fork";
#endif
  weft::pool workers{{.threads = 1}};
  alarm late;
  run_on(workers.executor(), [&] { late.set_in(1h); });
  const pid_t child = fork();
  if (child == 0) {
    if (real_clock().cancel(late)) _exit(1);  // it was the pool's, which the child does not have
    alarm soon;
    weft::pool own{{.threads = 1}};
    run_on(own.executor(), [&] { soon.set_in(5ms); });
    while (soon.rings == 0) usleep(100);
    _exit(17);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 17);
  EXPECT_TRUE(real_clock().cancel(late));
}

TEST(real_clock_death, by_a_timer_that_is_armed_twice) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto twice = [] {
    static alarm one;
    one.set_in(1h);
    one.set_in(1h);
  };
  EXPECT_DEATH(twice(), "a timer was armed that is armed already: cancel it first");
  EXPECT_DEATH(
      {
        weft::pool workers{{.threads = 1}};
        run_on(workers.executor(), twice);
      },
      "a timer was armed that is armed already: cancel it first");
}

// Workers arm and cancel while exit() ends the clock.
TEST(real_clock, a_process_may_end_while_workers_sleep) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (int i = 0; i != 10; ++i)
    EXPECT_EXIT(
        {
          auto* const workers = new weft::pool{{.threads = 2}};  // never destroyed, as its tasks never end
          const auto sleeps = []() -> task<> {
            for (;;) {
              co_await weft::sleep_for(20us);
              const auto never = [] { return weft::sleep_for(1h); };
              static_cast<void>(co_await weft::as_result(weft::timeout(3ms, never())));
            }
          };
          for (int t = 0; t != 4; ++t) weft::start(workers->executor(), sleeps(), [](const weft::result<void>&) {});
          std::this_thread::sleep_for(5ms);
          std::exit(5);
        },
        testing::ExitedWithCode(5), "");
}

// A static that a worker serves is destroyed after the clock's thread has ended. What that worker has armed and cancelled
// before is earlier than what it arms then.
TEST(real_clock, fires_what_a_worker_arms_when_the_clock_has_ended) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  struct late_user {
    weft::pool workers{{.threads = 1}};
    alarm earlier, lies_longer;
    ~late_user() {
      run_on(workers.executor(), [&] {
        alarm late;
        late.set_in(400ms);
        while (late.rings == 0) std::this_thread::yield();
        if (late.early != 0) std::_Exit(1);
      });
      while (lies_longer.rings == 0) std::this_thread::yield();  // the clock looks at what lies there from before, too
      std::_Exit(6);
    }
  };
  EXPECT_EXIT(
      {
        static late_user one;  // made before the clock starts
        run_on(one.workers.executor(), [&] {
          for (int late = 0;; ++late) {
            one.earlier.set_in(200ms);
            if (real_clock().cancel(one.earlier)) break;
            while (one.earlier.rings == late) std::this_thread::yield();
          }
          one.lies_longer.set_in(300ms);
        });
        ::alarm(60);  // instead of for ever
        std::exit(5);
      },
      testing::ExitedWithCode(6), "");
}

TEST(real_clock, a_timer_is_no_larger_for_its_wheel) { EXPECT_EQ(sizeof(weft::timer), 48U); }

// The last one, since workers that got no wheel ask for none again. More of them than any other test has.
TEST(real_clock, does_without_a_wheel_where_there_is_no_memory) {
  constexpr std::size_t count = 12;
  weft::pool workers{{.threads = count}};
  std::array<alarm, count> soon, late;
  std::atomic<std::size_t> refused{0};
  for (std::size_t i = 0; i != count; ++i)
    run_on(workers.worker(static_cast<unsigned>(i)), [&, i] {
      const weft::test::no_memory none;
      soon[i].set_in(10ms);
      late[i].set_in(1h);
      EXPECT_TRUE(real_clock().cancel(late[i]));
      late[i].set_in(1h);
      if (weft::detail::this_worker().wheel == nullptr) ++refused;
    });
#if !defined(WEFT_TEST_ASAN) && !defined(WEFT_TEST_TSAN)  // which have an allocator of their own
  EXPECT_GT(refused, 0U) << "all had one before";
#endif
  for (std::size_t i = 0; i != count; ++i) {
    EXPECT_TRUE(real_clock().cancel(late[i]));
    test::until([&] { return soon[i].rings == 1; });
    EXPECT_EQ(soon[i].early + late[i].rings, 0);
  }
  std::atomic<std::size_t> without{0};
  for (std::size_t i = 0; i != count; ++i)
    run_on(workers.worker(static_cast<unsigned>(i)), [&, i] {
      late[i].set_in(1h);
      EXPECT_TRUE(real_clock().cancel(late[i]));
      if (weft::detail::this_worker().wheel == nullptr) ++without;
    });
  EXPECT_EQ(without, refused) << "each timer asked for memory again";
}

}  // namespace
