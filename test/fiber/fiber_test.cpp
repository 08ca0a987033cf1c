// Fibers: plain functions in a scope, which wait as tasks do.
#include <weft/fiber.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cfenv>
#include <chrono>
#include <coroutine>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>
#include <weft/async_generator.hpp>
#include <weft/channel.hpp>
#include <weft/combine.hpp>
#include <weft/coroutine.hpp>
#include <weft/executor.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/stack_pool.hpp>
#include <weft/sync.hpp>
#include <weft/task.hpp>
#include <weft/with.hpp>

#include "support/timed_root.hpp"
#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::await;
using weft::fork_status;
using weft::scope;
using weft::stopped;
using weft::sync_wait;
using weft::task;
using weft::with_scope;

task<int> number(int n) { co_return n; }
task<int> after(test::gate& door, int n) {
  co_await door;
  co_return n;
}

/// Waits at the bottom of so many calls.
int deep(int levels, test::gate& door) {  // NOLINT(misc-no-recursion)
  const int below = levels == 0 ? await(after(door, 0)) : deep(levels - 1, door);
  return below + 1;
}

// ---- values ---------------------------------------------------------------------------------------------------------------

WEFT_TEST("fiber: gives what its function returns") {
  auto body = [](scope& s) -> task<> {
    EXPECT_EQ(co_await s.go([] { return 4; }), 4);
    weft::fork<int> waits = s.go([](int a, int b) { return await(number(a)) + await(number(b)); }, 2, 3);
    EXPECT_EQ(co_await std::move(waits), 5);
    weft::fork<std::unique_ptr<int>> moves =
        s.go([](std::unique_ptr<int> p) { return ++*p, std::move(p); }, std::make_unique<int>(7));
    EXPECT_EQ(*co_await std::move(moves), 8);
    int here = 1;
    weft::fork<int&> refers = s.go([&]() -> int& { return here; });
    EXPECT_EQ(&co_await std::move(refers), &here);
    co_await s.go([&] { here = 2; });
    EXPECT_EQ(here, 2);
  };
  co_await with_scope(body);
}

WEFT_TEST("fiber: waits at any depth of calls, while its scope goes on") {
  test::gate door;
  auto body = [&](scope& s) -> task<> {
    weft::fork<int> waits = s.go([&] { return deep(50, door); });
    EXPECT_EQ(waits.status(), fork_status::running);
    EXPECT_EQ(s.children(), 1u);
    door.open();
    EXPECT_EQ(co_await std::move(waits), 51);
  };
  co_await with_scope(body);
}

WEFT_TEST("fiber: awaits all that a task does") {
  test::gate door;
  auto numbers = []() -> weft::async_generator<int> {
    for (int i = 0; i != 3; ++i) {
      co_await weft::yield();
      co_yield i;
    }
  };
  auto body = [&](scope& s) -> task<> {
    weft::fork<int> other = s.go([&] { return await(after(door, 1)); });
    auto view = other.view();
    weft::fork<> all = s.go([&] {
      EXPECT_EQ(await(weft::when_all(number(1), number(2))), (std::tuple{1, 2}));
      EXPECT_EQ(await(weft::when_any(after(door, 1), number(2))).index, 1u);
      EXPECT_EQ(await(weft::as_result(weft::timeout(1ms, after(door, 1)))).error(), weft::errc::timed_out);
      EXPECT_EQ(await(number(2) | weft::then([](int n) { return n + 1; })), 3);
      int sum = 0;
      auto source = numbers();
      while (const int* n = await(source.next())) sum += *n;
      EXPECT_EQ(sum, 3);
      auto inner = [&](scope& in) -> task<int> {
        weft::fork<int> f = in.go([] { return await(number(5)); });
        co_return co_await std::move(f);
      };
      EXPECT_EQ(await(with_scope(inner)), 5);
      door.open();
      EXPECT_EQ(await(view), 1);
      weft::this_fiber::sleep_for(1ms);
      weft::this_fiber::yield();
    });
    co_await std::move(all);
    EXPECT_EQ(co_await other, 1);
  };
  co_await with_scope(body);
}

TEST(fiber, takes_turns_with_others) {
  weft::manual_executor loop;
  std::string trace;
  auto turns = [&](char who) {
    for (int i = 0; i != 3; ++i) {
      trace += who;
      weft::this_fiber::yield();
    }
  };
  auto body = [&](scope& s) -> task<> {
    s.go(turns, 'a');
    s.go(turns, 'b');
    co_return;
  };
  bool ended = false;
  weft::start(loop, with_scope(body), [&](weft::result<void> r) { ended = r.has_value(); });
  loop.run_all();
  EXPECT_TRUE(ended);
  EXPECT_EQ(trace, "ababab");
}

WEFT_TEST("fiber: knows itself") {
  EXPECT_FALSE(weft::this_fiber::is_running());
  auto body = [](scope& s) -> task<> {
    const void *one = nullptr, *other = nullptr;
    test::gate door;
    weft::fork<> a = s.go([&] {
      EXPECT_TRUE(weft::this_fiber::is_running());
      one = weft::this_fiber::id();
      await(door.pass());
      EXPECT_EQ(weft::this_fiber::id(), one);
    });
    weft::fork<> b = s.go([&] { other = weft::this_fiber::id(); });
    EXPECT_FALSE(weft::this_fiber::is_running());
    EXPECT_NE(one, other);
    door.open();
    co_await std::move(a);
  };
  co_await with_scope(body);
}

