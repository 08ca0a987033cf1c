#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/future.hpp>
#include <weft/on_scope_exit.hpp>
#include <weft/task.hpp>

#include "support/weft_test.hpp"

namespace {

using weft::as_result;
using weft::on_scope_exit;
using weft::stop_source;
using weft::stopped;
using weft::sync_wait;
using weft::task;

using log = std::string;

task<> append(log& to, char what) {
  to += what;
  co_return;
}
task<> append_behind(test::gate& door, log& to, char what) {
  co_await door;
  to += what;
}

task<> nothing() { co_return; }

// Registers 'c', notes 'b', and ends as it is told.
enum class ending { value, exception, stop };
task<int> ends(log& to, ending how) {
  co_await on_scope_exit(append(to, 'c'));
  to += 'b';
  if (how == ending::exception) throw std::runtime_error{"ended"};
  if (how == ending::stop) {
    weft::promise<> never;
    never.set_stopped();
    co_await never.get_future();
  }
  co_return 7;
}

WEFT_TEST("on_scope_exit: runs before the awaiter goes on, however the task ends") {
  for (ending how : {ending::value, ending::exception, ending::stop}) {
    log to;
    auto outcome = co_await as_result(ends(to, how));
    to += 'a';
    EXPECT_EQ(to, "bca");
    EXPECT_EQ(outcome.has_value(), how == ending::value);
    EXPECT_EQ(outcome.is_stopped(), how == ending::stop);
    if (how == ending::value) {
      EXPECT_EQ(*outcome, 7);
    }
  }
}

WEFT_TEST("on_scope_exit: runs between a stopped callee and a caller that is stopped with it") {
  auto outer = [](log& to) -> task<int> {
    struct note_end {
      log& to;
      ~note_end() { to += 'o'; }
    } end{to};
    co_await on_scope_exit(append(to, 'O'));
    co_return co_await ends(to, ending::stop);
  };
  log to;
  EXPECT_TRUE((co_await as_result(outer(to))).is_stopped());
  EXPECT_EQ(to, "bcoO");
}

WEFT_TEST("on_scope_exit: of several, the last one runs first") {
  auto body = [](log& to) -> task<> {
    for (char name : {'1', '2', '3'}) co_await on_scope_exit(append(to, name));
    to += '0';
  };
  log to;
  co_await body(to);
  EXPECT_EQ(to, "0321");
}

WEFT_TEST("on_scope_exit: runs when the task's own variables are gone") {
  auto body = [](log& to) -> task<> {
    struct note_end {
      log& to;
      ~note_end() { to += 'v'; }
    } end{to};
    co_await on_scope_exit(append(to, 'c'));
  };
  log to;
  co_await body(to);
  EXPECT_EQ(to, "vc");
}

WEFT_TEST("on_scope_exit: calls a function then, which keeps its arguments") {
  auto body = [](log& to) -> task<> {
    auto cleanup = [](log& to, std::unique_ptr<int> n) -> task<> {
      to += std::to_string(*n);
      co_return;
    };
    co_await on_scope_exit(cleanup, std::ref(to), std::make_unique<int>(3));
    co_await on_scope_exit([&to]() -> task<> {
      to += 'l';
      co_return;
    });
    to += 'b';
  };
  log to;
  co_await body(to);
  EXPECT_EQ(to, "bl3");
}

WEFT_TEST("on_scope_exit: a cleanup has cleanups of its own") {
  auto cleanup = [](log& to) -> task<> {
    co_await on_scope_exit(append(to, 'i'));
    to += 'c';
  };
  auto body = [&](log& to) -> task<> {
    co_await on_scope_exit(cleanup(to));
    to += 'b';
  };
  log to;
  co_await body(to);
  EXPECT_EQ(to, "bci");
}

WEFT_TEST("on_scope_exit: a cleanup that is dropped before the task began does not run") {
  log to;
  {
    [[maybe_unused]] auto dropped = ends(to, ending::value);
  }
  EXPECT_EQ(to, "");
  co_return;
}

TEST(on_scope_exit, at_the_end_of_a_root) {
  for (ending how : {ending::value, ending::exception, ending::stop}) {
    log to;
    weft::start(ends(to, how), [&](weft::result<int>) { to += 'a'; });
    EXPECT_EQ(to, "bca");
  }
}

TEST(on_scope_exit, waits_shielded_from_the_stop_that_ended_the_task) {
  auto body = [](test::gate& never, test::gate& door, log& to) -> task<> {
    co_await on_scope_exit(append_behind(door, to, '1'));
    co_await on_scope_exit(append_behind(door, to, '2'));
    co_await never;
    to += 'x';
  };
  test::gate never, door;
  log to;
  stop_source stop;
  bool ended = false;
  weft::start(
      body(never, door, to),
      [&](weft::result<void> how) {
        EXPECT_TRUE(how.is_stopped());
        ended = true;
      },
      stop.token());
  stop.request_stop();
  EXPECT_FALSE(ended);
  EXPECT_EQ(door.waiting(), 1);
  door.open();
  EXPECT_TRUE(ended);
  EXPECT_EQ(to, "21");
}

TEST(on_scope_exit, a_stop_that_comes_during_a_cleanup_is_seen_after_it) {
  auto inner = [](test::gate& door, log& to) -> task<> { co_await on_scope_exit(append_behind(door, to, 'c')); };
  auto body = [&](test::gate& never, test::gate& door, log& to) -> task<> {
    co_await inner(door, to);
    to += 'b';
    co_await never;
    to += 'x';
  };
  test::gate never, door;
  log to;
  stop_source stop;
  bool ended = false;
  weft::start(body(never, door, to), [&](weft::result<void> how) { ended = how.is_stopped(); }, stop.token());
  stop.request_stop();
  EXPECT_FALSE(ended);
  door.open();
  EXPECT_TRUE(ended);
  EXPECT_EQ(to, "cb");
}

TEST(on_scope_exit, shields_nest) {
  // The inner cleanup ends inside the outer one, which must stay shielded then.
  auto cleanup = [](test::gate& door, log& to) -> task<> {
    auto inner = [](log& to) -> task<> { co_await on_scope_exit(append(to, 'i')); };
    co_await inner(to);
    co_await door;
    to += 'c';
  };
  auto body = [&](test::gate& never, test::gate& door, log& to) -> task<> {
    co_await on_scope_exit(cleanup(door, to));
    co_await never;
  };
  test::gate never, door;
  log to;
  stop_source stop;
  bool ended = false;
  weft::start(body(never, door, to), [&](weft::result<void>) { ended = true; }, stop.token());
  stop.request_stop();
  EXPECT_FALSE(ended);
  door.open();
  EXPECT_TRUE(ended);
  EXPECT_EQ(to, "ic");
}

WEFT_TEST("on_scope_exit: a cleanup that ends stopped has ended") {
  auto cleanup = []() -> task<> {
    weft::promise<> never;
    never.set_stopped();
    co_await never.get_future();
  };
  auto body = [&]() -> task<int> {
    co_await on_scope_exit(cleanup());
    co_return 7;
  };
  EXPECT_EQ(co_await body(), 7);
}

TEST(on_scope_exit, a_cleanup_that_throws_ends_the_program_with_a_sentence) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  auto throws = [](bool exception) -> task<> {
    if (exception) throw std::runtime_error{"disk full"};
    throw 1;
    co_return;
  };
  auto body = [&](bool exception) -> task<> { co_await on_scope_exit(throws(exception)); };
  EXPECT_DEATH(sync_wait(body(true)), "a cleanup given to on_scope_exit threw, and nobody could catch it: disk full");
  EXPECT_DEATH(sync_wait(body(false)), "a cleanup given to on_scope_exit threw, and nobody could catch it");
}

