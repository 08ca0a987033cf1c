// How scopes end: failures, policies, stops, and why.
#include <weft/channel.hpp>
#include <weft/combine.hpp>
#include <weft/executor.hpp>
#include <weft/from_callback.hpp>
#include <weft/future.hpp>
#include <weft/on_scope_exit.hpp>
#include <weft/scope.hpp>
#include <weft/sync.hpp>
#include <weft/with.hpp>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/tasks.hpp"
#include "support/weft_test.hpp"

namespace {

using test::fail;
using weft::as_result;
using weft::error_list;
using weft::fork;
using weft::fork_status;
using weft::fork_view;
using weft::result;
using weft::scope;
using weft::stop_source;
using weft::sync_wait;
using weft::task;
using weft::with_scope;

task<> pass(test::gate& door) { co_await door; }
task<int> fail_after(test::gate& door, const char* why) {
  co_await door;
  throw std::runtime_error{why};
}

template <class T>
std::string what(const result<T>& how) {
  if (how.is_stopped()) return "stopped";
  if (how.has_value()) return "value";
  try {
    std::rethrow_exception(how.exception());
  } catch (const std::exception& thrown) {
    return thrown.what();
  }
}
std::string what(const std::exception_ptr& failure) { return what(result<int>{failure}); }

// Counts the children that are waiting at its gate and how each of them left.
struct crowd {
  test::gate door;
  int unwound = 0;
  int passed = 0;

