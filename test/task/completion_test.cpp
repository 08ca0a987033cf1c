// How work ends, and where that is seen: sync_wait, as_result and start; value, exception and stop.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <weft/executor.hpp>
#include <weft/task.hpp>

#include "support/weft_test.hpp"

namespace {

using weft::as_result;
using weft::result;
using weft::start;
using weft::stop_source;
using weft::stopped;
using weft::sync_wait;
using weft::task;

task<int> number(int n) { co_return n; }
task<int> throws() {
  throw weft::error{weft::errc::closed, "read", "pipe"};
  co_return 0;
}
task<int> wait_at(test::gate& door) {
  co_await door;
  co_return 1;
}
// Counts itself for as long as its frame lives.
task<int> wait_counted(test::gate& door, std::atomic<int>& alive) {
  const test::counted here{alive};
  co_return co_await wait_at(door);
}

// ---- sync_wait ------------------------------------------------------------------------------------------------------

TEST(sync_wait, blocks_until_another_thread_wakes_the_task) {
  for (int i = 0; i < test::rounds(1000); ++i) {
    test::gate door;
    std::jthread porter{[&] { door.open(); }};
    EXPECT_EQ(sync_wait(wait_at(door)), 1);
  }
}

TEST(sync_wait, throws_what_the_task_threw) {
  EXPECT_THROW(sync_wait(throws()), weft::error);
  EXPECT_EQ(sync_wait(number(1)), 1) << "and leaves the thread as it was";
}

// What it waits for is a job behind its own, in the run of an inline executor that it blocks.
TEST(sync_wait, inside_a_job_of_an_inline_executor_runs_the_jobs_behind_it) {
  struct work : weft::job {
    explicit work(std::function<void()> body) : body{std::move(body)} {
      run = [](weft::job& self) noexcept { static_cast<work&>(self).body(); };
    }
    std::function<void()> body;
  };
  weft::inline_executor here;
  test::gate by_job, to_root, by_root;
  auto root = [&]() -> task<> {
    co_await to_root;
    by_root.open();
  };
  start(root(), [](result<void>) {});
  auto both = [&]() -> task<int> {
    const int first = co_await wait_at(by_job);
    to_root.open();  // wakes a root without an executor, so behind this job again
    co_return first + co_await wait_at(by_root);
  };
  int waited = 0;
  work behind{[&] { by_job.open(); }};
  work blocks{[&] {
    here.post(behind);
    waited = sync_wait(both());
  }};
  here.post(blocks);
  EXPECT_EQ(waited, 2);
}

TEST(sync_wait, throws_stopped_when_told_so_before) {
  stop_source stop;
  stop.request_stop();
  test::gate never;
  std::atomic<int> alive = 0;
  EXPECT_THROW(sync_wait(wait_counted(never, alive), stop.token()), stopped);
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(sync_wait(number(2), stop.token()), 2) << "what does not wait is not stopped";
}

TEST(sync_wait, throws_stopped_when_told_so_while_it_waits) {
  for (int i = 0; i < test::rounds(500); ++i) {
    stop_source stop;
    test::gate never;
    std::atomic<int> alive = 0;
    std::jthread stopper{[&] {
      test::until([&] { return never.waiting() == 1; });
      stop.request_stop();
    }};
    EXPECT_THROW(sync_wait(wait_counted(never, alive), stop.token()), stopped);
    EXPECT_EQ(alive, 0);
  }
}

TEST(sync_wait, is_not_touched_by_a_stop_that_comes_after) {
  stop_source stop;
  EXPECT_EQ(sync_wait(number(3), stop.token()), 3);
  EXPECT_TRUE(stop.request_stop());
}

TEST(sync_wait, a_wake_up_and_a_stop_at_once_end_it_once) {
  int woken = 0, ended_stopped = 0;
  for (int i = 0; i < test::rounds(3000); ++i) {
    stop_source stop;
    test::gate door;
    std::atomic<int> alive = 0;
    std::latch both{2};
    std::jthread opener{[&] {
      test::until([&] { return door.waiting() == 1; });
      both.arrive_and_wait();
      door.open();
    }};
    std::jthread stopper{[&] {
      both.arrive_and_wait();
      stop.request_stop();
    }};
    try {
      woken += sync_wait(wait_counted(door, alive), stop.token());
    } catch (stopped) {
      ++ended_stopped;
    }
    EXPECT_EQ(alive, 0);
  }
  EXPECT_EQ(woken + ended_stopped, test::rounds(3000));
}

TEST(sync_wait, the_sleep_of_many_threads_at_one_gate_ends) {
  test::gate door;
  std::atomic<int> through = 0;
  {
    std::array<std::jthread, 8> waiters;
    for (auto& one : waiters) one = std::jthread{[&] { through += sync_wait(wait_at(door)); }};
    test::until([&] { return door.waiting() == 8; });
    door.open();
  }
  EXPECT_EQ(through, 8);
}

// ---- as_result ------------------------------------------------------------------------------------------------------

WEFT_TEST("as_result: holds a value, an exception with its code, or a stop") {
  const result<int> value = co_await as_result(number(4));
  EXPECT_TRUE(value);
  EXPECT_EQ(*value, 4);
  EXPECT_EQ(value.error(), std::error_code{});

  const result<int> failure = co_await as_result(throws());
  EXPECT_FALSE(failure);
  EXPECT_FALSE(failure.is_stopped());
  EXPECT_EQ(failure.error(), weft::errc::closed);
  EXPECT_THROW(failure.value(), weft::error);
}

WEFT_TEST("as_result: of void, references and what can only be moved") {
  auto nothing = []() -> task<> { co_return; };
  auto same = [](int& n) -> task<int&> { co_return n; };
  auto pointer = []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(5); };
  const auto none = co_await as_result(nothing());
  EXPECT_TRUE(none.has_value());
  int n = 0;
  const auto reference = co_await as_result(same(n));
  EXPECT_EQ(&reference.value(), &n);
  auto moved = co_await as_result(pointer());
  EXPECT_EQ(*std::move(moved).value(), 5);
}

