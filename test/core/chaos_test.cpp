// Chaos, which this program has from its environment, as any other has.
#include <sys/wait.h>
#include <unistd.h>
#include <weft/combine.hpp>
#include <weft/future.hpp>
#include <weft/scope.hpp>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>
#include <utility>
#include <vector>
#include <weft/test.hpp>

#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::task;

const bool asked = setenv("WEFT_CHAOS", "7", 1) == 0;  // before the first worker

TEST(chaos, was_begun) {
  ASSERT_TRUE(asked);
  weft::sync_wait([]() -> task<> { co_return; }());
  EXPECT_NE(weft::detail::wait_watch::now(), nullptr);
}

task<std::thread::id> thread_behind(weft::future<> wait) {
  co_await std::move(wait);
  co_return std::this_thread::get_id();
}

// An inline executor runs a task where it is posted: here, or late on another thread.
TEST(chaos, some_wake_ups_are_late_and_from_another_thread) {
  const auto here = std::this_thread::get_id();
  weft::inline_executor ex;
  int elsewhere = 0;
  for (int i = 0; i != 200; ++i) {
    weft::promise<> set;
    std::atomic<bool> over{false};
    std::thread::id where;
    weft::start(ex, thread_behind(set.get_future()), [&](weft::result<std::thread::id> how) {
      where = *how;
      over = true;
    });
    set.set_value();
    test::until([&] { return over.load(); });
    elsewhere += where != here ? 1 : 0;
  }
  EXPECT_GT(elsewhere, 20);
  EXPECT_LT(elsewhere, 180);
}

// One without is promised to go on inside the call that wakes it.
TEST(chaos, keeps_what_is_promised) {
  for (int i = 0; i != 100; ++i) {
    weft::promise<> set;
    bool over = false;
    weft::start(thread_behind(set.get_future()), [&](weft::result<std::thread::id>) { over = true; });
    set.set_value();
    EXPECT_TRUE(over);
  }
}

// Late or not: who pumps by hand finds what was woken before.
template <class Executor>
int found_by_a_pump() {
  int found = 0;
  for (int i = 0; i != 200; ++i) {
    Executor loop;
    weft::promise<> set;
    bool over = false;
    weft::start(loop, thread_behind(set.get_future()), [&](weft::result<std::thread::id>) { over = true; });
    loop.run_all();
    set.set_value();
    loop.run_all();
    found += over ? 1 : 0;
    test::until([&] { return loop.run_all(), over; });
  }
  return found;
}

TEST(chaos, a_pump_finds_what_was_woken) {
  EXPECT_EQ(found_by_a_pump<weft::manual_executor>(), 200);
  EXPECT_EQ(found_by_a_pump<weft::test::seeded_executor>(), 200);
}

task<int> naps(unsigned kind, int value) {
  if (kind % 2 == 0) co_await weft::yield();
  co_await weft::sleep_for(std::chrono::microseconds{kind % 50});
  co_return value;
}

// Whatever the order, what is promised holds.
TEST(chaos, loses_nothing) {
  std::vector<std::jthread> threads;
  std::atomic<int> sum{0}, ended{0};
  const int each = test::rounds(300);
  for (unsigned t = 0; t != 3; ++t)
    threads.emplace_back([&, t] {
      std::minstd_rand random{t + 1};
      for (int i = 0; i != each; ++i) {
        weft::stop_source stop;
        const unsigned kind = static_cast<unsigned>(random());
        auto all = [&]() -> task<int> {
          auto body = [&](weft::scope& s) -> task<int> {
            auto one = s.fork(naps(kind, 1));
            auto [two, three] = co_await weft::when_all(naps(kind / 3, 1), naps(kind / 7, 1));
            co_return two + three + co_await std::move(one);
          };
          co_return co_await weft::with_scope(body);
        };
        std::jthread stopper;
        if (i % 8 == 0) stopper = std::jthread{[&] { stop.request_stop(); }};
        try {
          sum += weft::sync_wait(all(), stop.token());
          ++ended;
        } catch (const weft::stopped&) {
          EXPECT_EQ(i % 8, 0);
        }
      }
    });
  threads.clear();
  EXPECT_EQ(sum, 3 * ended);
  EXPECT_GE(ended, 3 * (each - each / 8 - 1));
}

// The child has no thread but its own, and no chaos.
TEST(chaos, ends_in_a_forked_child) {
#if defined(WEFT_TEST_TSAN)
  GTEST_SKIP() << "the thread sanitizer starts no threads after a fork";
#endif
  const pid_t child = fork();
  if (child == 0) {
    if (weft::detail::wait_watch::now() != nullptr) _exit(1);
    _exit(weft::sync_wait(naps(1, 17)));
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 17);
}

}  // namespace