  task<> member() {
    struct leaves {
      crowd& of;
      bool through = false;
      ~leaves() { ++(through ? of.passed : of.unwound); }
    } here{*this};
    co_await door;
    here.through = true;
  }
};

// ---- failures -------------------------------------------------------------------------------------------------------------

WEFT_TEST("scope_failure: the first stops the siblings and the body, all are joined, then it is thrown") {
  for (const bool at_once : {true, false}) {
    crowd waiting;
    test::gate early;
    bool body_left = false;
    auto body = [&](scope& s) -> task<> {
      struct leaves {
        bool& flag;
        ~leaves() { flag = true; }
      } const here{body_left};
      for (int i = 0; i != 3; ++i) s.fork(waiting.member());
      if (at_once)
        s.fork(fail("first"));
      else
        s.fork(fail_after(early, "first"));
      for (int i = 0; i != 3; ++i) s.fork(waiting.member());
      early.open();
      co_await waiting.door;
      ADD_FAILURE();
    };
    const auto how = co_await as_result(with_scope(body));
    EXPECT_EQ(what(how), "first");
    EXPECT_EQ(waiting.unwound, 6);
    EXPECT_TRUE(body_left);
  }
}

WEFT_TEST("scope_failure: of the body stops and joins the forks") {
  crowd waiting;
  auto body = [&](scope& s) -> task<int> {
    s.fork(waiting.member());
    co_return co_await fail("body");
  };
  EXPECT_EQ(what(co_await as_result(with_scope(body))), "body");
  EXPECT_EQ(waiting.unwound, 1);
}

WEFT_TEST("scope_failure: of a body that is no coroutine, and throws after it forked") {
  crowd waiting;
  auto body = [&](scope& s) -> task<int> {
    s.fork(waiting.member());
    throw std::runtime_error{"no coroutine"};
  };
  EXPECT_EQ(what(co_await as_result(with_scope(body))), "no coroutine");
  EXPECT_EQ(waiting.unwound, 1);
}

WEFT_TEST("scope_failure: every observer gets the same exception") {
  test::gate door;
  std::vector<std::exception_ptr> seen;
  auto observe = [&](fork_view<int> of) -> task<> {
    try {
      co_await of;
    } catch (...) {  // counted
      seen.push_back(std::current_exception());
    }
  };
  auto body = [&](scope& s) -> task<> {
    for (test::gate* at : {static_cast<test::gate*>(nullptr), &door}) {
      fork<int> f = at == nullptr ? s.fork(fail("shared")) : s.fork(fail_after(*at, "shared"));
      const fork_view<int> v = f.view();
      fork<> a = s.fork(observe, v), b = s.fork(observe, v);
      door.open();
      try {
        co_await f;
      } catch (...) {  // as above
        seen.push_back(std::current_exception());
      }
      co_await std::move(a);
      co_await std::move(b);
      try {
        co_await std::move(f);
      } catch (...) {  // as above
        seen.push_back(std::current_exception());
      }
    }
  };
  int handled = 0;
  auto handler = [&](std::exception_ptr) { ++handled; };
  co_await with_scope({.on_error = handler}, body);
  EXPECT_EQ(handled, 2);
  EXPECT_EQ(seen.size(), 8U);
  for (std::size_t i = 0; i != 4; ++i) {
    EXPECT_EQ(seen[i], seen[0]);
    EXPECT_EQ(seen[4 + i], seen[4]);
  }
}

WEFT_TEST("scope_failure: later ones are kept, and one that the body throws on is one") {
  error_list all;
  auto stubborn = [](test::gate& door) -> task<> {
    co_await weft::shielded(door.pass());
    throw std::runtime_error{"later"};
  };
  test::gate door;
  auto body = [&](scope& s) -> task<> {
    s.fork(stubborn, std::ref(door));
    fork<int> f = s.fork(fail("first"));
    door.open();
    co_await std::move(f);
  };
  EXPECT_EQ(what(co_await as_result(with_scope({.errors = &all}, body))), "first");
  EXPECT_EQ(all.size(), 2U);
  EXPECT_EQ(what(all[0]), "first");
  EXPECT_EQ(what(all[1]), "later");
}

WEFT_TEST("scope_failure: collect_all_errors stops nobody, and throws all") {
  crowd waiting;
  auto body = [&](scope& s) -> task<> {
    s.fork(waiting.member());
    s.fork(fail("one"));
    s.fork(fail("two"));
    waiting.door.open();
    co_return;
  };
  try {
    co_await with_scope({.on_error = weft::collect_all_errors}, body);
    ADD_FAILURE();
  } catch (const error_list& all) {
    std::vector<std::string> texts;
    for (const std::exception_ptr& one : all) texts.push_back(what(one));
    EXPECT_EQ(texts, (std::vector<std::string>{"one", "two"}));
  }
  EXPECT_EQ(waiting.passed, 1);
}

int logged = 0;
void log_and_continue(std::exception_ptr) { ++logged; }

WEFT_TEST("scope_failure: a handler deals with each, be it a function or an object") {
  logged = 0;
  auto body = [](scope& s) -> task<int> {
    s.fork(fail("one"));
    fork<int> kept = s.fork(fail("two"));
    EXPECT_EQ(kept.status(), fork_status::failed);
    EXPECT_EQ(what(co_await as_result(std::move(kept))), "two");
    EXPECT_FALSE(s.stop_requested());
    co_return 1;
  };
  EXPECT_EQ(co_await with_scope({.on_error = log_and_continue}, body), 1);
  EXPECT_EQ(co_await with_scope({.on_error = &log_and_continue}, body), 1);
  EXPECT_EQ(co_await with_scope({.on_error = [](std::exception_ptr) { ++logged; }}, body), 1);
  EXPECT_EQ(logged, 6);
  auto body_fails = [](scope&) -> task<int> { co_return co_await fail("body"); };
  EXPECT_EQ(what(co_await as_result(with_scope({.on_error = log_and_continue}, body_fails))), "body");
  EXPECT_EQ(logged, 6);
}

WEFT_TEST("scope_failure: supervise starts again, within its limits") {
  int calls = 0, asked = 0;
  test::gate door;
  auto flaky = [&](int good_at, bool waits) -> task<int> {
    if (waits) co_await door;
    if (++calls < good_at) throw std::runtime_error{"flaky"};
    co_return calls;
  };
  auto again = [&](std::exception_ptr) {
    ++asked;
    return weft::on_failure::restart;
  };
  for (const bool waits : {false, true}) {
    calls = asked = 0;
    auto body = [&](scope& s) -> task<int> {
      fork<int> f = s.fork(flaky, 3, waits);
      door.open();
      co_return co_await std::move(f);
    };
    EXPECT_EQ(co_await with_scope({.on_error = weft::supervise(again)}, body), 3);
    EXPECT_EQ(asked, 2);
    calls = asked = 0;
    const weft::restart_limits once{.restarts = 1};
    EXPECT_EQ(what(co_await as_result(with_scope({.on_error = weft::supervise(again, once)}, body))), "flaky");
    EXPECT_EQ(asked, 2);
    EXPECT_EQ(calls, 2);
  }
  // A task can't be started again, so that is a failure of the scope; and so it is where the handler says so.
  auto of_a_task = [&](scope& s) -> task<> {
    s.fork(fail("task"));
    co_return;
  };
  EXPECT_EQ(what(co_await as_result(with_scope({.on_error = weft::supervise(again)}, of_a_task))), "task");
  auto gives_up = [](std::exception_ptr) { return weft::on_failure::fail; };
  auto of_a_function = [&](scope& s) -> task<> {
    s.fork([]() -> task<> {
      throw std::runtime_error{"function"};
      co_return;
    });
    co_return;
  };
  EXPECT_EQ(what(co_await as_result(with_scope({.on_error = weft::supervise(gives_up)}, of_a_function))), "function");
}

WEFT_TEST("scope_failure: supervise does not start again what was told to stop") {
  int calls = 0;
  test::gate never;
  auto again = [](std::exception_ptr) { return weft::on_failure::restart; };
  auto fails = [&]() -> task<> {
    static_cast<void>(co_await as_result(pass(never)));
    if (++calls == 5) std::abort();
    throw std::runtime_error{"told"};
  };
  auto one_alone = [&](scope& s) -> task<> {
    fork<> f = s.fork(fails);
    f.request_stop();
    EXPECT_EQ(what(co_await as_result(f)), "told");
  };
  co_await with_scope({.on_error = weft::supervise(again)}, one_alone);
  EXPECT_EQ(calls, 1);

  // Of the task outside, which does not wait, and by a deadline, for which no timer is armed.
  calls = 0;
  auto fails_at_once = [&]() -> task<> {
    if (++calls == 5) std::abort();
    throw std::runtime_error{"told"};
    co_return;
  };
  auto forks = [&](scope& s) -> task<> {
    s.fork(fails_at_once);
    co_return;
  };
  fork<> outer;
  auto inner = [&](fork<>& self) -> task<> {
    self.request_stop();
    co_await with_scope({.on_error = weft::supervise(again)}, forks);
  };
  auto whole = [&](scope& s) -> task<> {
    test::gate door;
    auto waits = [&]() -> task<> {
      co_await door;
      co_await inner(outer);
    };
    outer = s.fork(waits);
    door.open();
    static_cast<void>(co_await as_result(outer));
    outer = {};
  };
  co_await with_scope(whole);
  EXPECT_EQ(calls, 1);
  calls = 0;
  const auto past = std::chrono::steady_clock::time_point::min();
  static_cast<void>(co_await as_result(with_scope({.deadline = past, .on_error = weft::supervise(again)}, forks)));
  EXPECT_EQ(calls, 1);
}

// ---- stops ------------------------------------------------------------------------------------------------------------------

WEFT_TEST("scope_stop: of the scope goes to the body and to all forks, also later ones") {
  crowd waiting;
  auto body = [&](scope& s) -> task<> {
    s.fork(waiting.member());
    EXPECT_TRUE(s.request_stop());
    EXPECT_FALSE(s.request_stop());
    EXPECT_TRUE(s.stop_requested());
    EXPECT_TRUE(weft::current_env().stop.stop_requested());
    s.fork(waiting.member());
    co_await waiting.door;
    ADD_FAILURE();
  };
  EXPECT_TRUE((co_await as_result(with_scope(body))).is_stopped());
  EXPECT_EQ(waiting.unwound, 2);
}

WEFT_TEST("scope_stop: a body that does not wait again keeps its value") {
  crowd waiting;
  auto body = [&](scope& s) -> task<int> {
    s.fork(waiting.member());
    s.request_stop();
    co_return 3;
  };
  EXPECT_EQ(co_await with_scope(body), 3);
  EXPECT_EQ(waiting.unwound, 1);
}

WEFT_TEST("scope_stop: of one fork leaves the others, and ends who awaits it") {
  crowd waiting;
  auto body = [&](scope& s) -> task<> {
    fork<> one = s.fork(waiting.member()), other = s.fork(waiting.member());
    one.request_stop();
    EXPECT_TRUE((co_await as_result(one)).is_stopped());
    EXPECT_EQ(one.status(), fork_status::stopped);
    EXPECT_TRUE((co_await as_result(one.view())).is_stopped());
    EXPECT_FALSE(other.done());
    waiting.door.open();
    co_await std::move(other);
    co_await std::move(one);
    ADD_FAILURE();
  };
  EXPECT_TRUE((co_await as_result(with_scope(body))).is_stopped());
  EXPECT_EQ(waiting.unwound, 1);
  EXPECT_EQ(waiting.passed, 1);
}

WEFT_TEST("scope_stop: a fork that ends stopped in its first run") {
  test::gate never;
  auto body = [&](scope& s) -> task<> {
    fork<> first = s.fork(pass(never));
    first.request_stop();
    static_cast<void>(co_await as_result(first));
    auto awaits = [&]() -> task<> { co_await first; };  // which has ended stopped
    for (int i = 0; i != 3; ++i) {
      fork<> one = s.fork(awaits);
      EXPECT_EQ(one.status(), fork_status::stopped);
      EXPECT_EQ(one.view().status(), fork_status::stopped);
    }
  };
  co_await with_scope(body);
}

WEFT_TEST("scope_stop: of the task outside goes inside") {
  for (const bool body_waits : {true, false}) {
    crowd waiting;
    stop_source source;
    auto body = [&](scope& s) -> task<> {
      s.fork(waiting.member());
      s.fork(waiting.member());
      if (body_waits) co_await waiting.door;
    };
    auto outside = [&]() -> task<> { co_await with_scope(body); };
    std::jthread stopper{[&] {
      test::until([&] { return waiting.door.waiting() == 2 + body_waits; });
      source.request_stop();
    }};
    bool was_stopped = false;
    std::jthread runner{[&] {
      try {
        sync_wait(outside(), source.token());
      } catch (weft::stopped) {
        was_stopped = true;
      }
    }};
    runner.join();
    EXPECT_TRUE(was_stopped);  // also where the body had its value: see stop_outside_test.cpp
    EXPECT_EQ(waiting.unwound, 2);
  }
  co_return;
}

WEFT_TEST("scope_stop: by a token, at any time") {
  for (int when = 0; when != 3; ++when) {
    crowd waiting;
    stop_source source;
    if (when == 0) source.request_stop();
    auto body = [&](scope& s) -> task<> {
      s.fork(waiting.member());
      if (when == 1) source.request_stop();
      co_await waiting.door;
    };
    std::jthread stopper;
    if (when == 2)
      stopper = std::jthread{[&] {
        test::until([&] { return waiting.door.waiting() == 2; });
        source.request_stop();
      }};
    EXPECT_TRUE((co_await as_result(with_scope({.stop = source.token()}, body))).is_stopped());
    EXPECT_EQ(waiting.unwound, 1);
  }
}

TEST(scope_stop, by_a_token_where_nobody_has_an_executor_and_all_end_inside_the_stop) {
  for (const bool body_waits : {true, false}) {
    crowd waiting;
    stop_source source;
    int ended = 0;
    auto body = [&](scope& s) -> task<> {
      s.fork(waiting.member());
      s.fork(waiting.member());
      if (body_waits) co_await waiting.door;
    };
    weft::start(with_scope({.stop = source.token()}, body), [&](result<void> how) {
      ++ended;
      EXPECT_TRUE(how.is_stopped());
    });
    EXPECT_EQ(ended, 0);
    source.request_stop();
    EXPECT_EQ(ended, 1);
    EXPECT_EQ(waiting.unwound, 2);
  }
}

// A scope in a fork of a scope, or in its body, and so on; the innermost waits at the door.
struct counts_its_end {
  int& ended;
  ~counts_its_end() { ++ended; }
};
task<> nest_in_forks(test::gate& door, int depth, int& unwound) {
  auto body = [&](scope& s) -> task<> {
    if (depth == 0) co_return co_await pass(door);
    s.fork(nest_in_forks(door, depth - 1, unwound));
  };
  const counts_its_end here{unwound};
  co_await with_scope(body);
}
task<> nest_in_bodies(test::gate& door, int depth, int& unwound) {
  auto body = [&](scope&) -> task<> {
    if (depth == 0) co_return co_await pass(door);
    co_await nest_in_bodies(door, depth - 1, unwound);
  };
  const counts_its_end here{unwound};
  co_await with_scope(body);
}

task<> nest_in_joins(test::gate& door, int depth, int& unwound) {
  const counts_its_end here{unwound};
  if (depth == 0) co_return co_await pass(door);
  co_await when_all(nest_in_joins(door, depth - 1, unwound));
}
task<> nest_in_made_joins(test::gate& door, int depth, int& unwound) {
  const counts_its_end here{unwound};
  if (depth == 0) co_return co_await pass(door);
  auto make = [&](std::size_t) { return nest_in_made_joins(door, depth - 1, unwound); };
  co_await weft::when_all(1, make);
}
task<> nest_in_races(test::gate& door, int depth, int& unwound) {
  const counts_its_end here{unwound};
  if (depth == 0) co_return co_await pass(door);
  co_await when_any(nest_in_races(door, depth - 1, unwound));
}
constexpr auto nests = {nest_in_forks, nest_in_bodies, nest_in_joins, nest_in_made_joins, nest_in_races};

TEST(scope_stop, a_hundred_thousand_in_each_other_need_no_stack) {
  for (auto* const nest : nests) {
    test::gate door;
    int unwound = 0;
    auto body = [&](scope& s) -> task<> {
      auto outermost = s.fork(nest(door, 100'000, unwound));
      co_await weft::yield();
      outermost.request_stop();
      EXPECT_TRUE((co_await as_result(std::move(outermost))).is_stopped());
    };
    sync_wait(with_scope(body));
    EXPECT_EQ(unwound, 100'001);
  }
}

TEST(scope_stop, from_a_fiber_of_a_thousand_in_each_other) {
  for (auto* const nest : nests) {
    test::gate door;
    int unwound = 0;
    auto body = [&](scope& s) -> task<> {
      auto outermost = s.fork(nest(door, 1000, unwound));
      co_await weft::yield();
      co_await s.go({.size = std::size_t{128} << 10}, [&] { outermost.request_stop(); });
      EXPECT_TRUE((co_await as_result(std::move(outermost))).is_stopped());
    };
    sync_wait(with_scope(body));
    EXPECT_EQ(unwound, 1001);
  }
}

TEST(scope_stop, children_drop_each_others_handles_while_they_are_told) {
  test::gate never;
  stop_source source;
  std::vector<fork<>> handles;
  int unwound = 0;
  bool ended = false;
  auto member = [&]() -> task<> {
    struct leaves {
      std::vector<fork<>>& handles;
      int& unwound;
      ~leaves() {
        ++unwound;
        handles.clear();
      }
    } const here{handles, unwound};
    co_await never;
  };
  auto body = [&](scope& s) -> task<> {
    for (int i = 0; i != 100; ++i) handles.push_back(s.fork(member));
    co_return;
  };
  weft::start(with_scope({.stop = source.token()}, body), [&](result<void> how) { ended = how.is_stopped(); });
  source.request_stop();
  EXPECT_TRUE(ended);
  EXPECT_EQ(unwound, 100);
  EXPECT_EQ(never.waiting(), 0);
}

// Starts a scope with `body` that nobody has an executor for, stops it, and expects it to have ended by then.
template <class Body>
void stop_where_nobody_has_an_executor(Body& body) {
  stop_source source;
  bool ended = false;
  weft::start(with_scope({.stop = source.token()}, body), [&](result<void>) { ended = true; });
  EXPECT_FALSE(ended);
  source.request_stop();
  EXPECT_TRUE(ended);
}

// How many children: those that are told together, fewer, and more.
constexpr int counts_of_children[] = {1, 2, 15, 16, 17, 40};

// Lines in turn, of several kinds, and of two frames each: all are left, and each child is unwound once.
TEST(scope_stop, children_that_wait_in_several_lines) {
  for (const int count : counts_of_children) {
    weft::event first, second;
    weft::semaphore none{0};
    weft::mutex held;
    weft::channel<int> empty{1};
    auto guard = held.try_lock();
    int unwound = 0;
    auto wait = [&](int i) -> task<> {
      switch (i % 6) {
        case 0: co_await first.wait(); break;
        case 1: co_await second.wait(); break;
        case 2: static_cast<void>(co_await none.acquire()); break;
        case 3: static_cast<void>(co_await held.lock()); break;
        case 4: static_cast<void>(co_await empty.receive()); break;
        default: co_await first.wait();
      }
      ADD_FAILURE();
    };
    auto child = [&](int i) -> task<> {
      struct leaves {
        int& unwound;
        ~leaves() { ++unwound; }
      } const here{unwound};
      co_await wait(i);
    };
    auto body = [&](scope& s) -> task<> {
      for (int i = 0; i != count; ++i) s.fork(child, i);
      co_return;
    };
    stop_where_nobody_has_an_executor(body);
    EXPECT_EQ(unwound, count);
    EXPECT_EQ(first.stats().waiting + second.stats().waiting + none.stats().waiting + held.stats().waiting, 0U);
  }
}

// Those that were told before a permit came are stopped all the same, and it is not lost; others may get it.
TEST(scope_stop, a_child_that_releases_what_its_siblings_wait_for) {
  for (const int count : counts_of_children) {
    weft::semaphore permits{0};
    int unwound = 0, passed = 0;
    auto child = [&]() -> task<> {
      struct leaves {
        weft::semaphore& permits;
        int& unwound;
        ~leaves() {
          ++unwound;
          permits.release();
        }
      } const here{permits, unwound};
      static_cast<void>(co_await permits.acquire());
      ++passed;
    };
    auto body = [&](scope& s) -> task<> {
      for (int i = 0; i != count; ++i) s.fork(child);
      co_return;
    };
    stop_where_nobody_has_an_executor(body);
    EXPECT_EQ(unwound, count);
    EXPECT_LT(passed, count);
    EXPECT_EQ(permits.stats().waiting, 0U);
    EXPECT_EQ(permits.available(), static_cast<unsigned>(count));
  }
}

// An operation that has called back is not cancelled any more.
TEST(scope_stop, a_child_that_completes_what_its_sibling_waits_for) {
  weft::event never;
  std::optional<weft::callback<>> pending;
  bool came = false;
  int cancelled_late = 0, went_on = 0;
  auto caller = [&]() -> task<> {
    auto start = [&](weft::callback<> done) { pending.emplace(std::move(done)); };
    auto cancel = [&] {
      if (came)
        ++cancelled_late;
      else
        (*std::exchange(pending, std::nullopt))();
    };
    co_await weft::from_callback(start, cancel);
    ++went_on;
  };
  auto ends = [&]() -> task<> {
    struct leaves {
      bool& came;
      std::optional<weft::callback<>>& pending;
      ~leaves() {
        if (pending.has_value()) (*std::exchange(pending, std::nullopt))();
        came = true;
      }
    } const here{came, pending};
    co_await never.wait();
  };
  auto body = [&](scope& s) -> task<> {
    s.fork(caller);
    s.fork(ends);  // the newest is told first
    co_return;
  };
  stop_where_nobody_has_an_executor(body);
  EXPECT_EQ(cancelled_late, 0);
}

// A function that cancels runs in no root, on top of the body, whose fork() has not returned.
TEST(scope_stop, a_cancel_that_forks_in_the_first_run_of_a_fork) {
  weft::event never;
  std::vector<weft::callback<>> pending;
  int forked = 0;
  auto more = [&]() -> task<> {
    ++forked;
    co_return;
  };
  auto body = [&](scope& s) -> task<> {
    std::vector<fork<>> made;
    auto called = [&]() -> task<> {
      auto start = [&](weft::callback<> done) { pending.push_back(std::move(done)); };
      auto cancel = [&] {
        made.push_back(s.fork(more));
        pending.back()();
      };
      co_await weft::from_callback(start, cancel);
    };
    auto wins = []() -> task<> { co_return; };
    auto race = [&]() -> task<> { co_await weft::when_any(called(), wins()); };
    fork<> one = s.fork(race);
    EXPECT_EQ(forked, 1);
    co_await std::move(one);
    for (fork<>& each : made) co_await std::move(each);
  };
  bool ended = false;
  weft::start(with_scope(body), [&](result<void> how) { ended = how.has_value(); });
  EXPECT_TRUE(ended);
}

// Whoever was let through by a close may destroy what it waited in, also when that was told to stop meanwhile.
TEST(scope_stop, a_child_that_destroys_what_its_sibling_waits_in) {
  weft::event never;
  auto reader = [](weft::channel<int>& from) -> task<> {
    while (co_await from.receive()) {
    }
  };
  auto owner = [&](std::unique_ptr<weft::channel<int>> mine) -> task<> {
    struct leaves {
      weft::channel<int>& channel;
      ~leaves() { channel.close(); }
    } const here{*mine};
    co_await never.wait();
  };
  auto body = [&](scope& s) -> task<> {
    auto channel = std::make_unique<weft::channel<int>>(1);
    s.fork(reader, std::ref(*channel));
    s.fork(owner, std::move(channel));
    co_return;
  };
  stop_where_nobody_has_an_executor(body);
}

// A boundary that takes over, here a cleanup that waits, is the only one that goes on in the fork.
TEST(scope_stop, who_is_woken_runs_outside_of_the_child_that_woke_it) {
  weft::event woken, never, hold;
  stop_source source;
  bool ran = false, ended = false;
  auto outside = [&]() -> task<> { co_await woken.wait(); };
  weft::start(outside(), [&](result<void>) {
    ran = true;
    EXPECT_FALSE(weft::current_env().stop.stop_possible()) << "the fork's env has one";
  });
  auto cleanup = [&]() -> task<> { co_await hold.wait(); };
  auto child = [&]() -> task<> {
    co_await weft::on_scope_exit(cleanup);
    struct leaves {
      weft::event& woken;
      ~leaves() { woken.set(); }
    } const here{woken};
    co_await never.wait();
  };
  auto body = [&](scope& s) -> task<> {
    s.fork(child);
    co_return;
  };
  weft::start(with_scope({.stop = source.token()}, body), [&](result<void>) { ended = true; });
  source.request_stop();
  EXPECT_TRUE(ran);
  EXPECT_FALSE(ended);
  hold.set();
  EXPECT_TRUE(ended);
}

// Who is outside of the scope is woken by a child that is unwound, and runs before the stop is over.
TEST(scope_stop, a_child_that_wakes_somebody_as_it_goes) {
  weft::event gone, never;
  int woken = 0;
  auto outside = [&]() -> task<> {
    co_await gone.wait();
    ++woken;
  };
  weft::start(outside(), [](result<void>) {});
  auto child = [&]() -> task<> {
    struct leaves {
      weft::event& gone;
      ~leaves() { gone.set(); }
    } const here{gone};
    co_await never.wait();
  };
  auto body = [&](scope& s) -> task<> {
    for (int i = 0; i != 20; ++i) s.fork(child);
    co_return;
  };
  stop_where_nobody_has_an_executor(body);
  EXPECT_EQ(woken, 1);
}

// A cleanup runs between the wait and the end of some children, and awaits the sibling that is told next.
TEST(scope_stop, children_with_cleanups_that_wait) {
  for (const int count : counts_of_children) {
    weft::event never;
    int unwound = 0, cleaned = 0;
    auto clean_up = [&](fork_view<> sibling) -> task<> {
      EXPECT_TRUE((co_await as_result(std::move(sibling))).is_stopped());
      ++cleaned;
    };
    auto child = [&](fork_view<> sibling) -> task<> {
      struct leaves {
        int& unwound;
        ~leaves() { ++unwound; }
      } const here{unwound};
      if (sibling) co_await weft::on_scope_exit(clean_up, std::move(sibling));
      co_await never.wait();
    };
    auto body = [&](scope& s) -> task<> {
      fork_view<> last;
      for (int i = 0; i != count; ++i) last = s.fork(child, i % 3 == 1 ? std::move(last) : fork_view<>{}).view();
      co_return;
    };
    stop_where_nobody_has_an_executor(body);
    EXPECT_EQ(unwound, count);
    EXPECT_EQ(cleaned, (count + 1) / 3);
  }
}

// Children that fork as they go, and one that is awaited by its sibling.
TEST(scope_stop, children_that_fork_as_they_are_unwound) {
  weft::event never;
  int unwound = 0, forked = 0;
  auto more = [&]() -> task<> {
    ++forked;
    co_await never.wait();
    ADD_FAILURE();
  };
  auto child = [&](scope& s) -> task<> {
    struct leaves {
      scope& s;
      int& unwound;
      decltype(more)& work;
      ~leaves() {
        ++unwound;
        s.fork(work);
      }
    } const here{s, unwound, more};
    co_await never.wait();
  };
  auto body = [&](scope& s) -> task<> {
    for (int i = 0; i != 20; ++i) s.fork(child, std::ref(s));
    co_return;
  };
  stop_where_nobody_has_an_executor(body);
  EXPECT_EQ(unwound, 20);
  EXPECT_EQ(forked, 20);
  EXPECT_EQ(never.stats().waiting, 0U);
}

// Trees of scopes: inner ones are claimed before their turn comes, and end meanwhile by themselves, or not.
TEST(scope_stop, a_tree_whose_inner_scopes_end_while_it_is_told) {
  weft::event never, half;
  int unwound = 0, passed = 0;
  auto leaf = [&](bool opens) -> task<> {
    struct leaves {
      weft::event& half;
      int& unwound;
      bool opens;
      ~leaves() {
        ++unwound;
        if (opens) half.set();  // lets those of the next scopes through, if they were not told yet
      }
    } const here{half, unwound, opens};
    co_await (opens ? never : half).wait();
    ++passed;
  };
  auto node = [&](int which) -> task<> {
    auto body = [&](scope& s) -> task<> {
      for (int i = 0; i != 3; ++i) s.fork(leaf, which % 2 == 0);
      co_return;
    };
    co_await with_scope(body);
  };
  auto body = [&](scope& s) -> task<> {
    for (int i = 0; i != 20; ++i) s.fork(node, i);
    co_return;
  };
  stop_where_nobody_has_an_executor(body);
  EXPECT_EQ(unwound, 60);
  EXPECT_LE(passed, 30);
  EXPECT_EQ(never.stats().waiting + half.stats().waiting, 0U);
}

WEFT_TEST("scope_stop: shielded work ends first") {
  test::gate door;
  bool ended = false;
  auto child = [&]() -> task<> {
    co_await weft::shielded(door.pass());
    ended = true;
    co_await door.pass();  // is open, so it does not wait
    co_await weft::check_stop();
    ADD_FAILURE();
  };
  auto body = [&](scope& s) -> task<> {
    fork<> f = s.fork(child);
    s.request_stop();
    EXPECT_FALSE(f.done());
    door.open();
    co_return;
  };
  co_await with_scope(body);
  EXPECT_TRUE(ended);
}

WEFT_TEST("scope_stop: check_stop ends a task that does not wait, and only then") {
  co_await weft::check_stop();
  int rounds = 0;
  auto child = [&](scope& s) -> task<> {
    for (;;) {
      if (++rounds == 3) s.request_stop();
      co_await weft::check_stop();
    }
  };
  auto body = [&](scope& s) -> task<> {
    s.fork(child, std::ref(s));
    co_return;
  };
  co_await with_scope(body);
  EXPECT_EQ(rounds, 3);
}

WEFT_TEST("scope_stop: why_stopped gives the chain, with where") {
  std::vector<weft::stop_cause> chain;
  const int line = __LINE__;
  auto child = [&]() -> task<> {
    test::gate never;
    struct leaves {
      std::vector<weft::stop_cause>& chain;
      ~leaves() { chain = weft::why_stopped(); }
    } const here{chain};
    co_await never;
  };
  auto inner = [&](scope& s) -> task<> {
    s.fork(child);
    co_return;
  };
  auto body = [&](scope& s) -> task<> {
    EXPECT_TRUE(weft::why_stopped().empty());
    s.fork(with_scope(inner));
    s.request_stop({.reason = "enough"});
    co_return;
  };
  co_await with_scope(body);
  EXPECT_EQ(chain.size(), 2U);
  EXPECT_STREQ(chain.front().reason, "the task that awaits the scope was stopped");
  EXPECT_EQ(chain.front().where.line(), static_cast<unsigned>(line + 15));
  EXPECT_STREQ(chain.back().reason, "enough");
  EXPECT_EQ(chain.back().where.line(), static_cast<unsigned>(line + 16));

  auto alone = [&](scope& s) -> task<> {
    fork<> f = s.fork(child);
    f.request_stop({.reason = "this one"});
    co_return;
  };
  co_await with_scope(alone);
  EXPECT_EQ(chain.size(), 1U);
  EXPECT_STREQ(chain.front().reason, "this one");
}

// ---- threads ------------------------------------------------------------------------------------------------------------------

// Forks on other threads that wait, end, fail; a stop from outside at any time; handles that go at any time.
TEST(scope_stress, forks_stops_and_failures_from_several_threads) {
  weft::new_thread_executor threads;
  for (int round = 0; round != test::rounds(300); ++round) {
    stop_source source;
    test::gate door;
    std::atomic<int> alive{0};
    auto child = [&](test::counted, int n) -> task<int> {
      if (n % 3 == 0) co_await door;
      if (n % 7 == 6 && round % 2 == 0) throw std::runtime_error{"odd"};
      co_return n;
    };
    auto body = [&](scope& s) -> task<int> {
      std::vector<fork<int>> kept;
      std::vector<fork_view<int>> views;
      for (int n = 0; n != 12; ++n) {
        fork<int> f =
            n % 2 == 0 ? s.fork_on(threads, child, test::counted{alive}, n) : s.fork(child, test::counted{alive}, n);
        if (n % 4 == 0) views.push_back(f.view());
        if (n % 3 == 0) kept.push_back(std::move(f));
      }
      for (auto& view : views) s.fork([](fork_view<int> of) -> task<> { co_await of; }, std::move(view));
      for (auto& one : kept) static_cast<void>(co_await as_result(one));
      co_return 1;
    };
    std::jthread other{[&] {
      if (round % 3 == 0) source.request_stop();
      door.open();
    }};
    try {
      sync_wait(with_scope({.stop = source.token()}, body));
    } catch (const std::runtime_error&) {
    } catch (weft::stopped) {  // any of the three is right
    }
    EXPECT_EQ(alive, 0);
  }
}

}  // namespace
