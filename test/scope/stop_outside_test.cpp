// A stop that came from outside does not look like success: the table of docs/design/0018, a test for each cell, with
// tasks and with fibers, on one thread and on a pool.
#include <weft/async_generator.hpp>
#include <weft/channel.hpp>
#include <weft/combine.hpp>
#include <weft/executor.hpp>
#include <weft/fiber.hpp>
#include <weft/on_scope_exit.hpp>
#include <weft/pool.hpp>
#include <weft/registry.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>
#include <weft/shared_task.hpp>
#include <weft/test.hpp>
#include <weft/with.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/timed_root.hpp"
#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using test::counted;
using test::gate;
using weft::as_result;
using weft::await;
using weft::errc;
using weft::fork;
using weft::result;
using weft::scope;
using weft::scope_options;
using weft::stop_source;
using weft::sync_wait;
using weft::task;
using weft::with_scope;

// ---- where, who and how -------------------------------------------------------------------------------------------------

// Bodies are called by std::function: this file is large, and would take a minute to compile.

/// Runs a test's body on this thread, and on a pool of three.
void everywhere(const std::function<task<>()>& body) {
  {
    SCOPED_TRACE("sync_wait");
    sync_wait(body());
  }
  SCOPED_TRACE("a pool");
  weft::pool threads{{.threads = 3}};
  threads.run(body());
}

/// What a fork is.
enum class kind { task, fiber };
constexpr kind kinds[] = {kind::task, kind::fiber};

task<> pass(gate& door) { co_await door; }

/// Forks what waits at a gate.
fork<> fork_one(scope& s, kind of, gate& door) {
  if (of == kind::fiber) return s.go([&door] { await(door.pass()); });
  return s.fork(pass(door));
}

/// Waits until so many wait at a gate.
task<> full(const gate& door, int count) {
  while (door.waiting() < count) co_await weft::yield();
}

/// How a stop comes from outside of a scope.
enum class way { token, deadline, with_stop, with_deadline, handle, outer_scope, race };
constexpr way ways[] = {way::token,  way::deadline,    way::with_stop, way::with_deadline,
                        way::handle, way::outer_scope, way::race};

template <class T>
task<> note(task<T> work, std::optional<result<T>>& how) {
  how = co_await as_result(std::move(work));
}

/// Has the time go on to that point, until it is over. As a clock does, on a thread that runs no task.
task<> pass_time(test::virtual_clock& time, weft::clock::time_point until, const std::atomic<bool>& over) {
  for (; !over; co_await weft::yield())
    if (time.next().value_or(weft::clock::time_point::max()) <= until)
      std::jthread{[&] { time.advance_to_next(until); }}.join();
}

/// What comes of `start(scope_options)`, a task that passes these to its scope, when it is told to stop from outside of that,
/// where so many wait at a gate.
template <class T>
task<result<T>> told_to_stop(way by, std::function<task<T>(scope_options)> start, const gate& door, int count) {
  std::optional<result<T>> how;
  stop_source source;
  auto all = [&] { return start(scope_options{}); };
  test::virtual_clock time;
  const auto deadline = time.now() + 1s;
  std::atomic<bool> over{false};
  auto in_time = [&] {
    return by == way::deadline ? start({.deadline = deadline}) : weft::with_deadline(deadline, all);
  };
  auto by_this_time = [&]() -> task<> {
    weft::env mine = weft::current_env();
    mine.clock = &time;
    co_await note(weft::with_env(mine, in_time), how);
    over = true;
  };
  auto let_it_pass = [&]() -> task<> {
    co_await full(door, count);
    co_await pass_time(time, deadline, over);
  };
  auto tell = [&]() -> task<> {
    co_await full(door, count);
    source.request_stop();
  };
  auto in_a_fork = [&](scope& s) -> task<> {
    fork<> one = s.fork(note(start(scope_options{}), how));
    co_await full(door, count);
    if (by == way::handle)
      one.request_stop();
    else
      s.request_stop();
  };
  switch (by) {
    case way::token: co_await weft::when_all(note(start({.stop = source.token()}), how), tell()); break;
    case way::with_stop: co_await weft::when_all(note(weft::with_stop(source.token(), all), how), tell()); break;
    case way::deadline:
    case way::with_deadline: co_await weft::when_all(by_this_time(), let_it_pass()); break;
    case way::handle:
    case way::outer_scope: co_await with_scope(in_a_fork); break;
    case way::race: co_await weft::when_any(note(start(scope_options{}), how), full(door, count)); break;
  }
  co_return *std::move(how);
}
template <class Start>
auto told_from_outside(way by, const Start& start, const gate& door, int count) {
  return told_to_stop<typename decltype(start(scope_options{}))::value_type>(by, std::ref(start), door, count);
}