// Ends on another thread than it began on; the frames go home.
TEST(on_scope_exit, on_several_threads) {
  weft::new_thread_executor threads;
  auto body = [](weft::executor& threads, std::atomic<int>& ran) -> task<int> {
    auto count = [](weft::executor& threads, std::atomic<int>& ran) -> task<> {
      co_await weft::as_future(threads, nothing());
      ++ran;
    };
    co_await on_scope_exit(count(threads, ran));
    co_await on_scope_exit(count(threads, ran));
    co_return 1;
  };
  std::atomic<int> ran = 0;
  const int rounds = test::rounds(200);
  for (int i = 0; i < rounds; ++i) EXPECT_EQ(weft::as_future(threads, body(threads, ran)).get(), 1);
  EXPECT_EQ(ran, 2 * rounds);
}

TEST(on_scope_exit, a_deep_chain_of_stopped_tasks_with_cleanups) {
  test::on_small_stack([] {
    struct nest {
      static task<> down(int depth, long& ran) {
        co_await on_scope_exit(count(ran));
        if (depth > 0) co_return co_await down(depth - 1, ran);
        weft::promise<> never;
        never.set_stopped();
        co_await never.get_future();
      }
      static task<> count(long& ran) {
        ++ran;
        co_return;
      }
    };
    long ran = 0;
    const int depth = test::rounds(100'000);
    EXPECT_THROW(sync_wait(nest::down(depth, ran)), stopped);
    EXPECT_EQ(ran, depth + 1);
  });
}

}  // namespace
