// What a program must not do ends it, with a sentence that says who broke what.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/executor.hpp>
#include <weft/task.hpp>

#include "support/weft_test.hpp"

namespace {

using weft::result;
using weft::stop_source;
using weft::sync_wait;
using weft::task;

// Each in a process of its own, started anew: threads of this one would be missing in a fork.
class misuse : public testing::Test {
 protected:
  misuse() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

task<int> number(int n) { co_return n; }

TEST_F(misuse, a_task_awaited_twice) {
  auto twice = []() -> task<int> {
    task<int> one = number(1);
    const int first = co_await std::move(one);
    co_return first + co_await std::move(one);  // NOLINT(bugprone-use-after-move): that is the misuse
  };
  EXPECT_DEATH(sync_wait(twice()), "weft: an empty task was awaited: it was moved from, or awaited before");
}

TEST_F(misuse, an_empty_task) {
  EXPECT_DEATH(sync_wait(task<int>{}), "weft: an empty task was awaited");
  EXPECT_DEATH(weft::start(task<int>{}, [](result<int>) {}), "weft: an empty task was awaited");
}

TEST_F(misuse, sync_wait_inside_a_task) {
  auto blocks = []() -> task<int> { co_return sync_wait(number(1)); };
  EXPECT_DEATH(sync_wait(blocks()), "weft: sync_wait was called inside a task, .*: co_await it");
}

TEST_F(misuse, destroying_a_task_that_waits) {
  const auto destroy = [] {
    test::gate never;
    weft::detail::root* suspended = nullptr;
    auto work = [&]() -> task<int> {
      suspended = weft::detail::current_root();
      co_await never;
      co_return 0;
    };
    weft::start(work(), [](result<int>) {});
    weft::detail::destroy_frame(suspended->top);
  };
  EXPECT_DEATH(destroy(), "weft: a task was destroyed while it waits");
}

TEST_F(misuse, a_manual_executor_with_jobs_inside) {
  const auto leave_early = [] {
    weft::manual_executor loop;
    weft::start(loop, number(1), [](result<int>) {});
  };
  EXPECT_DEATH(leave_early(), "weft: a manual_executor was destroyed with jobs inside");
}

TEST_F(misuse, a_stop_source_that_dies_before_its_callback) {
  const auto die = [] {
    auto source = std::make_unique<stop_source>();
    weft::stop_callback late{source->token(), [] {}};
    source.reset();
  };
  EXPECT_DEATH(die(), "weft: a stop_source was destroyed before a stop_callback on it");
}

TEST_F(misuse, a_window_of_nothing) {
  EXPECT_DEATH(static_cast<void>(weft::windowed(0, std::vector<task<int>>{})), "weft: windowed.0, range. would never");
}

TEST_F(misuse, a_callback_that_throws) {
  EXPECT_DEATH(weft::start(number(1), [](result<int>) { throw 1; }), "");
}

#if defined(WEFT_TEST_ASAN)
TEST_F(misuse, a_closure_that_dies_before_its_coroutine) {
  const auto dangle = [] {
    auto make = [] {
      auto text = std::make_unique<int>(1);
      auto closure = [text = std::move(text)]() -> task<int> { co_return *text; };
      return std::make_unique<decltype(closure)>(std::move(closure));
    };
    auto closure = make();
    task<int> orphan = (*closure)();
    closure.reset();
    sync_wait(std::move(orphan));
  };
  EXPECT_DEATH(dangle(), "heap-use-after-free");
}
#endif

}  // namespace