template <class T>
std::string what(const result<T>& how) {
  if (how.is_stopped()) return "stopped";
  if (how.has_value()) return "value";
  try {
    std::rethrow_exception(how.exception());
  } catch (const weft::error_list& all) {
    return "list of " + std::to_string(all.size());
  } catch (const std::exception& thrown) {
    return thrown.what();
  }
}

// A trace of GoogleTest belongs to its thread, which a task may leave.
void name(const testing::Message& by, kind of) {
  ADD_FAILURE() << by << (of == kind::fiber ? ", in a fiber" : ", in a task");
}

/// Each way, with each kind of fork, everywhere. `check(way, kind)` is a task.
void in_all_ways(const std::function<task<>(way, kind)>& check) {
  everywhere([&]() -> task<> {
    for (const way by : ways)
      for (const kind of : kinds) {
        co_await check(by, of);
        if (testing::Test::HasFailure()) co_return name(testing::Message{} << "way " << static_cast<int>(by), of);
      }
  });
}
/// The same for what is no stop from outside.
void with_all_kinds(const std::function<task<>(kind)>& check) {
  everywhere([&]() -> task<> {
    for (const kind of : kinds) {
      co_await check(of);
      if (testing::Test::HasFailure()) co_return name({}, of);
    }
  });
}

/// Waits at a gate, and ends stopped there only when a second one is open.
task<> leave_late(gate& door, gate& held) {
  co_await weft::on_scope_exit(pass, std::ref(held));
  co_await door;
}

// ---- scope, registry ------------------------------------------------------------------------------------------------------

TEST(stop_outside, a_scope_ends_stopped_and_the_value_of_its_body_goes_once) {
  in_all_ways([](way by, kind of) -> task<> {
    gate never;
    std::atomic<int> alive{0};
    auto start = [&](scope_options options) {
      auto body = [&, of](scope& s) -> task<counted> {
        for (int i = 0; i != 3; ++i) fork_one(s, of, never);
        co_return counted{alive};
      };
      return with_scope(options, body);
    };
    EXPECT_EQ(what(co_await told_from_outside(by, start, never, 3)), "stopped");
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(never.waiting(), 0);
  });
}

TEST(stop_outside, a_stop_of_the_whole_reaches_a_body_that_has_its_value) {
  for (const kind of : kinds) {
    gate never;
    stop_source source;
    auto body = [&, of](scope& s) -> task<int> {
      fork_one(s, of, never);
      co_return 1;
    };
    std::jthread stopper{[&] {
      test::until([&] { return never.waiting() == 1; });
      source.request_stop();
    }};
    EXPECT_THROW(sync_wait(with_scope(body), source.token()), weft::stopped);
  }
}

TEST(stop_inside, a_scope_keeps_the_value_of_its_body) {
  with_all_kinds([](kind of) -> task<> {
    for (const bool by_handle : {true, false}) {
      gate never;
      std::atomic<int> alive{0};
      auto body = [&, of, by_handle](scope& s) -> task<counted> {
        auto tell = [by_handle](scope& in, fork<> one, fork<> other, gate& at) -> task<> {
          co_await full(at, 2);
          if (!by_handle) co_return static_cast<void>(in.request_stop());
          one.request_stop();
          other.request_stop();
        };
        s.fork(tell, std::ref(s), fork_one(s, of, never), fork_one(s, of, never), std::ref(never));
        co_return counted{alive};
      };
      {
        const auto how = co_await as_result(with_scope(body));
        EXPECT_EQ(what(how), "value");
        EXPECT_EQ(alive, 1);
      }
      EXPECT_EQ(alive, 0);
    }
  });
}

TEST(stop_outside, a_scope_around_listed_work_ends_stopped) {
  in_all_ways([](way by, kind of) -> task<> {
    gate never;
    weft::registry jobs;
    auto start = [&](scope_options options) {
      auto body = [&, of](scope& s) -> task<int> {
        if (of == kind::fiber)
          jobs.go(s, [&] { await(never.pass()); });
        else
          jobs.fork(s, pass, std::ref(never));
        co_return 1;
      };
      return with_scope(options, body);
    };
    EXPECT_EQ(what(co_await told_from_outside(by, start, never, 1)), "stopped");
    EXPECT_EQ(jobs.size(), 0U);
  });
}

TEST(stop_inside, listed_work_that_is_stopped_by_its_number_leaves_the_value) {
  with_all_kinds([](kind of) -> task<> {
    gate never;
    weft::registry jobs;
    auto body = [&, of](scope& s) -> task<int> {
      const auto id =
          of == kind::fiber ? jobs.go(s, [&] { await(never.pass()); }).id : jobs.fork(s, pass, std::ref(never)).id;
      co_await full(never, 1);
      jobs.request_stop(id);
      EXPECT_EQ((co_await jobs.wait(id)).value_or(weft::work_end::stopped), weft::work_end::stopped);
      co_return 1;
    };
    EXPECT_EQ(what(co_await as_result(with_scope(body))), "value");
  });
}