WEFT_TEST("as_result: nests") {
  const auto twice = co_await as_result(as_result(throws()));
  EXPECT_TRUE(twice.has_value());
  EXPECT_EQ(twice.value().error(), weft::errc::closed);
}

// The first move is into the task's frame.
WEFT_TEST("as_result: holds what moving the value threw") {
  const auto moved = co_await as_result(test::fragile::made(3));
  EXPECT_TRUE(moved.has_value());
  const auto broken = co_await as_result(test::fragile::made(2));
  EXPECT_THROW(broken.value(), std::runtime_error);
}

TEST(as_result, a_stop_is_seen_and_stops_again_at_the_next_wait) {
  stop_source stop;
  test::gate never;
  std::atomic<int> alive = 0;
  int seen = 0;
  auto work = [&]() -> task<> {
    const result<int> first = co_await as_result(wait_counted(never, alive));
    if (first.is_stopped() && alive == 0) ++seen;
    const auto nested = co_await as_result(as_result(wait_counted(never, alive)));
    if (nested.value().is_stopped() && alive == 0) ++seen;
    EXPECT_EQ(co_await number(1), 1) << "calls go on";
    co_await never;
    ADD_FAILURE() << "waited although it was told to stop";
  };
  std::jthread stopper{[&] {
    test::until([&] { return never.waiting() == 1; });
    stop.request_stop();
  }};
  EXPECT_THROW(sync_wait(work(), stop.token()), stopped);
  EXPECT_EQ(seen, 2);
}

TEST(as_result, unwinds_only_what_it_awaited) {
  stop_source stop;
  stop.request_stop();
  test::gate never;
  std::atomic<int> inner = 0, outer = 0;
  auto levels = [&](auto& self, int depth) -> task<int> {
    const test::counted here{depth > 3 ? outer : inner};
    if (depth == 0) co_return co_await wait_at(never);
    if (depth == 3) {
      const auto caught = co_await as_result(self(self, depth - 1));
      EXPECT_TRUE(caught.is_stopped());
      EXPECT_EQ(inner, 1);
      EXPECT_EQ(outer, 3);
      co_return 1;
    }
    co_return 1 + co_await self(self, depth - 1);
  };
  EXPECT_EQ(sync_wait(levels(levels, 6), stop.token()), 4);
  EXPECT_EQ(inner + outer, 0);
}