WEFT_TEST("fiber: starts others, which run on its stack until they wait") {
  test::gate door;
  auto body = [&](scope& s) -> task<int> {
    weft::fork<int> outer = s.go([&] {
      weft::fork<int> inner = s.go([&] { return deep(3, door); });
      weft::fork<int> a_task = s.fork(after(door, 10));
      EXPECT_TRUE(weft::this_fiber::is_running());
      weft::this_fiber::yield();
      door.open();
      return await(std::move(inner)) + await(std::move(a_task));
    });
    co_return co_await std::move(outer);
  };
  EXPECT_EQ(co_await with_scope(body), 14);
}

// ---- failures -------------------------------------------------------------------------------------------------------------

TEST(fiber, what_it_throws_fails_its_scope_and_stops_the_others) {
  test::gate never;
  std::atomic<int> alive = 0;
  auto body = [&](scope& s) -> task<> {
    s.go([&] {
      const test::counted one{alive};
      deep(3, never);
    });
    EXPECT_EQ(alive, 1);
    s.go([] {
      weft::this_fiber::yield();
      throw std::runtime_error{"from a fiber"};
    });
    co_await never;
  };
  try {
    sync_wait(with_scope(body));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::runtime_error& thrown) {
    EXPECT_STREQ(thrown.what(), "from a fiber");
  }
  EXPECT_EQ(alive, 0);
}

WEFT_TEST("fiber: catches what it awaits") {
  auto fails = []() -> task<int> {
    co_await weft::yield();
    throw std::runtime_error{"from a task"};
  };
  auto body = [&](scope& s) -> task<std::string> {
    weft::fork<std::string> catches = s.go([&]() -> std::string {
      try {
        await(fails());
      } catch (const std::runtime_error& thrown) {
        weft::this_fiber::yield();  // while it is handled
        return thrown.what();
      }
      return "nothing";
    });
    co_return co_await std::move(catches);
  };
  EXPECT_EQ(co_await with_scope(body), "from a task");
}

weft::on_failure always_again(const std::exception_ptr&) { return weft::on_failure::restart; }

WEFT_TEST("fiber: is started again where the scope's policy says so") {
  int times = 0;
  auto body = [&](scope& s) -> task<int> {
    weft::fork<int> third = s.go([&] {
      weft::this_fiber::yield();
      if (++times < 3) throw std::runtime_error{"again"};
      return times;
    });
    co_return co_await std::move(third);
  };
  EXPECT_EQ(co_await with_scope({.on_error = weft::supervise(always_again, {.restarts = 5})}, body), 3);
}

// How many of a loop of go() there were before it threw.
template <class F>
int go_until_refused(scope& s, const weft::stack_options& options, const F& f) {
  for (int i = 0; i != 1000; ++i) try {
      s.go(options, f);
    } catch (const weft::error& refused) {
      EXPECT_EQ(refused.code(), std::errc::not_enough_memory);
      return i;
    }
  ADD_FAILURE() << "a loop of go() never ends";
  return -1;
}

WEFT_TEST("fiber: without a stack go() throws, and nothing has started") {
  weft::stack_pool few{{.max_stacks = 3}};
  weft::event door;
  int failures = 0, ended = 0;
  auto note = [&](const std::exception_ptr&) { ++failures; };
  auto body = [&](scope& s) -> task<> {
    const auto waits = [&] { await(door.wait()), ++ended; };
    EXPECT_EQ(go_until_refused(s, {.pool = &few}, waits), 3);
    EXPECT_EQ(s.children(), 3U);
    door.set();
    co_return;
  };
  co_await with_scope({.on_error = note}, body);
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(ended, 3);
  EXPECT_EQ(few.stats().in_use, 0U);
}

WEFT_TEST("fiber: without a stack go() throws, also where failures start it again") {
  weft::stack_pool few{{.max_stacks = 3}};
  weft::event door;
  int failures = 0;
  auto again = [&](const std::exception_ptr&) { return ++failures, weft::on_failure::restart; };
  auto body = [&](scope& s) -> task<> {
    EXPECT_EQ(go_until_refused(s, {.pool = &few}, [&] { await(door.wait()); }), 3);
    door.set();
    co_return;
  };
  co_await with_scope({.on_error = weft::supervise(again)}, body);
  EXPECT_EQ(failures, 0);
}

TEST(fiber, without_a_stack_go_throws_on_a_pool_and_in_a_fiber) {
  weft::stack_pool few{{.max_stacks = 3}};
  const weft::pool p{{.threads = 2}};
  weft::event door;
  auto body = [&](scope& s) -> task<> {
    auto loops = [&] { return go_until_refused(s, {.pool = &few}, [&] { await(door.wait()); }); };
    EXPECT_EQ(co_await s.go(loops), 3);
    door.set();
  };
  weft::sync_wait(with_scope({.executor = &p.executor()}, body));
}

WEFT_TEST("fiber: one that does not start gives its stack back, and nothing was measured on it") {
  weft::stack_pool few{{.max_stacks = 1}};
  weft::event door;
  auto body = [&](scope& s) -> task<> {
    s.fork([&]() -> task<> { co_await door.wait(); });
    EXPECT_THROW(s.go({.pool = &few}, [] {}), weft::error);
    door.set();
    co_return;
  };
  co_await with_scope({.max_children = 1}, body);
  EXPECT_EQ(few.stats().in_use, 0U);
  EXPECT_TRUE(few.high_water().empty());
}