// ---- what becomes of failures ---------------------------------------------------------------------------------------------

/// Fails as it is stopped.
task<int> fail_when_told(gate& door) {
  auto how = co_await as_result(pass(door));
  if (how.is_stopped()) throw std::runtime_error{"failed"};
  co_return 1;
}

fork<> fork_failing(scope& s, kind of) {
  auto fails = [] { throw std::runtime_error{"failed"}; };
  if (of == kind::fiber) return s.go(fails);
  return s.fork(fails);
}

TEST(stop_outside, a_failure_is_stronger) {
  in_all_ways([](way by, kind of) -> task<> {
    gate never;
    auto start = [&](scope_options options) {
      auto body = [&, of](scope& s) -> task<int> {
        if (of == kind::fiber)
          s.go([&] { await(fail_when_told(never)); });
        else
          s.fork(fail_when_told(never));
        fork_one(s, of, never);
        co_return 1;
      };
      return with_scope(options, body);
    };
    EXPECT_EQ(what(co_await told_from_outside(by, start, never, 2)), "failed");
  });
}

TEST(stop_outside, collected_errors_come_first_and_else_the_stop) {
  in_all_ways([](way by, kind of) -> task<> {
    for (const int failures : {0, 2}) {
      gate never;
      auto start = [&](scope_options options) {
        options.on_error = weft::collect_all_errors;
        auto body = [&, of, failures](scope& s) -> task<int> {
          for (int i = 0; i != failures; ++i) fork_failing(s, of);
          fork_one(s, of, never);
          co_return 1;
        };
        return with_scope(options, body);
      };
      EXPECT_EQ(what(co_await told_from_outside(by, start, never, 1)), failures == 0 ? "stopped" : "list of 2");
    }
  });
}

TEST(stop_inside, collected_errors_come_first_and_else_the_value) {
  with_all_kinds([](kind of) -> task<> {
    for (const int failures : {0, 2}) {
      gate never;
      auto body = [&, of, failures](scope& s) -> task<int> {
        for (int i = 0; i != failures; ++i) fork_failing(s, of);
        const fork<> one = fork_one(s, of, never);
        co_await full(never, 1);
        s.request_stop();
        co_return 1;
      };
      EXPECT_EQ(what(co_await as_result(with_scope({.on_error = weft::collect_all_errors}, body))),
                failures == 0 ? "value" : "list of 2");
    }
  });
}

void ignore(std::exception_ptr) {}
weft::on_failure go_on(std::exception_ptr) { return weft::on_failure::go_on; }
weft::on_failure restart(std::exception_ptr) { return weft::on_failure::restart; }

TEST(stop_outside, failures_that_are_handled_do_not_count) {
  in_all_ways([](way by, kind of) -> task<> {
    for (const bool supervised : {false, true}) {
      gate never;
      auto start = [&](scope_options options) {
        options.on_error = supervised ? weft::supervise(go_on) : weft::error_policy{ignore};
        auto body = [&, of](scope& s) -> task<int> {
          fork_failing(s, of);
          fork_one(s, of, never);
          co_return 1;
        };
        return with_scope(options, body);
      };
      EXPECT_EQ(what(co_await told_from_outside(by, start, never, 1)), "stopped");
    }
  });
}

TEST(stop_inside, failures_that_are_handled_leave_the_value) {
  with_all_kinds([](kind of) -> task<> {
    gate never;
    auto body = [&, of](scope& s) -> task<int> {
      fork_failing(s, of);
      fork_one(s, of, never);
      co_await full(never, 1);
      s.request_stop();
      co_return 1;
    };
    EXPECT_EQ(what(co_await as_result(with_scope({.on_error = ignore}, body))), "value");
  });
}

/// Has a failure instead of a stop, each time that it is told.
struct fails_when_told {
  gate* at;
  task<int> operator()() const { return fail_when_told(*at); }
};

TEST(stop_outside, what_would_start_again_but_for_the_stop_is_stopped) {
  in_all_ways([](way by, kind) -> task<> {
    gate never;
    auto start = [&](scope_options options) {
      options.on_error = weft::supervise(restart);
      auto body = [&](scope& s) -> task<int> {
        s.fork(fails_when_told{&never});
        co_return 1;
      };
      return with_scope(options, body);
    };
    EXPECT_EQ(what(co_await told_from_outside(by, start, never, 1)), "stopped");
  });
}

TEST(stop_inside, what_would_start_again_but_for_the_stop_leaves_the_value) {
  everywhere([]() -> task<> {
    gate never;
    auto body = [&](scope& s) -> task<int> {
      s.fork(fails_when_told{&never});
      co_await full(never, 1);
      s.request_stop();
      co_return 1;
    };
    EXPECT_EQ(what(co_await as_result(with_scope({.on_error = weft::supervise(restart)}, body))), "value");
  });
}