TEST(as_result, that_is_never_awaited_frees_the_task) {
  std::atomic<int> alive = 0;
  auto take = [](test::counted) -> task<> { co_return; };
  {
    auto dropped = as_result(take(test::counted{alive}));
    [[maybe_unused]] auto moved = std::move(dropped);
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
}

// A destructor that runs while a stop unwinds may use weft.
TEST(as_result, a_stop_unwinds_past_destructors_that_start_other_work) {
  struct starts_another {
    int& ran;
    ~starts_another() {
      start(number(7), [this](result<int> n) { ran += n.value(); });
    }
  };
  stop_source stop;
  stop.request_stop();
  test::gate never;
  int ran = 0;
  auto inner = [&]() -> task<> {
    const starts_another at_the_end{ran};
    [[maybe_unused]] task<int> unawaited = number(1);
    co_await never;
  };
  auto outer = [&]() -> task<> {
    const starts_another at_the_end{ran};
    co_await inner();
  };
  EXPECT_THROW(sync_wait(outer(), stop.token()), stopped);
  EXPECT_EQ(ran, 14);
}

// ---- start ----------------------------------------------------------------------------------------------------------

TEST(start, runs_here_until_the_first_wait) {
  test::gate door;
  int got = 0;
  start(wait_at(door), [&](result<int> how) { got = how.value(); });
  EXPECT_EQ(got, 0);
  EXPECT_EQ(door.waiting(), 1);
  door.open();
  EXPECT_EQ(got, 1);
  start(number(2), [&](result<int> how) { got = how.value(); });
  EXPECT_EQ(got, 2) << "what does not wait has ended when start returns";
}

TEST(start, gives_the_callback_an_exception_or_a_stop) {
  std::error_code code;
  start(throws(), [&](result<int> how) { code = how.error(); });
  EXPECT_EQ(code, weft::errc::closed);

  stop_source stop;
  test::gate never;
  std::atomic<int> alive = 0;
  bool was_stopped = false;
  start(wait_counted(never, alive), [&](result<int> how) { was_stopped = how.is_stopped(); }, stop.token());
  EXPECT_FALSE(was_stopped);
  EXPECT_EQ(alive, 1);
  stop.request_stop();
  EXPECT_TRUE(was_stopped);
  EXPECT_EQ(alive, 0);
}

TEST(start, takes_callbacks_that_can_only_be_moved_and_tasks_of_every_kind) {
  int seen = 0;
  start(number(1), [&, owned = std::make_unique<int>(10)](result<int> how) { seen += *owned + how.value(); });
  EXPECT_EQ(seen, 11);
  start([]() -> task<> { co_return; }(), [&](result<void> how) { seen += how.has_value(); });
  EXPECT_EQ(seen, 12);
  start([](int& n) -> task<int&> { co_return n; }(seen), [&](result<int&> how) { how.value() += 100; });
  EXPECT_EQ(seen, 112);
  start([]() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(1); }(),
        [&](result<std::unique_ptr<int>> how) { seen += *std::move(how).value(); });
  EXPECT_EQ(seen, 113);
}

TEST(start, gives_the_callback_what_moving_the_value_threw) {
  int values = 0;
  bool broken = false;
  start(test::fragile::made(3), [&](result<test::fragile> how) { values += how.has_value(); });
  EXPECT_EQ(values, 1) << "it is moved once into the frame, and once out of it";
  start(test::fragile::made(2), [&](result<test::fragile> how) {
    EXPECT_THROW(how.value(), std::runtime_error);
    broken = true;
  });
  EXPECT_TRUE(broken);
}