WEFT_TEST("fiber: one that waits for room to fork gets it") {
  weft::event door;
  auto body = [&](scope& s) -> task<> {
    weft::fork<> other = s.fork([&]() -> task<> { co_await door.wait(); });
    auto fiber = s.go([&] {
      weft::fork<int> one = weft::await(s.fork_when_room([] { return 7; }));
      return weft::await(std::move(one));
    });
    EXPECT_FALSE(fiber.done());  // it and the other one are as many as may run
    door.set();
    co_await std::move(other);
    EXPECT_EQ(co_await std::move(fiber), 7);
  };
  co_await with_scope({.max_children = 2}, body);
}

// ---- stops ----------------------------------------------------------------------------------------------------------------

struct where {
  const char* name;
  void (*wait)(test::gate&);
};
class stopped_fiber : public testing::TestWithParam<where> {};
INSTANTIATE_TEST_SUITE_P(waits, stopped_fiber,
                         testing::Values(where{"in_itself", [](test::gate& door) { await(door.pass()); }},
                                         where{"in_a_task", [](test::gate& door) { deep(5, door); }},
                                         where{"in_a_group",
                                               [](test::gate& door) {
                                                 await(weft::when_all(after(door, 1), after(door, 2)));
                                               }},
                                         where{"in_a_named_task",
                                               [](test::gate& door) {
                                                 task<int> named = after(door, 1);
                                                 [[maybe_unused]] task<int> unused = after(door, 2);
                                                 await(std::move(named));
                                               }},
                                         where{"in_a_scope",
                                               [](test::gate& door) {
                                                 auto body = [&](scope& s) -> task<> {
                                                   s.go([&] { await(door.pass()); });
                                                   co_await door;
                                                 };
                                                 await(with_scope(body));
                                               }}),
                         [](const auto& one) { return std::string{one.param.name}; });

TEST_P(stopped_fiber, unwinds_its_stack) {
  test::gate never;
  std::atomic<int> alive = 0;
  auto body = [&](scope& s) -> task<> {
    weft::fork<> waits = s.go([&] {
      const test::counted one{alive};
      GetParam().wait(never);
      ADD_FAILURE() << "it went on";
    });
    EXPECT_EQ(alive, 1);
    waits.request_stop();
    EXPECT_TRUE((co_await weft::as_result(std::move(waits))).is_stopped());
    EXPECT_EQ(alive, 0);
  };
  sync_wait(with_scope(body));
}

TEST_P(stopped_fiber, before_it_waits) {
  test::gate never;
  std::atomic<int> alive = 0;
  auto body = [&](scope& s) -> task<> {
    s.request_stop();
    weft::fork<> late = s.go([&] {
      const test::counted one{alive};
      GetParam().wait(never);
      ADD_FAILURE() << "it went on";
    });
    co_return;
  };
  EXPECT_NO_THROW(sync_wait(with_scope(body)));
  EXPECT_EQ(alive, 0);
}

TEST_P(stopped_fiber, by_another_thread_while_a_third_wakes_it) {
  for (int i = 0; i != test::rounds(100); ++i) {
    weft::pool workers{{.threads = 2}};
    test::gate door;
    weft::stop_source stop;
    auto body = [&](scope& s) -> task<> {
      for (int n = 0; n != 4; ++n) s.go([&] { GetParam().wait(door); });
      co_return;
    };
    std::thread stopper{[&] { stop.request_stop(); }}, opener{[&] { door.open(); }};
    auto result = sync_wait(weft::as_result(with_scope({.executor = &workers.executor(), .stop = stop.token()}, body)));
    EXPECT_FALSE(result.exception());
    stopper.join();
    opener.join();
  }
}

WEFT_TEST("fiber: a stop that is swallowed comes again at the next wait") {
  test::gate never;
  int swallowed = 0;
  auto body = [&](scope& s) -> task<> {
    weft::fork<> stubborn = s.go([&] {
      for (int i = 0; i != 3; ++i) {
        try {
          if (i == 1)
            deep(3, never);
          else
            await(never.pass());
        } catch (...) {
          ++swallowed;
        }
      }
    });
    stubborn.request_stop();
    EXPECT_TRUE((co_await weft::as_result(std::move(stubborn))).has_value());
  };
  co_await with_scope(body);
  EXPECT_EQ(swallowed, 3);
}

WEFT_TEST("fiber: cleans up, shielded, when it is stopped") {
  test::gate never, door;
  bool clean = false;
  auto body = [&](scope& s) -> task<> {
    weft::fork<> careful = s.go([&] {
      try {
        await(never.pass());
      } catch (const stopped&) {
        clean = await(weft::shielded(after(door, 7))) == 7;
        throw;
      }
    });
    careful.request_stop();
    EXPECT_FALSE(careful.done());
    door.open();
    EXPECT_TRUE((co_await weft::as_result(std::move(careful))).is_stopped());
  };
  co_await with_scope(body);
  EXPECT_TRUE(clean);
}

WEFT_TEST("fiber: whoever awaits one that was stopped is stopped, too") {
  test::gate never;
  auto body = [&](scope& s) -> task<> {
    weft::fork<> inner = s.go([&] { await(never.pass()); });
    weft::fork<> outer = s.go([&] { await(inner); });
    inner.request_stop();
    EXPECT_TRUE((co_await weft::as_result(std::move(outer))).is_stopped());
  };
  co_await with_scope(body);
}