// ---- combinators ----------------------------------------------------------------------------------------------------------

task<int> one_after(gate& door) {
  co_await door;
  co_return 1;
}
task<int> give(int n) { co_return n; }

/// In a task, or in a fiber: awaits what `make` gives.
template <class Make>
auto in_a(scope& s, kind of, const Make& make) {
  if (of == kind::fiber) return s.go([&make] { return await(make()); });
  return s.fork([&make]() { return make(); });
}

/// What comes of `make()`, awaited by a task or in a fiber, when that is told from outside, where so many wait at a gate.
template <class Make>
task<std::string> told(way by, kind of, const Make& make, const gate& door, int count) {
  std::string seen = "nothing";
  auto start = [&](scope_options options) {
    auto body = [&, of](scope& s) -> task<> {
      auto noted = [](std::string& into, const Make& made) -> task<> { into = what(co_await as_result(made())); };
      if (of == kind::fiber)
        s.go([&] { seen = what(await(as_result(make()))); });
      else
        s.fork(noted, std::ref(seen), std::ref(make));
      co_return;
    };
    return with_scope(options, body);
  };
  static_cast<void>(co_await told_from_outside(by, start, door, count));
  co_return seen;
}

TEST(stop_outside, when_all_windowed_and_collect) {
  in_all_ways([](way by, kind of) -> task<> {
    gate never;
    auto all = [&] { return weft::detail::as_task(weft::when_all(give(1), one_after(never), one_after(never))); };
    EXPECT_EQ(co_await told(by, of, all, never, 2), "stopped");
    auto fails = [&] { return weft::detail::as_task(weft::when_all(one_after(never), fail_when_told(never))); };
    EXPECT_EQ(co_await told(by, of, fails, never, 2), "failed");

    auto some = [&](auto second) {
      std::vector<task<int>> those;
      those.push_back(give(1));
      those.push_back(one_after(never));
      those.push_back(second(never));
      those.push_back(give(4));
      return those;
    };
    auto window = [&] { return weft::windowed(2, some(one_after)); };
    EXPECT_EQ(co_await told(by, of, window, never, 2), "stopped");
    auto window_fails = [&] { return weft::windowed(2, some(fail_when_told)); };
    EXPECT_EQ(co_await told(by, of, window_fails, never, 2), "failed");

    auto numbers = [&](bool fails_then) -> weft::async_generator<int> {
      co_yield 1;
      if (fails_then)  // no conditional operator, of which g++ 12 awaits both sides
        co_yield co_await fail_when_told(never);
      else
        co_yield co_await one_after(never);
      co_yield 3;
    };
    auto collected = [&] { return weft::collect(numbers(false)); };
    EXPECT_EQ(co_await told(by, of, collected, never, 1), "stopped");
    auto collecting_fails = [&] { return weft::collect(numbers(true)); };
    EXPECT_EQ(co_await told(by, of, collecting_fails, never, 1), "failed");
  });
}

TEST(stop_outside, when_any_and_select_without_a_winner) {
  in_all_ways([](way by, kind of) -> task<> {
    gate never;
    auto any = [&] { return weft::detail::as_task(weft::when_any(one_after(never), one_after(never))); };
    EXPECT_EQ(co_await told(by, of, any, never, 2), "stopped");
    auto some = [&] {
      std::vector<task<int>> those;
      those.push_back(give(1));
      those.push_back(one_after(never));
      return weft::detail::as_task(weft::when_some(2, std::move(those)));
    };
    EXPECT_EQ(co_await told(by, of, some, never, 1), "stopped");
    weft::channel<int> empty{0};
    auto chosen = [&] {
      return weft::detail::as_task(weft::select(weft::on_receive(empty), weft::on(one_after(never))));
    };
    EXPECT_EQ(co_await told(by, of, chosen, never, 1), "stopped");
  });
}

// The winner is there, and the loser does not leave before a second gate is open, which is after the stop.
TEST(stop_outside, an_earlier_winner_of_when_any_or_select_is_given) {
  with_all_kinds([](kind of) -> task<> {
    for (const bool selects : {false, true}) {
      gate never, held;
      weft::channel<int> values{1};
      auto any = [&] { return weft::detail::as_task(weft::when_any(leave_late(never, held), full(never, 1))); };
      auto chosen = [&] {
        return weft::detail::as_task(weft::select(weft::on(leave_late(never, held)), weft::on_receive(values)));
      };
      auto body = [&, of, selects](scope& s) -> task<> {
        std::string seen;
        auto noted = [&](auto& make) -> task<> { seen = what(co_await as_result(make())); };
        auto in_fiber = [&](auto& make) { seen = what(await(as_result(make()))); };
        fork<> one = of == kind::fiber ? s.go([&] { selects ? in_fiber(chosen) : in_fiber(any); })
                                       : s.fork(selects ? noted(chosen) : noted(any));
        if (selects) {
          co_await full(never, 1);
          co_await values.send(1);
        }
        co_await full(held, 1);
        one.request_stop();
        held.open();
        static_cast<void>(co_await as_result(one));
        EXPECT_EQ(seen, "value") << selects;
      };
      co_await with_scope(body);
    }
  });
}

