// The async stacks in a snapshot: each task's own functions, whatever else the walk has seen, and whatever its children do.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/observe.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/sync.hpp>
#include <weft/task.hpp>

#include "support/weft_test.hpp"

namespace {

using test::until;
using weft::scope;
using weft::snapshot;
using weft::take_snapshot;
using weft::task;
using weft::task_id;
using weft::task_info;
using weft::task_kind;
using weft::with_scope;

std::string stack_of(const task_info& one) {
  std::string all;
  for (const weft::async_frame& frame : one.stack) all += frame.function() + "\n";
  return all;
}

bool names(const weft::async_frame& frame, const char* function) {
  return frame.function().find(function) != std::string::npos;
}

bool shows(const task_info& one, const char* function) {
  return std::any_of(one.stack.begin(), one.stack.end(),
                     [&](const weft::async_frame& frame) { return names(frame, function); });
}

// ---- fibers ---------------------------------------------------------------------------------------------------------------

[[gnu::noinline]] int call_in_fiber(weft::event& over, int depth) {
  if (depth == 0)
    weft::await(over.wait());
  else
    depth += call_in_fiber(over, depth - 1);
  return depth;
}

task<> waits_beside_fibers(weft::event& over) { co_await over.wait(); }

// Deep calls of a fiber come first, then a fiber with fewer, then tasks without any.
TEST(snapshot_stack, of_a_task_begins_with_no_calls_of_a_fiber) {
  weft::event over;
  snapshot seen;
  weft::sync_wait([&]() -> task<> {
    co_await with_scope([&](scope& s) -> task<> {
      for (int depth : {20, 3}) {
        s.fork(waits_beside_fibers(over));
        s.go([&over, depth] { call_in_fiber(over, depth); });
        s.fork(waits_beside_fibers(over));
      }
      s.fork([&]() -> task<> { co_await when_all(waits_beside_fibers(over), waits_beside_fibers(over)); });
      seen = take_snapshot();
      over.set();
      co_return;
    });
  }());
  int tasks = 0;
  std::vector<std::size_t> calls;
  for (const task_info& one : seen.tasks) {
    if (one.kind == task_kind::fiber) {
      calls.push_back(static_cast<std::size_t>(
          std::count_if(one.stack.begin(), one.stack.end(),
                        [](const weft::async_frame& frame) { return names(frame, "call_in_fiber"); })));
      continue;
    }
    ++tasks;
    EXPECT_FALSE(shows(one, "call_in_fiber")) << stack_of(one);
    if (shows(one, "waits_beside_fibers")) {
      EXPECT_TRUE(names(one.stack[0], "waits_beside_fibers")) << stack_of(one);
    }
  }
  EXPECT_GE(tasks, 7);
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(std::max(calls[0], calls[1]), 21U);
  EXPECT_EQ(std::min(calls[0], calls[1]), 4U);
}

// ---- joins ----------------------------------------------------------------------------------------------------------------

task<std::unique_ptr<int>> gives_at_once(int value) { co_return std::make_unique<int>(value); }
task<int> gives_behind(weft::event& over, int value) {
  co_await over.wait();
  co_return value;
}

// The first callee ends while its caller borrows its parent's root, and its frame goes when the caller has one of its own.
task<> ends_a_callee_late(weft::event& first, weft::event& second, int& sum) {
  sum += *co_await gives_at_once(1) + co_await gives_behind(first, 2);
  co_await second.wait();
}

task<> waits_for_two(weft::event& first, weft::event& second, weft::event& third, int& sum) {
  co_await when_all(ends_a_callee_late(first, second, sum), gives_behind(third, 0));
}

task<> waits_for_those(weft::event& first, weft::event& second, weft::event& third, int& sum) {
  co_await when_all(waits_for_two(first, second, third, sum), gives_behind(third, 0));
}

// Asked after each step: the stacks of those that wait for a join begin where they do so.
TEST(snapshot_stack, of_who_waits_in_a_join_is_not_that_of_a_child) {
  weft::event first, second, third;
  int sum = 0;
  bool ended = false;
  task_id top;
  start(
      [&]() -> task<> {
        top = weft::this_task::id();
        co_await waits_for_those(first, second, third, sum);
      }(),
      [&](weft::result<void>) { ended = true; });
  for (weft::event* step : std::array<weft::event*, 3>{&first, &second, &third}) {
    const snapshot seen = take_snapshot();
    EXPECT_TRUE(seen.is_complete);
    int joins = 0;
    for (const task_info& one : seen.tasks) {
      if (one.waits.empty() || std::string{one.waits[0].what} != "children of a when_all") continue;
      ++joins;
      const char* const its = one.id == top ? "waits_for_those" : "waits_for_two";
      ASSERT_FALSE(one.stack.empty());
      EXPECT_TRUE(names(one.stack[0], its)) << stack_of(one);
      EXPECT_FALSE(shows(one, "ends_a_callee_late")) << stack_of(one);
      if (one.id == top) {
        EXPECT_FALSE(shows(one, "waits_for_two")) << stack_of(one);
      }
    }
    EXPECT_EQ(joins, 2);
    step->set();
  }
  EXPECT_TRUE(ended);
  EXPECT_EQ(sum, 3);
}

// Under the thread sanitizer, too: a join ends while the wait of its parent is held, and its children end callees late.
TEST(snapshot_stack, beside_joins_that_end) {
  weft::pool p{{.threads = 3}};
  std::atomic<bool> end{false};
  std::atomic<long> sums{0};
  std::thread thread{[&] {
    const auto joins = [&]() -> task<> {
      const auto yields = [](int value) -> task<int> {
        co_await weft::yield();
        co_return value;
      };
      const auto child = [&]() -> task<int> { co_return *co_await gives_at_once(1) + co_await yields(2); };
      const auto both = [&]() -> task<int> {
        const auto [a, b] = co_await when_all(child(), child());
        co_return a + b;
      };
      while (!end) {
        const auto [a, b] = co_await when_all(both(), both());
        sums += a + b - 12;
      }
    };
    p.run(with_scope([&](scope& s) -> task<> {
      for (int i = 0; i != 6; ++i) s.fork(joins());
      co_return;
    }));
  }};
  std::size_t stacks = 0;
  for (int i = 0; i != test::rounds(10000); ++i) {
    const snapshot seen = take_snapshot();
    for (const task_info& one : seen.tasks) stacks += one.stack.size();
  }
  end = true;
  thread.join();
  EXPECT_GT(stacks, 0U);
  EXPECT_EQ(sums, 0);
}

}  // namespace