WEFT_TEST("fiber: exit ends it, as stopped") {
  std::atomic<int> alive = 0;
  auto body = [&](scope& s) -> task<> {
    weft::fork<int> leaves = s.go([&]() -> int {
      const test::counted one{alive};
      weft::this_fiber::exit();
    });
    EXPECT_EQ(leaves.status(), fork_status::stopped);
    EXPECT_EQ(alive, 0);
    co_return;
  };
  co_await with_scope(body);
}

// ---- awaitables of other libraries ----------------------------------------------------------------------------------------

// Gives the handle to another thread, which resumes it at once: perhaps before await_suspend has returned.
struct elsewhere {
  std::thread& thread;
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> self) {
    thread = std::thread{[self] { self.resume(); }};
  }
  int await_resume() {
    thread.join();
    return 3;
  }
};
struct does_not_wait {
  bool await_ready() const { return false; }
  bool await_suspend(std::coroutine_handle<>) const { return false; }
  int await_resume() const { return 4; }
};
struct refuses {
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<>) const { throw std::runtime_error{"not today"}; }
  void await_resume() const {}
};

WEFT_TEST("fiber: awaits awaitables of other libraries, and comes home") {
  auto body = [](scope& s) -> task<> {
    weft::fork<> waits = s.go([] {
      for (int i = 0; i != test::rounds(200); ++i) {
        const auto home = std::this_thread::get_id();
        std::thread other;
        EXPECT_EQ(await(elsewhere{other}), 3);
        EXPECT_EQ(std::this_thread::get_id(), home);
      }
      for (int i = 0; i != 100'000; ++i) EXPECT_EQ(await(does_not_wait{}), 4);
      EXPECT_THROW(await(refuses{}), std::runtime_error);
      EXPECT_EQ(await(number(1)), 1);
    });
    co_await std::move(waits);
  };
  co_await with_scope(body);
}

// ---- what comes along -----------------------------------------------------------------------------------------------------

[[gnu::noinline]] std::thread::id this_thread() {
  asm volatile("");
  return std::this_thread::get_id();
}
[[gnu::noinline]] int error_number() {
  asm volatile("");
  return errno;
}

[[gnu::noinline]] int rounding() {
  asm volatile("");
  return std::fegetround();
}

const weft::local<int> request;

// On this executor each turn is on a new thread.
WEFT_TEST("fiber: errno, exceptions and locals come along to other threads") {
  weft::new_thread_executor threads;
  auto body = [](scope& s) -> task<int> {
    weft::fork<int> moves = s.go([] {
      int moved = 0;
      for (int i = 0; i != 10; ++i) {
        const auto before = this_thread();
        errno = EDOM;
        try {
          throw i;
        } catch (int) {
          weft::this_fiber::yield();
          EXPECT_EQ(error_number(), EDOM);
          try {
            throw;
          } catch (int again) {
            EXPECT_EQ(again, i);
          }
        }
        EXPECT_FALSE(std::current_exception());
        EXPECT_EQ(request.get(), 7);
        if (this_thread() != before) ++moved;
      }
      return moved;
    });
    co_return co_await std::move(moves);
  };
  auto below = [&]() -> task<int> { co_return co_await with_scope({.executor = &threads}, body); };
  EXPECT_GE(co_await weft::with_local(request, 7, below), 1);
}

// A fiber's rounding is its own, and what the tasks of a worker set is the worker's, whatever runs before and after: also
// between two fibers in a row, where the worker's is not read again.
TEST(fiber, each_rounds_in_its_own_way_and_tasks_as_the_last_one_left_it) {
  weft::pool workers{{.threads = 1}};
  constexpr int ways[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  constexpr unsigned turns = 200;
  int of_tasks = 0;
  auto sets = [&](unsigned i) -> task<> {
    EXPECT_EQ(rounding(), of_tasks);
    std::fesetround(of_tasks = ways[i % 4]);
    co_return;
  };
  auto rounds = [&](unsigned me) {
    const int way = ways[me % 4];
    EXPECT_EQ(rounding(), of_tasks);  // it begins as who starts it
    std::fesetround(way);
    for (unsigned i = 0; i != turns; ++i) {
      weft::this_fiber::yield();
      EXPECT_EQ(rounding(), way);
      if (me % 5 == 0 && i % 7 == 0) await(sets(me + i));
      EXPECT_EQ(rounding(), way);
    }
  };
  auto tasks_of_its_own = [&](unsigned me) -> task<> {
    for (unsigned i = 0; i != turns; ++i) {
      if (i % 3 == 0) co_await sets(me + i);
      co_await weft::yield();
      EXPECT_EQ(rounding(), of_tasks);
    }
  };
  auto body = [&](scope& s) -> task<> {
    of_tasks = rounding();
    for (unsigned i = 0; i != 12; ++i) {
      s.go(rounds, i);
      if (i % 5 == 0) s.fork(tasks_of_its_own(i));
    }
    co_return;
  };
  sync_wait(with_scope({.executor = &workers.executor()}, body));
}

// What an awaiter of the program's leaves on the worker's stack is not the fiber's.
TEST(fiber, rounds_as_before_where_an_awaiter_has_changed_its_thread) {
  struct rounds_up {
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<>) const noexcept {
      std::fesetround(FE_UPWARD);
      return false;
    }
    void await_resume() const noexcept {}
  };
  weft::pool workers{{.threads = 1}};
  auto rounds = [&] {
    std::fesetround(FE_TONEAREST);
    for (int i = 0; i != 3; ++i) {
      await(rounds_up{});
      EXPECT_EQ(rounding(), FE_TONEAREST);
      weft::this_fiber::yield();
      EXPECT_EQ(rounding(), FE_TONEAREST);
    }
  };
  auto body = [&](scope& s) -> task<> {
    s.go(rounds);
    s.go(rounds);
    co_return;
  };
  sync_wait(with_scope({.executor = &workers.executor()}, body));
}

// A value that is sent without a wait is moved outside of the fiber, as where it waits.
TEST(fiber, what_a_send_calls_is_not_in_it) {
  struct asks {
    bool* last_move_in_a_fiber;
    explicit asks(bool& to) : last_move_in_a_fiber{&to} {}
    asks(asks&& other) noexcept : last_move_in_a_fiber{other.last_move_in_a_fiber} {
      *last_move_in_a_fiber = weft::this_fiber::is_running();
    }
  };
  bool last_move_in_a_fiber = true;
  weft::channel<asks> to{1};
  auto sends = [&] {
    await(to.send(asks{last_move_in_a_fiber}));
    EXPECT_FALSE(last_move_in_a_fiber) << "into the channel";
    EXPECT_TRUE(weft::this_fiber::is_running());
  };
  auto body = [&](scope& s) -> task<> {
    s.go(sends);
    co_return;
  };
  sync_wait(with_scope(body));
}

// A task without an executor goes on inside the call that wakes it. What the fiber that calls has of the thread, its
// rounding and its exceptions, is not that task's, whether the call is an await or not, and is there again behind it.
struct in_place {
  const char* by;
  std::function<task<>()> waits;
  std::function<void()> wakes;
};

struct finds {
  int rounding = -1;
  bool handles_one = true;
  int on_their_way = -1;
};

void expect_no_part(const finds& one) {
  EXPECT_EQ(one.rounding, FE_TONEAREST);
  EXPECT_FALSE(one.handles_one);
  EXPECT_EQ(one.on_their_way, 0);
}

void wakes_in_the_middle_of_all(const in_place& one) {
  auto waits = [&](finds& into) -> task<> {
    co_await one.waits();
    into = {rounding(), std::current_exception() != nullptr, std::uncaught_exceptions()};
    std::fesetround(FE_DOWNWARD);
  };
  struct wakes_at_its_end {
    const in_place& by;
    ~wakes_at_its_end() {
      by.wakes();
      EXPECT_EQ(std::uncaught_exceptions(), 1);
    }
  };
  finds handled, thrown;
  std::fesetround(FE_UPWARD);
  weft::start(waits(handled), [](weft::result<void>) {});
  try {
    throw 1;
  } catch (int) {
    one.wakes();
    EXPECT_TRUE(std::current_exception());
  }
  EXPECT_EQ(rounding(), FE_UPWARD);
  expect_no_part(handled);
  weft::start(waits(thrown), [](weft::result<void>) {});
  EXPECT_THROW(
      {
        const wakes_at_its_end unwound{one};
        throw 2;
      },
      int);
  EXPECT_EQ(rounding(), FE_UPWARD);
  expect_no_part(thrown);
}

TEST(fiber, who_goes_on_inside_its_call_is_no_part_of_it) {
  const test::calm at_once;
  weft::channel<int> unbuffered{0}, full{1};
  weft::mutex held;
  weft::mutex::guard guard;
  weft::event opens;
  auto receives = [&]() -> task<> { co_await unbuffered.receive(); };
  auto sends = [&]() -> task<> {
    static_cast<void>(full.try_send(0));
    co_await full.send(1);
  };
  auto locks = [&]() -> task<> {
    guard = held.try_lock();
    const auto taken = co_await held.lock();
  };
  auto passes = [&]() -> task<> {
    opens.reset();
    co_await opens.wait();
  };
  const in_place ways[] = {
      {"await of send", receives, [&] { await(unbuffered.send(1)); }},
      {"await of receive", sends, [&] { await(full.receive()); }},
      {"try_send", receives, [&] { static_cast<void>(unbuffered.try_send(1)); }},
      {"try_receive", sends, [&] { static_cast<void>(full.try_receive()); }},
      {"unlock", locks, [&] { guard.unlock(); }},
      {"set", passes, [&] { opens.set(); }},
  };
  weft::pool workers{{.threads = 1}};
  for (const in_place& one : ways) {
    SCOPED_TRACE(one.by);
    auto body = [&](scope& s) -> task<> {
      s.go([&] { wakes_in_the_middle_of_all(one); });
      co_return;
    };
    sync_wait(with_scope({.executor = &workers.executor()}, body));
  }
}

// The same where a fork runs on the fiber's stack, up to its first wait.
TEST(fiber, who_goes_on_inside_a_call_of_its_fork_is_no_part_of_it) {
  const test::calm at_once;
  weft::channel<int> unbuffered{0};
  finds found;
  auto waits = [&]() -> task<> {
    co_await unbuffered.receive();
    found = {rounding(), std::current_exception() != nullptr, std::uncaught_exceptions()};
  };
  auto sends = [&]() -> task<> { co_await unbuffered.send(1); };
  auto body = [&](scope& s) -> task<> {
    s.go([&] {
      weft::start(waits(), [](weft::result<void>) {});
      std::fesetround(FE_UPWARD);
      try {
        throw 1;
      } catch (int) {
        s.fork(sends());
      }
      expect_no_part(found);
    });
    co_return;
  };
  sync_wait(with_scope(body));
}

// And where what goes on is the fork itself, be it a task or another fiber.
TEST(fiber, what_it_forks_is_no_part_of_it) {
  const test::calm at_once;
  auto look = [] { return finds{rounding(), std::current_exception() != nullptr, std::uncaught_exceptions()}; };
  auto task_looks = [&](finds& into) -> task<> {
    into = look();
    std::fesetround(FE_DOWNWARD);
    co_return;
  };
  struct forks_at_its_end {
    scope& in;
    task<> what;
    ~forks_at_its_end() {
      in.fork(std::move(what));
      EXPECT_EQ(std::uncaught_exceptions(), 1);
    }
  };
  auto forks = [&](scope& s) {
    finds handled, thrown, of_fiber;
    std::fesetround(FE_UPWARD);
    try {
      throw 1;
    } catch (int) {
      s.fork(task_looks(handled));
      EXPECT_EQ(rounding(), FE_UPWARD);
      await(s.go([&] { of_fiber = look(), std::fesetround(FE_DOWNWARD); }));
      EXPECT_TRUE(std::current_exception());
    }
    EXPECT_EQ(rounding(), FE_UPWARD);
    try {
      const forks_at_its_end unwound{s, task_looks(thrown)};
      throw 2;
    } catch (int) {
    }
    EXPECT_EQ(rounding(), FE_UPWARD);
    expect_no_part(handled);
    expect_no_part(thrown);
    expect_no_part(of_fiber);
  };
  auto body = [&](scope& s) -> task<> {
    s.go([&] { forks(s); });
    co_return;
  };
  sync_wait(with_scope(body));
  weft::pool workers{{.threads = 1}};
  sync_wait(with_scope({.executor = &workers.executor()}, body));
}

// Two threads pump one executor in turns, so the fiber is on the other one after each wait.
TEST(fiber, the_environment_comes_along_to_other_threads) {
  const test::calm in_turns;
  weft::manual_executor loop;
  test::gate door;
  door.open();
  test::virtual_clock time;
  test::counting_resource memory;
  weft::stop_source source;
  const auto deadline = time.now() + 1h;
  int turns = 0;
  const auto looks = [&](std::thread::id before) {
    EXPECT_NE(this_thread(), before);
    const weft::env& here = weft::current_env();
    EXPECT_EQ(here.executor, &loop);
    EXPECT_EQ(here.clock, &time);
    EXPECT_EQ(here.deadline, deadline);
    EXPECT_EQ(here.memory, &memory);
    EXPECT_FALSE(here.stop.stop_requested());
    EXPECT_EQ(request.get(), 7);
    EXPECT_EQ(deep(1, door), 2);
    const std::size_t frames = memory.allocations;
    task<int> one = number(1), other = number(2);  // made there; one of them in a block that was kept
    EXPECT_GT(memory.allocations, frames);
    EXPECT_EQ(await(std::move(one)) + await(std::move(other)), 3);
    ++turns;
  };
  auto body = [&](scope& s) -> task<> {
    co_await s.go([&] {
      for (int turn = 0; turn != 4; ++turn) {
        const auto before = this_thread();
        weft::this_fiber::yield();
        looks(before);
      }
      source.request_stop();
      weft::this_fiber::yield();
      ADD_FAILURE() << "it went on";
    });
  };
  auto in_memory = [&]() -> task<> {
    co_await with_scope({.memory = &memory, .stop = source.token(), .deadline = deadline}, body);
  };
  auto with_a_local = [&]() -> task<> { co_await weft::with_local(request, 7, in_memory); };
  test::timed_root<void> work{{.executor = &loop, .clock = &time}, with_a_local()};
  work.schedule();
  for (int turn = 0; turn != 100 && !work.over(); ++turn) {
    std::thread{[&] { loop.run_one(); }}.join();
    if (!work.over()) loop.run_one();
  }
  ASSERT_TRUE(work.over());
  EXPECT_FALSE(work.take().exception());
  EXPECT_EQ(turns, 4);
  EXPECT_EQ(memory.live, 0U);
}

WEFT_TEST("fiber: awaits what runs elsewhere, and comes home") {
  weft::new_thread_executor threads;
  auto where = []() -> task<std::thread::id> { co_return this_thread(); };
  auto body = [&](scope& s) -> task<> {
    const auto home = this_thread();
    weft::fork<> hops = s.go([&] {
      EXPECT_NE(await(weft::start_on(threads, where())), home);
      EXPECT_EQ(this_thread(), home);
    });
    co_await std::move(hops);
    EXPECT_EQ(this_thread(), home);
  };
  co_await with_scope(body);
}

TEST(fiber, thousands_on_a_pool) {
  weft::pool workers{{.threads = 4}};
  std::atomic<int> alive = 0;
  const int count = test::rounds(3000);
  auto body = [&](scope& s) -> task<long> {
    std::vector<weft::fork<int>> all;
    for (int i = 0; i != count; ++i)
      all.push_back(s.go(
          [&](int n) {
            const test::counted one{alive};
            for (int turn = 0; turn != 5; ++turn) {
              try {
                if ((n + turn) % 3 == 0) throw turn;
                weft::this_fiber::yield();
              } catch (int thrown) {
                weft::this_fiber::yield();
                EXPECT_EQ(thrown, turn);
              }
            }
            return await(number(n));
          },
          i));
    long sum = 0;
    for (auto& one : all) sum += co_await std::move(one);
    co_return sum;
  };
  EXPECT_EQ(sync_wait(with_scope({.executor = &workers.executor()}, body)), static_cast<long>(count) * (count - 1) / 2);
  EXPECT_EQ(alive, 0);
}

TEST(fiber, stacks_are_used_again) {
  weft::stack_pool stacks;
  auto body = [&](scope& s) -> task<> {
    for (int i = 0; i != test::rounds(100'000); ++i) s.go({.pool = &stacks}, [] { await(number(1)); });
    co_return;
  };
  sync_wait(with_scope(body));
  EXPECT_EQ(stacks.stats().made, 1u);
  EXPECT_EQ(stacks.stats().in_use, 0u);
}

// ---- staying on a thread ---------------------------------------------------------------------------------------------------

TEST(fiber, that_stays_waits_on_an_executor_of_one_thread) {
  weft::worker_group group{2};
  auto body = [](scope& s) -> task<> {
    co_await s.go([] {
      const auto thread = std::this_thread::get_id();
      const weft::this_fiber::stay here;
      for (int i = 0; i != 3; ++i) {
        const weft::this_fiber::stay still_here;
        weft::this_fiber::yield();
        EXPECT_EQ(std::this_thread::get_id(), thread);
      }
      EXPECT_EQ(await(number(1)), 1);
    });
  };
  sync_wait(with_scope({.executor = &group.worker(1)}, body));
}

TEST(fiber, that_stays_may_await_what_is_there_anywhere) {
  const weft::pool workers{{.threads = 2}};
  auto body = [](scope& s) -> task<> {
    co_await s.go([] {
      {
        const weft::this_fiber::stay here;
        await(std::suspend_never{});
      }
      weft::this_fiber::yield();  // and may leave afterwards
    });
  };
  sync_wait(with_scope({.executor = &workers.executor()}, body));
}

// ---- sleep ----------------------------------------------------------------------------------------------------------------

// By a clock that the test moves; it stops the fiber before, in and after its sleep, from this thread and from another.
class sleeping_fiber : public testing::TestWithParam<bool> {
 protected:
  void stop() {
    if (GetParam())
      std::thread{[this] { source_.request_stop(); }}.join();
    else
      source_.request_stop();
    loop_.run_all();
  }
  void begin() {
    work_.schedule();
    loop_.run_all();
  }
  bool over() const { return work_.over(); }
  void expect_how(bool stopped) {
    ASSERT_TRUE(work_.over());
    EXPECT_EQ(work_.take().is_stopped(), stopped);
    EXPECT_EQ(alive_, 0);
    EXPECT_EQ(time_.armed(), 0U);
  }

  weft::manual_executor loop_;
  test::virtual_clock time_;
  weft::stop_source source_;
  test::gate door_;
  std::atomic<int> alive_ = 0;
  bool woke_ = false;

 private:
  task<> sleeps() {
    auto body = [this](scope& s) -> task<> {
      co_await s.go([this] {
        const test::counted one{alive_};
        await(door_.pass());
        weft::this_fiber::sleep_for(10s);
        woke_ = true;
      });
    };
    co_await with_scope({.stop = source_.token()}, body);
  }
  test::timed_root<void> work_{{.executor = &loop_, .clock = &time_}, sleeps()};
};
INSTANTIATE_TEST_SUITE_P(stopped_by, sleeping_fiber, testing::Bool(),
                         [](const auto& one) { return std::string{one.param ? "another_thread" : "this_thread"}; });

TEST_P(sleeping_fiber, ends_when_its_time_has_passed) {
  door_.open();
  begin();
  EXPECT_EQ(time_.armed(), 1U);
  time_.advance(10s - 1ns);
  loop_.run_all();
  EXPECT_FALSE(woke_);
  time_.advance(1ns);
  loop_.run_all();
  EXPECT_TRUE(woke_);
  stop();  // too late
  expect_how(false);
}

TEST_P(sleeping_fiber, stopped_before_never_sleeps) {
  begin();
  stop();
  EXPECT_EQ(time_.armed_so_far(), 0U);
  EXPECT_FALSE(woke_);
  expect_how(true);
}

TEST_P(sleeping_fiber, stopped_meanwhile_sleeps_no_longer) {
  door_.open();
  begin();
  time_.advance(5s);
  EXPECT_FALSE(over());
  stop();
  EXPECT_FALSE(woke_);
  EXPECT_EQ(time_.elapsed(), 5s);
  expect_how(true);
}

// The timer has fired, and the fiber has not run since: it completes, and is stopped where it waits next.
TEST_P(sleeping_fiber, stopped_after_it_has_slept) {
  door_.open();
  begin();
  time_.advance(10s);
  stop();
  EXPECT_TRUE(woke_);
  ASSERT_TRUE(over());
  EXPECT_EQ(alive_, 0);
}

// ---- counts ---------------------------------------------------------------------------------------------------------------

WEFT_TEST("fiber: what fibers do is counted") {
  const weft::fiber_stats before = weft::fibers();
  auto body = [&](scope& s) -> task<> {
    for (int i = 0; i != 3; ++i)
      s.go([] {
        for (int turn = 0; turn != 4; ++turn) weft::this_fiber::yield();
      });
    auto stops = s.go([] { weft::this_fiber::exit(); });
    const weft::fiber_stats now = weft::fibers();
    EXPECT_EQ(now.created - before.created, 4U);
    EXPECT_EQ(now.ended - before.ended, 1U);
    EXPECT_EQ(now.live, before.live + 3);
    co_return;
  };
  co_await with_scope(body);
  const weft::fiber_stats after = weft::fibers();
  EXPECT_EQ(after.ended - before.ended, 4U);
  EXPECT_EQ(after.live, before.live);
  EXPECT_EQ(after.switches - before.switches, 3U * 5 + 1);
  EXPECT_EQ(after.migrations, before.migrations);
  EXPECT_GE(after.pooled, 1U);
}

TEST(fiber_counts, one_that_changes_threads_has_migrated) {
  weft::manual_executor loop;
  const weft::fiber_stats before = weft::fibers();
  auto body = [](scope& s) -> task<> {
    co_await s.go([] {
      for (int turn = 0; turn != 3; ++turn) weft::this_fiber::yield();
    });
  };
  auto work = with_scope({.executor = &loop}, body);
  weft::start(std::move(work), [](const weft::result<void>& how) { EXPECT_TRUE(how.has_value()); });
  for (int turn = 0; turn != 2; ++turn) loop.run_one();  // the body, and the fiber's second step
  std::thread{[&] { loop.run_one(); }}.join();
  loop.run_all();
  const weft::fiber_stats after = weft::fibers();
  EXPECT_EQ(after.migrations - before.migrations, 2U);  // there and back
  EXPECT_EQ(after.switches - before.switches, 4U);
  EXPECT_EQ(after.live, before.live);
}

// ---- misuse ---------------------------------------------------------------------------------------------------------------

class fiber_misuse : public testing::Test {
 protected:
  fiber_misuse() {
    GTEST_FLAG_SET(death_test_style, std::getenv("WEFT_TEST_EMULATED") != nullptr ? "fast" : "threadsafe");
  }
};

TEST_F(fiber_misuse, waiting_where_there_is_no_fiber) {
  const char* sentence = "weft: weft::await or a function of this_fiber was called outside of a fiber";
  EXPECT_DEATH(await(number(1)), sentence);
  EXPECT_DEATH(weft::this_fiber::yield(), sentence);
  EXPECT_DEATH(weft::this_fiber::exit(), sentence);
  const auto in_a_task = [] {
    auto waits = []() -> task<int> { co_return await(number(1)); };
    sync_wait(waits());
  };
  EXPECT_DEATH(in_a_task(), sentence);
  const auto in_a_task_of_a_fiber = [] {
    auto body = [](scope& s) -> task<> {
      s.go([&s] { s.fork([] { await(number(1)); }); });
      co_return;
    };
    sync_wait(with_scope(body));
  };
  EXPECT_DEATH(in_a_task_of_a_fiber(), sentence);
}

TEST_F(fiber_misuse, leaving_a_thread_that_it_must_stay_on) {
  const auto on_a_pool = [] {
    const weft::pool workers{{.threads = 1}};
    auto body = [](scope& s) -> task<> {
      co_await s.go([] {
        const weft::this_fiber::stay here;
        {
          const weft::this_fiber::stay still_here;
        }
        weft::this_fiber::yield();
      });
    };
    sync_wait(with_scope({.executor = &workers.executor()}, body));
  };
  EXPECT_DEATH(on_a_pool(), "weft: a fiber that must stay on its thread .* was to wait where other threads may go on");
  const auto moved = [] {
    weft::manual_executor loop;
    auto body = [](scope& s) -> task<> {
      co_await s.go([] {
        const weft::this_fiber::stay here;
        weft::this_fiber::yield();
      });
    };
    weft::start(loop, with_scope(body), [](const weft::result<void>&) {});
    loop.run_one();
    std::thread{[&] { loop.run_all(); }}.join();
  };
  EXPECT_DEATH(moved(), "weft: a fiber that must stay on its thread .* went on on another one");
}

TEST_F(fiber_misuse, blocking_the_thread) {
  const auto blocks = [] {
    auto body = [](scope& s) -> task<> {
      s.go([] { sync_wait(number(1)); });
      co_return;
    };
    sync_wait(with_scope(body));
  };
  EXPECT_DEATH(blocks(), "weft: sync_wait was called inside a task");
}

const char* const small_fiber_ran_over = "weft: a stack ran over: 'a small fiber', which runs .*lambda.* needed";

void run_over(weft::executor* on) {
  auto body = [](scope& s) -> task<> {
    s.go({.size = 16384, .name = "a small fiber"}, [] {
      volatile char room[40'000];
      for (std::size_t i = sizeof room; i != 0; --i) room[i - 1] = 1;
    });
    co_return;
  };
  sync_wait(with_scope({.executor = on}, body));
}

bool nothing_guards() { return weft::stack_pool::process_wide().limits().guard == weft::stack_guard::none; }

TEST_F(fiber_misuse, running_over) {
  if (nothing_guards()) GTEST_SKIP() << "nothing guards stacks here";
  EXPECT_DEATH(run_over(nullptr), small_fiber_ran_over);
}

// Whose threads leave faults to the handler.
TEST_F(fiber_misuse, running_over_on_a_pool) {
  if (nothing_guards()) GTEST_SKIP() << "nothing guards stacks here";
  const auto on_a_pool = [] {
    const weft::pool workers{{.threads = 1}};
    run_over(&workers.executor());
  };
  EXPECT_DEATH(on_a_pool(), small_fiber_ran_over);
}

}  // namespace