TEST(stop_inside, when_any_and_select_give_the_winner) {
  with_all_kinds([](kind of) -> task<> {
    gate never;
    weft::channel<int> values{1};
    auto body = [&, of](scope& s) -> task<> {
      auto any = [&] { return weft::detail::as_task(weft::when_any(one_after(never), full(never, 1))); };
      EXPECT_EQ((co_await in_a(s, of, any)).index, 1U);
      auto chosen = [&] {
        return weft::detail::as_task(weft::select(weft::on_receive(values), weft::on(one_after(never))));
      };
      co_await values.send(1);
      EXPECT_EQ((co_await in_a(s, of, chosen)).index, 0U);
    };
    co_await with_scope(body);
    EXPECT_EQ(never.waiting(), 0);
  });
}

TEST(stop_outside, timeout) {
  in_all_ways([](way by, kind of) -> task<> {
    gate never;
    auto limited = [&] { return weft::detail::as_task(weft::timeout(1h, one_after(never))); };
    EXPECT_EQ(co_await told(by, of, limited, never, 1), "stopped");
    auto fails = [&] { return weft::detail::as_task(weft::timeout(1h, fail_when_told(never))); };
    EXPECT_EQ(co_await told(by, of, fails, never, 1), "failed");
    auto value = [&]() -> task<int> {  // told, and yet it has one
      auto ends_all_the_same = [](gate& door) -> task<int> {
        static_cast<void>(co_await as_result(pass(door)));
        co_return 1;
      };
      co_return co_await weft::timeout(1h, ends_all_the_same(never));
    };
    EXPECT_EQ(co_await told(by, of, value, never, 1), "value");
  });
}

TEST(stop_inside, timeout_of_a_scope_whose_body_has_its_value) {
  with_all_kinds([](kind of) -> task<> {
    gate never;
    auto body = [&, of](scope& s) -> task<int> {
      fork_one(s, of, never);
      co_return 1;
    };
    EXPECT_EQ((co_await as_result(weft::timeout(1ms, with_scope(body)))).error(), errc::timed_out);
    EXPECT_EQ((co_await as_result(weft::timeout(0ms, with_scope(body)))).error(), errc::timed_out);
  });
}

// The time is over first, but the work ends after the stop.
TEST(stop_outside, is_not_masked_by_a_timeout) {
  with_all_kinds([](kind of) -> task<> {
    gate never, held;
    std::string seen;
    auto limited = [&] { return weft::detail::as_task(weft::timeout(1ms, leave_late(never, held))); };
    auto body = [&, of](scope& s) -> task<> {
      auto noted = [&]() -> task<> { seen = what(co_await as_result(limited())); };
      fork<> one = of == kind::fiber ? s.go([&] { seen = what(await(as_result(limited()))); }) : s.fork(noted());
      co_await full(held, 1);
      one.request_stop();
      held.open();
      static_cast<void>(co_await as_result(one));
      EXPECT_EQ(seen, "stopped");
    };
    co_await with_scope(body);
  });
}

TEST(stop_outside, merge_and_generators_give_nothing_partial) {
  in_all_ways([](way by, kind of) -> task<> {
    gate never;
    auto numbers = [&](int from) -> weft::async_generator<int> {
      co_yield from;
      co_await never;
      co_yield from + 1;
    };
    auto merged = [&] { return weft::merge(numbers(1), numbers(5)) | weft::collect(); };
    EXPECT_EQ(co_await told(by, of, merged, never, 2), "stopped");
    int sum = 0;
    auto each = [&] {
      return weft::merge(numbers(1), numbers(5)) | weft::for_each([&](int n) {
               sum += n;
               return n != 99;
             });
    };
    EXPECT_EQ(co_await told(by, of, each, never, 2), "stopped");
    EXPECT_EQ(sum, 6);
    auto consumed = [&]() -> task<int> {
      int last = 0;
      auto source = numbers(1);
      while (const int* n = co_await source.next()) last = *n;
      co_return last;
    };
    EXPECT_EQ(co_await told(by, of, consumed, never, 1), "stopped");
  });
}