TEST(start, the_callback_is_outside_of_the_task) {
  const weft::env* inside = nullptr;
  const weft::env* after = nullptr;
  int nested = 0;
  auto work = [&]() -> task<> {
    inside = &weft::current_env();
    co_return;
  };
  weft::manual_executor loop;
  start(loop, work(), [&](result<void>) {
    after = &weft::current_env();
    EXPECT_EQ(after->executor, nullptr) << "that task is gone";
    start(number(5), [&](result<int> how) { nested = how.value(); });
    nested += sync_wait(number(6));  // nothing is blocked: no task runs here
  });
  loop.run_all();
  EXPECT_NE(inside, after);
  EXPECT_EQ(nested, 11);
}

TEST(start, runs_and_resumes_on_its_executor) {
  weft::manual_executor loop;
  test::gate door;
  std::thread::id there;
  bool ended = false;
  auto work = [&]() -> task<> {
    EXPECT_EQ(weft::current_env().executor, &loop);
    co_await door;
    there = std::this_thread::get_id();
  };
  start(loop, work(), [&](result<void>) { ended = true; });
  EXPECT_EQ(door.waiting(), 0) << "nothing runs before the loop does";
  EXPECT_EQ(loop.run_all(), 1u);
  EXPECT_EQ(door.waiting(), 1);
  std::jthread{[&] { door.open(); }}.join();
  EXPECT_FALSE(ended);
  EXPECT_EQ(loop.run_all(), 1u);
  EXPECT_TRUE(ended);
  EXPECT_EQ(there, std::this_thread::get_id());
}

TEST(start, each_turn_of_a_task_may_be_on_another_thread) {
  std::atomic<int> ended = 0;
  test::gate first, second;
  {
    weft::new_thread_executor threads;
    for (int i = 0; i < 20; ++i)
      start(
          threads,
          [](test::gate& first, test::gate& second) -> task<int> {
            co_await first;
            co_await second;
            co_return 1;
          }(first, second),
          [&](result<int> how) { ended += how.value(); });
    test::until([&] { return first.waiting() == 20; });
    first.open();
    test::until([&] { return second.waiting() == 20; });
    second.open();
    test::until([&] { return ended == 20; });
  }
  EXPECT_EQ(ended, 20);
}

TEST(start, a_stop_races_with_the_start_and_the_end_of_a_task) {
  std::atomic<int> ended = 0, alive = 0;
  const int rounds = test::rounds(3000);
  {
    weft::new_thread_executor threads;
    for (int i = 0; i < rounds; ++i) {
      stop_source stop;
      test::gate door;
      std::atomic<bool> over = false;
      std::jthread stopper{[&] { stop.request_stop(); }};
      if (i % 2 == 0) door.open();  // half of them never wait
      start(
          threads, wait_counted(door, alive),
          [&](result<int> how) {
            EXPECT_TRUE(how.is_stopped() || how.has_value());
            ++ended;
            over = true;
          },
          stop.token());
      test::until([&] { return over.load(); });
    }
  }
  EXPECT_EQ(ended, rounds);
  EXPECT_EQ(alive, 0);
}

// The callbacks of one source run one after the other, and each ends its task inside the stop.
TEST(start, one_stop_ends_many_tasks) {
  stop_source stop;
  test::gate never;
  int ended = 0;
  for (int i = 0; i < 1000; ++i)
    start(wait_at(never), [&](result<int> how) { ended += how.is_stopped(); }, stop.token());
  EXPECT_EQ(never.waiting(), 1000);
  stop.request_stop();
  EXPECT_EQ(ended, 1000);
  EXPECT_EQ(never.waiting(), 0);
}

TEST(start, a_chain_of_tasks_that_wake_each_other_needs_no_stack) {
  test::on_small_stack([] {
    constexpr int tasks = 20'000;
    std::vector<test::gate> doors(tasks + 1);
    int ended = 0;
    auto pass_on = [](test::gate& mine, test::gate& next) -> task<> {
      co_await mine;
      next.open();
    };
    for (int i = 0; i < tasks; ++i) start(pass_on(doors[i], doors[i + 1]), [&](result<void>) { ++ended; });
    doors[0].open();
    EXPECT_EQ(ended, tasks);
  });
}

}  // namespace