TEST(stop_inside, merge_and_generators_end) {
  with_all_kinds([](kind of) -> task<> {
    gate never;
    auto numbers = [&](int from) -> weft::async_generator<int> {
      co_yield from;
      co_await never;
    };
    auto until_five = [](int n) { return n != 5; };
    auto stops_inside = [&]() -> weft::async_generator<int> {  // a scope of its own, which it stops
      co_yield 1;
      auto inner = [&](scope& in) -> task<int> {
        in.fork(pass(never));
        in.request_stop();
        co_return 2;
      };
      co_yield co_await with_scope(inner);
    };
    auto body = [&, of](scope& s) -> task<> {
      auto merged = [&] { return weft::merge(numbers(1), numbers(5)) | weft::for_each(until_five); };
      co_await in_a(s, of, merged);
      auto collected = [&] { return weft::collect(stops_inside()); };
      const std::vector<int> values = co_await in_a(s, of, collected);
      EXPECT_TRUE(values.size() == 2 && values.front() == 1 && values.back() == 2);
    };
    co_await with_scope(body);
  });
}

// ---- who awaits what was stopped ------------------------------------------------------------------------------------------

TEST(stop_outside, who_awaits_a_stopped_fork_view_or_shared_task_is_stopped) {
  in_all_ways([](way by, kind of) -> task<> {
    for (const int by_what : {0, 1, 2}) {
      gate never;
      auto start = [&](scope_options options) {
        auto body = [&, of, by_what](scope& s) -> task<int> {
          auto shared = weft::shared_task<>{pass(never)};
          if (by_what == 2) co_return (co_await shared, 1);
          fork<> one = fork_one(s, of, never);
          if (by_what == 1) co_return (co_await one.view(), 1);
          co_await std::move(one);
          co_return 1;
        };
        return with_scope(options, body);
      };
      EXPECT_EQ(what(co_await told_from_outside(by, start, never, 1)), "stopped") << by_what;
    }
  });
}

TEST(stop_inside, who_awaits_a_stopped_fork_or_view_is_stopped_and_not_the_scope) {
  with_all_kinds([](kind of) -> task<> {
    gate never;
    std::string first, second;
    auto body = [&, of](scope& s) -> task<int> {
      fork<> one = fork_one(s, of, never);
      auto looks = [](weft::fork_view<> at) -> task<> { co_await at; };
      fork<> other = of == kind::fiber ? s.go([seen = one.view()] { await(seen); }) : s.fork(looks, one.view());
      co_await full(never, 1);
      one.request_stop();
      first = what(co_await as_result(std::move(one)));
      second = what(co_await as_result(std::move(other)));
      co_return 1;
    };
    EXPECT_EQ(what(co_await as_result(with_scope(body))), "value");
    EXPECT_EQ(first, "stopped");
    EXPECT_EQ(second, "stopped");
  });
}

// ---- what a stop does not reach -------------------------------------------------------------------------------------------

// The scope is awaited by a task that is shielded: it ends with its value, and the next wait stops.
TEST(stop_outside, does_not_reach_a_shielded_scope) {
  with_all_kinds([](kind of) -> task<> {
    gate door;
    std::string inner, outer;
    auto held = [&, of](scope& s) -> task<int> {
      fork_one(s, of, door);
      co_return 1;
    };
    auto work = [&]() -> task<> {
      inner = what(co_await as_result(weft::shielded(with_scope(held))));
      co_await door;  // which is open; but weft's waits would stop here
      co_await weft::check_stop();
      inner = "went on";
    };
    auto body = [&](scope& s) -> task<> {
      fork<> one = s.fork(work());
      co_await full(door, 1);
      one.request_stop();
      door.open();
      outer = what(co_await as_result(std::move(one)));
    };
    co_await with_scope(body);
    EXPECT_EQ(inner, "value");
    EXPECT_EQ(outer, "stopped");
  });
}

// A part that is shielded ends with its value, and so does the scope; one that waits once more is stopped.
TEST(stop_outside, a_shielded_part_ends_with_its_value) {
  in_all_ways([](way by, kind of) -> task<> {
    for (const bool waits_again : {false, true}) {
      gate door, never;
      auto start = [&](scope_options options) {
        auto body = [&, of, waits_again](scope& s) -> task<int> {
          auto work = [&, waits_again]() -> task<> {
            co_await weft::shielded(door.pass());
            if (waits_again) co_await never;
          };
          auto in_fiber = [&, waits_again] {
            await(weft::shielded(door.pass()));
            if (waits_again) await(never.pass());
          };
          fork<> one = of == kind::fiber ? s.go(in_fiber) : s.fork(work);
          auto opens = [](weft::scope& told, gate& at) -> task<> {
            while (!told.stop_requested()) co_await weft::shielded(weft::yield());
            at.open();
          };
          s.fork(opens, std::ref(s), std::ref(door));
          static_cast<void>(co_await as_result(std::move(one)));
          co_return 1;
        };
        return with_scope(options, body);
      };
      EXPECT_EQ(what(co_await told_from_outside(by, start, door, 1)), waits_again ? "stopped" : "value");
    }
  });
}

TEST(stop_outside, does_not_reach_a_scope_in_a_cleanup) {
  with_all_kinds([](kind of) -> task<> {
    gate never, door;
    std::string inner, outer;
    auto cleanup = [&, of]() -> task<> {
      auto held = [&, of](scope& s) -> task<int> {
        fork_one(s, of, door);
        co_return 1;
      };
      inner = what(co_await as_result(with_scope(held)));
    };
    auto work = [&]() -> task<> {
      co_await weft::on_scope_exit(cleanup());
      co_await never;
    };
    auto body = [&](scope& s) -> task<> {
      fork<> one = s.fork(work());
      co_await full(never, 1);
      one.request_stop();
      co_await full(door, 1);
      door.open();
      outer = what(co_await as_result(std::move(one)));
    };
    co_await with_scope(body);
    EXPECT_EQ(inner, "value");
    EXPECT_EQ(outer, "stopped");
  });
}

// ---- what was told, and has a value ---------------------------------------------------------------------------------------

TEST(stop_outside, parts_that_have_a_value_all_the_same_leave_the_value) {
  in_all_ways([](way by, kind of) -> task<> {
    gate never;
    auto start = [&](scope_options options) {
      auto body = [&, of](scope& s) -> task<int> {
        auto partial = [](gate& door) -> task<int> {
          static_cast<void>(co_await as_result(pass(door)));
          co_return 1;
        };
        auto in_fiber = [&] {
          try {
            await(never.pass());
          } catch (const weft::stopped&) {  // let pass, mostly
          }
        };
        if (of == kind::fiber)
          s.go(in_fiber);
        else
          s.fork(partial, std::ref(never));
        s.fork(as_result(pass(never)));  // who wants partial results forks this
        co_return 1;
      };
      return with_scope(options, body);
    };
    EXPECT_EQ(what(co_await told_from_outside(by, start, never, 2)), "value");
  });
}

TEST(stop_outside, parts_that_ended_before_it_do_not_count) {
  with_all_kinds([](kind of) -> task<> {
    gate never, door;
    std::string seen;
    auto held = [&, of](scope& s) -> task<int> {
      fork<> one = fork_one(s, of, never);
      co_await full(never, 1);
      one.request_stop();  // from inside, before the stop from outside
      static_cast<void>(co_await as_result(std::move(one)));
      co_await weft::shielded(door.pass());
      co_return 1;
    };
    auto body = [&](scope& s) -> task<> {
      fork<> one = s.fork([&]() -> task<> { seen = what(co_await as_result(with_scope(held))); });
      co_await full(door, 1);
      one.request_stop();
      door.open();
      static_cast<void>(co_await as_result(std::move(one)));
    };
    co_await with_scope(body);
    EXPECT_EQ(seen, "value");
  });
}

// ---- told before it began -------------------------------------------------------------------------------------------------

TEST(stop_outside, told_before_it_began) {
  with_all_kinds([](kind of) -> task<> {
    gate never;
    stop_source source;
    source.request_stop();
    auto body = [&, of](scope& s) -> task<int> {
      fork_one(s, of, never);
      co_return 1;
    };
    auto whole = [&] { return with_scope(body); };
    EXPECT_EQ(what(co_await as_result(with_scope({.stop = source.token()}, body))), "stopped");
    EXPECT_EQ(what(co_await as_result(weft::with_stop(source.token(), whole))), "stopped");
    EXPECT_EQ(what(co_await as_result(weft::with_deadline(0ms, whole))), "stopped");
    EXPECT_EQ(what(co_await as_result(with_scope({.deadline = weft::current_clock().now()}, body))), "stopped");
    auto asks = [&](scope& s) -> task<int> {  // ends in its first run
      if (s.stop_requested()) s.fork([]() -> task<> { co_await weft::check_stop(); });
      co_return 1;
    };
    EXPECT_EQ(what(co_await as_result(with_scope({.stop = source.token()}, asks))), "stopped");
    EXPECT_EQ(never.waiting(), 0);
  });
  // The awaiting task itself, which asks nobody before the body has run through.
  test::virtual_clock time;
  auto whole = []() -> task<int> {
    auto body = [](scope& s) -> task<int> {
      s.fork([]() -> task<> { co_await weft::check_stop(); });
      co_return 1;
    };
    co_return co_await with_scope(body);
  };
  EXPECT_EQ(what(test::run_stopped(time, whole())), "stopped");
}

// A scope in the fork runs through and ends stopped: so does the fork, before it has ever been away.
TEST(stop_outside, a_fork_that_ends_stopped_without_a_wait_counts) {
  for (const kind of : kinds) {
    stop_source source;
    auto inner = [](scope& s) -> task<> {
      s.fork([]() -> task<> { co_await weft::check_stop(); });
      co_return;
    };
    auto has_a_scope = [&]() -> task<> { co_await with_scope(inner); };
    auto tells_and_forks = [&, of](scope& s) -> task<int> {
      source.request_stop();
      if (of == kind::fiber)
        s.go([&] { await(with_scope(inner)); });
      else
        s.fork(has_a_scope);
      co_return 1;
    };
    EXPECT_EQ(what(sync_wait(as_result(with_scope({.stop = source.token()}, tells_and_forks)))), "stopped");
  }
}

TEST(stop_inside, told_before_it_began) {
  with_all_kinds([](kind of) -> task<> {
    gate never;
    std::string awaited;
    auto body = [&, of](scope& s) -> task<int> {
      s.request_stop();
      fork<> one = fork_one(s, of, never);
      awaited = what(co_await as_result(std::move(one)));
      co_return 1;
    };
    EXPECT_EQ(what(co_await as_result(with_scope(body))), "value");
    EXPECT_EQ(awaited, "stopped");
    weft::manual_executor later;
    auto elsewhere = [&](scope& s) -> task<int> {
      auto work = pass(never);
      fork<> one = s.fork_on(later, std::move(work));
      one.request_stop();
      later.run_all();
      awaited = what(co_await as_result(std::move(one)));
      co_return 1;
    };
    awaited.clear();
    EXPECT_EQ(what(co_await as_result(with_scope(elsewhere))), "value");
    EXPECT_EQ(awaited, "stopped");
  });
}

// ---- inside does not mask outside -----------------------------------------------------------------------------------------

// The part is told from inside, and ends when the stop from outside has come, too.
TEST(stop_outside, is_not_masked_by_a_stop_from_inside) {
  with_all_kinds([](kind of) -> task<> {
    for (const bool by_token : {false, true}) {
      gate never, held;
      stop_source source;
      std::optional<result<int>> how;
      auto inner = [&, of](scope& s) -> task<int> {
        auto stays = [&] { await(leave_late(never, held)); };
        if (of == kind::fiber)
          s.go(stays);
        else
          s.fork(leave_late(never, held));
        co_await full(never, 1);
        s.request_stop();
        co_return 1;
      };
      auto outer = [&, by_token](scope& s) -> task<> {
        fork<> one = s.fork(note(with_scope({.stop = source.token()}, inner), how));
        co_await full(held, 1);
        if (by_token)
          source.request_stop();
        else
          one.request_stop();
        held.open();
      };
      co_await with_scope(outer);
      EXPECT_EQ(what(*how), "stopped");
    }
  });
}

TEST(stop_outside, a_deadline_that_passes_before_the_last_part_has_ended_is_not_masked) {
  for (const kind of : kinds)
    for (const auto cleanup : {2ms, 10ms}) {
      test::virtual_clock time;
      auto leaves = [&, cleanup]() -> task<> {
        co_await weft::on_scope_exit(weft::sleep_for(cleanup));
        co_await weft::sleep_for(1h);
      };
      auto all = [&, of]() -> task<int> {
        auto body = [&, of](scope& s) -> task<int> {
          if (of == kind::fiber)
            s.go([&] { await(leaves()); });
          else
            s.fork(leaves());
          co_await weft::sleep_for(1ms);
          s.request_stop();
          co_return 1;
        };
        co_return co_await with_scope({.deadline = time.now() + 5ms}, body);
      };
      EXPECT_EQ(what(test::run_timed(time, all())), cleanup < 4ms ? "value" : "stopped");
    }
}

// A stop from inside of the outer scope comes from outside of the inner one.
TEST(stop_outside, inside_of_the_outer_scope_is_outside_of_the_inner_one) {
  with_all_kinds([](kind of) -> task<> {
    gate never;
    std::optional<result<int>> how;
    auto inner = [&, of](scope& s) -> task<int> {
      fork_one(s, of, never);
      co_return 1;
    };
    auto nested = [&]() -> task<> {
      how = co_await as_result(with_scope(inner));
      co_await weft::check_stop();
    };
    auto outer = [&](scope& s) -> task<int> {
      s.fork(nested());
      co_await full(never, 1);
      s.request_stop();
      co_return 2;
    };
    EXPECT_EQ(what(co_await as_result(with_scope(outer))), "value");
    EXPECT_EQ(what(*how), "stopped");
  });
}

// What an executor stops because it is ended was stopped by nobody inside.
TEST(stop_outside, of_a_pool_that_is_cancelled) {
  weft::pool threads{{.threads = 2}};
  std::atomic<bool> began{false};
  auto spins = [&]() -> task<> {
    for (began = true;;) co_await weft::yield();
  };
  auto body = [&](scope& s) -> task<int> {
    s.fork_on(threads.executor(), spins);
    co_return 1;
  };
  std::jthread ends{[&] {
    test::until([&] { return began.load(); });
    threads.shutdown(weft::pool_shutdown::cancel);
  }};
  EXPECT_THROW(sync_wait(with_scope(body)), weft::stopped);
}

}  // namespace
