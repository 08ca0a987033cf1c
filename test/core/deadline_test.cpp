// Scopes and time: deadlines, and the report of who ignores a stop.
#include <weft/broadcast.hpp>
#include <weft/channel.hpp>
#include <weft/clock.hpp>
#include <weft/combine.hpp>
#include <weft/executor.hpp>
#include <weft/fiber.hpp>
#include <weft/observe.hpp>
#include <weft/scope.hpp>
#include <weft/sync.hpp>
#include <weft/test.hpp>
#include <weft/with.hpp>

#include <atomic>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "support/timed_root.hpp"
#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using test::run_timed;
using test::virtual_clock;
using weft::as_result;
using weft::current_env;
using weft::overdue_scope;
using weft::result;
using weft::scope;
using weft::sleep_for;
using weft::stop_cause;
using weft::stop_source;
using weft::sync_wait;
using weft::task;
using weft::with_deadline;
using weft::with_scope;

constexpr std::string_view reason = "the deadline of the scope has passed";

task<int> nap(weft::clock::duration d, int value) {
  co_await sleep_for(d);
  co_return value;
}

/// Notes why it was stopped, as it goes.
struct asks_why {
  std::vector<stop_cause>& into;
  ~asks_why() { into = weft::why_stopped(); }
};

// ---- with_deadline ----------------------------------------------------------------------------------------------------

TEST(deadline, what_is_in_time_gives_its_value_and_leaves_no_timer) {
  virtual_clock time;
  auto quick = [&]() -> task<> {
    EXPECT_EQ(co_await with_deadline(5ms, nap, 2ms, 7), 7);
    EXPECT_EQ(co_await with_deadline(time.now() + 5ms, nap, 2ms, 8), 8);
    EXPECT_EQ(time.armed(), 0U);
  };
  EXPECT_TRUE(run_timed(time, quick()));
  EXPECT_EQ(time.elapsed(), 4ms);
}

TEST(deadline, what_never_waits_arms_no_timer) {
  virtual_clock time;
  auto ready = [&]() -> task<> {
    auto give = [](int n) -> task<int> { co_return n; };
    EXPECT_EQ(co_await with_deadline(5ms, give, 1), 1);
    EXPECT_EQ(co_await with_deadline(-5ms, give, 2), 2);  // nothing in it could be stopped
  };
  EXPECT_TRUE(run_timed(time, ready()));
  EXPECT_EQ(time.armed_so_far(), 0U);
}

TEST(deadline, what_is_late_is_stopped_and_the_cause_has_the_line) {
  virtual_clock time;
  std::vector<stop_cause> why;
  unsigned line = 0;
  auto late = [&]() -> task<> {
    auto work = [&]() -> task<int> {
      const asks_why here{why};
      co_return co_await nap(1h, 1);
    };
    line = __LINE__ + 1;
    const auto how = co_await as_result(with_deadline(5ms, work));
    EXPECT_TRUE(how.is_stopped());
    EXPECT_EQ(time.elapsed(), 5ms);
    EXPECT_EQ(time.armed(), 0U);
  };
  EXPECT_TRUE(run_timed(time, late()));
  ASSERT_EQ(why.size(), 1U);
  EXPECT_EQ(why[0].reason, reason);
  EXPECT_EQ(why[0].where.line(), line);
  EXPECT_TRUE(std::string_view{why[0].where.file_name()}.ends_with("deadline_test.cpp"));
}

TEST(deadline, of_several_the_nearest_holds_and_only_it_has_a_timer) {
  virtual_clock time;
  auto nested = [&]() -> task<> {
    auto inner = [&]() -> task<int> { co_return co_await with_deadline(1h, nap, 2h, 1); };
    EXPECT_TRUE((co_await as_result(with_deadline(5ms, inner))).is_stopped());
    EXPECT_EQ(time.elapsed(), 5ms);
    EXPECT_EQ(time.armed_so_far(), 2U);  // the deadline, the nap

    auto sooner = [&]() -> task<int> {
      EXPECT_TRUE((co_await as_result(with_deadline(5ms, nap, 2h, 1))).is_stopped());
      EXPECT_EQ(time.elapsed(), 10ms);
      co_return co_await nap(1ms, 3);
    };
    EXPECT_EQ(co_await with_deadline(1h, sooner), 3);
    EXPECT_EQ(time.armed(), 0U);
  };
  EXPECT_TRUE(run_timed(time, nested()));
}

TEST(deadline, one_timer_serves_all_that_waits_below) {
  virtual_clock time;
  test::gate closed;
  int unwound = 0;
  auto wait = [&]() -> task<> {
    struct leaves {
      int& count;
      ~leaves() { ++count; }
    } const here{unwound};
    co_await closed;
  };
  auto all = [&]() -> task<> {
    auto body = [&](scope& s) -> task<> {
      for (int i = 0; i != 100; ++i) s.fork(wait());
      co_await wait();
    };
    const auto how = co_await as_result(with_scope({.deadline = time.now() + 5ms}, body));
    EXPECT_TRUE(how.is_stopped());
  };
  EXPECT_TRUE(run_timed(time, all()));
  EXPECT_EQ(unwound, 101);
  EXPECT_EQ(time.armed_so_far(), 1U);
  EXPECT_EQ(time.elapsed(), 5ms);
}

TEST(deadline, forks_that_outlive_the_body_are_stopped_and_so_is_the_scope) {
  virtual_clock time;
  auto all = [&]() -> task<> {
    auto body = [&](scope& s) -> task<int> {
      s.fork(nap, 1h, 1);
      co_return 3;
    };
    EXPECT_TRUE((co_await as_result(with_scope({.deadline = time.now() + 5ms}, body))).is_stopped());
    EXPECT_EQ(time.elapsed(), 5ms);
    auto elsewhere = [&](scope& s) -> task<int> {
      s.fork(nap, 1h, 1);
      co_return co_await nap(1h, 2);
    };
    weft::inline_executor another;
    EXPECT_TRUE(
        (co_await as_result(with_scope({.executor = &another, .deadline = time.now() + 5ms}, elsewhere))).is_stopped());
    EXPECT_EQ(time.elapsed(), 10ms);
    EXPECT_EQ(time.armed(), 0U);
  };
  EXPECT_TRUE(run_timed(time, all()));
}

TEST(deadline, that_has_passed_stops_at_the_first_wait) {
  virtual_clock time;
  auto past = [&]() -> task<> {
    bool began = false;
    auto work = [&]() -> task<int> {
      began = true;
      co_return co_await nap(1ms, 1);
    };
    EXPECT_TRUE((co_await as_result(with_deadline(0ms, work))).is_stopped());
    EXPECT_TRUE(began);
    EXPECT_TRUE((co_await as_result(with_deadline(time.now() - 1ms, work))).is_stopped());
    EXPECT_EQ(time.armed_so_far(), 2U);  // the naps: each was armed before the scope looked
    EXPECT_EQ(time.elapsed(), 0ms);
  };
  EXPECT_TRUE(run_timed(time, past()));
}

TEST(deadline, what_computes_sees_it_in_check_stop) {
  virtual_clock time;
  std::vector<stop_cause> why;
  int steps = 0;
  auto computes = [&]() -> task<int> {
    const asks_why here{why};
    for (;; ++steps) {
      time.advance(1ms);
      co_await weft::check_stop();
    }
  };
  auto sub = [&]() -> task<int> { co_return co_await with_deadline(1h, computes); };  // which has no timer of its own
  auto outer = [&]() -> task<> {
    EXPECT_TRUE((co_await as_result(with_deadline(5ms, sub))).is_stopped());
    auto forks = [&](scope& s) -> task<> {
      s.fork(computes);
      co_return;
    };
    EXPECT_TRUE((co_await as_result(with_scope({.deadline = time.now() + 3ms}, forks))).is_stopped());
  };
  EXPECT_TRUE(run_timed(time, outer()));
  EXPECT_EQ(steps, 4 + 2);
  EXPECT_EQ(time.armed_so_far(), 0U);
  ASSERT_FALSE(why.empty());
  EXPECT_EQ(why[0].reason, reason);
}

TEST(deadline, a_shield_puts_it_off_like_any_stop) {
  virtual_clock time;
  auto all = [&]() -> task<> {
    bool stored = false;
    auto store = [&]() -> task<> {
      co_await weft::shielded(sleep_for(20ms));
      stored = true;
      co_await sleep_for(1h);
    };
    EXPECT_TRUE((co_await as_result(with_deadline(5ms, store))).is_stopped());
    EXPECT_TRUE(stored);
    EXPECT_EQ(time.elapsed(), 20ms);
  };
  EXPECT_TRUE(run_timed(time, all()));
}

TEST(deadline, with_env_brings_one_and_cannot_lift_one) {
  virtual_clock time;
  auto all = [&]() -> task<> {
    weft::env nearer = current_env();
    nearer.deadline = time.now() + 5ms;
    EXPECT_TRUE((co_await as_result(weft::with_env(nearer, nap, 1h, 1))).is_stopped());
    EXPECT_EQ(time.elapsed(), 5ms);
    auto inner = [&]() -> task<int> {
      weft::env later = current_env();
      later.deadline = weft::clock::time_point::max();
      auto look = [&]() -> task<int> {
        EXPECT_EQ(current_env().deadline, time.now() + 5ms);
        co_return co_await nap(1h, 1);
      };
      co_return co_await weft::with_env(later, look);
    };
    EXPECT_TRUE((co_await as_result(with_deadline(5ms, inner))).is_stopped());
    EXPECT_EQ(time.elapsed(), 10ms);
  };
  EXPECT_TRUE(run_timed(time, all()));
}

TEST(deadline, a_stop_before_it_disarms_it) {
  virtual_clock time;
  auto all = [&]() -> task<> {
    const auto how = co_await as_result(weft::timeout(2ms, with_deadline(5ms, nap, 1h, 1)));
    EXPECT_EQ(how.error(), weft::errc::timed_out);
    EXPECT_EQ(time.armed(), 0U);
    auto fails = []() -> task<int> {
      co_await sleep_for(1ms);
      throw std::runtime_error{"failed"};
    };
    EXPECT_TRUE((co_await as_result(with_deadline(5ms, fails))).exception() != nullptr);
    EXPECT_EQ(time.armed(), 0U);
  };
  EXPECT_TRUE(run_timed(time, all()));
  EXPECT_EQ(time.elapsed(), 3ms);
}

TEST(deadline, the_timer_the_work_and_a_stop_race) {
  weft::new_thread_executor threads;
  int in_time = 0, late = 0;
  for (int round = 0; round != test::rounds(300); ++round) {
    stop_source source;
    std::atomic<int> alive{0};
    auto child = [&](test::counted, int n) -> task<int> { co_return co_await nap(n * 10us, n); };
    auto body = [&](scope& s) -> task<int> {
      for (int n = 0; n != 4; ++n)
        n % 2 == 0 ? s.fork_on(threads, child, test::counted{alive}, n) : s.fork(child, test::counted{alive}, n);
      co_return co_await child(test::counted{alive}, round % 4);
    };
    std::jthread other;
    if (round % 5 == 0) other = std::jthread{[&] { source.request_stop(); }};
    const auto soon = weft::clock::time_point{std::chrono::steady_clock::now() + (round % 20) * 5us};
    const auto how = sync_wait(as_result(with_scope({.stop = source.token(), .deadline = soon}, body)));
    ++(how.is_stopped() ? late : in_time);
    EXPECT_EQ(alive, 0);
  }
  EXPECT_EQ(in_time + late, test::rounds(300));
}

// ---- of what waits --------------------------------------------------------------------------------------------------------

/// What `make` gives waits for ever: it ends at the deadline of its scope, in a task and in a fiber, and at a timeout.
template <class Make>
task<> ends_at_each_deadline(Make make) {
  const auto begin = weft::test::elapsed();
  auto waits = [&]() -> task<> { static_cast<void>(co_await make()); };
  const auto in_task = co_await as_result(with_deadline(5ms, waits));
  EXPECT_TRUE(in_task.is_stopped());
  EXPECT_EQ(weft::test::elapsed(), begin + 5ms);
  auto body = [&](scope& s) -> task<> { co_await s.go([&] { static_cast<void>(weft::await(make())); }); };
  const auto in_fiber = co_await as_result(with_scope({.deadline = weft::current_clock().now() + 5ms}, body));
  EXPECT_TRUE(in_fiber.is_stopped());
  EXPECT_EQ(weft::test::elapsed(), begin + 10ms);
  const auto timed = co_await as_result(weft::timeout(5ms, make()));
  EXPECT_EQ(timed.error(), weft::errc::timed_out);
  EXPECT_EQ(weft::test::elapsed(), begin + 15ms);
  auto fiber_timed = [&](scope& s) -> task<> {
    co_await s.go(
        [&] { EXPECT_EQ(weft::await(as_result(weft::timeout(5ms, make()))).error(), weft::errc::timed_out); });
  };
  co_await with_scope(fiber_timed);
  EXPECT_EQ(weft::test::elapsed(), begin + 20ms);
}

TEST(deadline, ends_the_wait_for_an_event) {
  weft::test::run([]() -> task<> {
    weft::event e;
    co_await ends_at_each_deadline([&] { return e.wait(); });
    EXPECT_EQ(e.stats().waiting, 0u);
    e.set();
    co_await e.wait();
  });
}

TEST(deadline, ends_the_wait_at_a_latch_and_who_has_arrived_stays_so) {
  weft::test::run([]() -> task<> {
    weft::latch l{2};
    co_await ends_at_each_deadline([&] { return l.wait(); });
    EXPECT_EQ(l.stats().waiting, 0u);
    l.count_down();
    const auto late = co_await as_result(weft::timeout(5ms, l.wait()));
    EXPECT_EQ(late.error(), weft::errc::timed_out);
    l.count_down();
    co_await l.wait();
  });
}

TEST(deadline, ends_the_wait_for_what_another_one_does_once) {
  weft::test::run([]() -> task<> {
    weft::once o;
    weft::event goes_on;
    int done = 0;
    auto does = [&]() -> task<> {
      co_await goes_on.wait();
      ++done;
    };
    auto nothing = [] {};
    auto body = [&](scope& s) -> task<> {
      auto first = [&]() -> task<> { co_await o.call(does); };
      s.fork(first);
      co_await weft::yield();
      co_await ends_at_each_deadline([&] { return o.call(nothing); });
      EXPECT_EQ(o.stats().waiting, 0u);
      goes_on.set();
      co_await o.call(nothing);
      EXPECT_EQ(done, 1);
    };
    co_await with_scope(body);
  });
}

TEST(deadline, ends_what_is_done_once_which_another_one_does_then) {
  weft::test::run([]() -> task<> {
    weft::once o;
    int begun = 0;
    auto for_ever = [&]() -> task<> {
      ++begun;
      co_await sleep_for(24h);
    };
    co_await ends_at_each_deadline([&] { return o.call(for_ever); });
    EXPECT_EQ(begun, 4);
    auto at_once = [&] { begun = 0; };
    co_await o.call(at_once);
    EXPECT_EQ(begun, 0);
  });
}

TEST(deadline, ends_the_wait_for_a_guarded_value) {
  weft::test::run([]() -> task<> {
    weft::guarded<int> value{1};
    {
      const auto held = co_await value.lock();
      co_await ends_at_each_deadline([&] { return value.lock(); });
    }
    EXPECT_EQ(*co_await value.lock(), 1);
  });
}

TEST(deadline, ends_the_wait_for_an_upgrade_and_what_was_upgradable_is_given_back) {
  weft::test::run([]() -> task<> {
    weft::shared_mutex m;
    {
      const auto reads = co_await m.lock_shared();
      co_await ends_at_each_deadline([&]() -> task<> {
        auto upgradable = co_await m.lock_upgradable();
        const auto alone = co_await std::move(upgradable).upgrade();
      });
      EXPECT_TRUE(static_cast<bool>(m.try_lock_shared())) << "nobody waits to write";
      EXPECT_TRUE(static_cast<bool>(m.try_lock_upgradable()));
    }
    EXPECT_TRUE(static_cast<bool>(m.try_lock()));
  });
}

TEST(deadline, ends_a_send_and_nothing_was_sent) {
  weft::test::run([]() -> task<> {
    weft::channel<int> none{0}, full{1};
    co_await full.send(1);
    co_await ends_at_each_deadline([&] { return none.send(2); });
    co_await ends_at_each_deadline([&] { return full.send(2); });
    EXPECT_EQ(none.stats().waiting + full.stats().waiting, 0u);
    EXPECT_EQ(none.try_receive(), std::nullopt);
    EXPECT_EQ(full.try_receive(), 1);
    EXPECT_EQ(full.try_receive(), std::nullopt);
  });
}

TEST(deadline, ends_a_send_to_all_and_nobody_gets_it) {
  weft::test::run([]() -> task<> {
    weft::broadcast<int> b{{.capacity = 1}};
    auto mine = b.subscribe();
    co_await b.send(1);
    co_await ends_at_each_deadline([&] { return b.send(2); });
    EXPECT_EQ(b.stats().waiting, 0u);
    EXPECT_EQ(mine.try_receive(), 1);
    EXPECT_EQ(mine.try_receive(), std::nullopt);
  });
}

TEST(deadline, ends_the_wait_for_a_watched_value_which_is_not_missed) {
  weft::test::run([]() -> task<> {
    weft::watch<int> w{1};
    auto mine = w.subscribe();
    EXPECT_EQ(co_await mine.receive(), 1);
    co_await ends_at_each_deadline([&] { return mine.receive(); });
    EXPECT_EQ(w.stats().waiting, 0u);
    w.set(2);
    EXPECT_EQ(co_await mine.receive(), 2);
    EXPECT_EQ(mine.missed(), 0u);
  });
}

// ---- who ignores a stop ---------------------------------------------------------------------------------------------------

std::vector<overdue_scope> reported;
void note(const overdue_scope& what) { reported.push_back(what); }

task<> stubborn(test::gate& door) { co_await weft::shielded(door.pass()); }
task<> obedient(test::gate& door) { co_await door; }
task<> stays(scope&, test::gate& door) { co_await weft::shielded(door.pass()); }

/// Opens when the clock comes there.
task<> opens(test::gate& door, weft::clock::duration after) {
  co_await sleep_for(after);
  door.open();
}

class overdue : public testing::Test {
 protected:
  overdue() { reported.clear(); }
};

TEST_F(overdue, children_that_ignore_a_stop_are_reported_with_their_stacks) {
  virtual_clock time;
  test::gate door;
  unsigned line = 0;
  auto all = [&]() -> task<> {
    auto body = [&](scope& s) -> task<> {
      s.fork(stubborn(door));
      s.fork(obedient(door));
      co_await sleep_for(1h);
    };
    auto told = [&](scope& s) -> task<> {
      s.fork(opens(door, 1min));
      line = __LINE__ + 1;
      auto inner = with_scope({.deadline = time.now() + 5ms, .stop_within = 2s, .on_overdue = note}, body);
      EXPECT_TRUE((co_await as_result(std::move(inner))).is_stopped());
    };
    co_await with_scope(told);
  };
  EXPECT_TRUE(run_timed(time, all()));
  EXPECT_EQ(time.armed(), 0U);
  ASSERT_EQ(reported.size(), 1U);
  const overdue_scope& one = reported[0];
  EXPECT_EQ(one.where.line(), line);
  EXPECT_EQ(one.cause.reason, reason);
  EXPECT_EQ(one.waited, 2s);
  EXPECT_EQ(one.ignoring, 1U);
  ASSERT_EQ(one.children.size(), 1U);
  EXPECT_FALSE(one.children[0].is_body);
  EXPECT_TRUE(one.children[0].is_shielded);
  const std::string text = to_string(one);
  EXPECT_NE(text.find("has not ended 2000 ms after it was told to stop: the deadline"), std::string::npos) << text;
  EXPECT_NE(text.find("a fork, (anonymous namespace)::stubborn(test::gate&), shielded, which waits here"),
            std::string::npos)
      << text;
  ASSERT_FALSE(one.children[0].stack.empty());
  EXPECT_EQ(one.children[0].stack.back().function(), "(anonymous namespace)::stubborn(test::gate&)");
  EXPECT_EQ(text.find("obedient"), std::string::npos) << text;
  EXPECT_NE(text.find("  waits on gate of a test\n"), std::string::npos) << text;
}

task<> keeps(weft::mutex& m, test::gate& door) {
  const auto held = co_await m.lock();
  co_await weft::shielded(door.pass());
}
task<> wants(weft::mutex& m) { const auto held = co_await weft::shielded(m.lock()); }

TEST_F(overdue, says_who_holds_what_another_one_waits_for) {
  virtual_clock time;
  test::gate door;
  weft::mutex m;
  auto all = [&]() -> task<> {
    auto body = [&](scope& s) -> task<> {
      s.fork(keeps(m, door));
      s.fork(wants(m));
      co_await sleep_for(1h);
    };
    auto told = [&](scope& s) -> task<> {
      s.fork(opens(door, 1min));
      auto inner = with_scope({.deadline = time.now() + 5ms, .stop_within = 2s, .on_overdue = note}, body);
      EXPECT_TRUE((co_await as_result(std::move(inner))).is_stopped());
    };
    co_await with_scope(told);
  };
  EXPECT_TRUE(run_timed(time, all()));
  ASSERT_EQ(reported.size(), 1U);
  ASSERT_EQ(reported[0].children.size(), 2U);
  for (const weft::overdue_child& one : reported[0].children) {
    ASSERT_EQ(one.waits_on.size(), 1U);
    if (one.waits_on[0].what != std::string_view{"mutex"}) continue;
    EXPECT_EQ(one.waits_on[0].at, &m);
    const weft::overdue_child& other = reported[0].children[&one == &reported[0].children[0] ? 1 : 0];
    EXPECT_EQ(one.waits_on[0].held_by, other.root);
  }
  const std::string text = to_string(reported[0]);
  EXPECT_NE(text.find("waits on mutex 0x"), std::string::npos) << text;
  EXPECT_NE(text.find(", which is a fork, (anonymous namespace)::keeps(weft::mutex&, test::gate&)\n"),
            std::string::npos)
      << text;
}

TEST_F(overdue, the_body_and_more_forks_than_are_named) {
  virtual_clock time;
  test::gate door;
  auto all = [&]() -> task<> {
    auto body = [&](scope& s) -> task<> {
      for (int i = 0; i != 100; ++i) s.fork(stubborn(door));
      s.request_stop({.reason = "the body says so"});
      co_await stays(s, door);
    };
    auto told = [&](scope& s) -> task<> {
      s.fork(opens(door, 1min));
      co_await with_scope({.stop_within = 2s, .on_overdue = note}, body);
    };
    co_await with_scope(told);
  };
  EXPECT_TRUE(run_timed(time, all()));
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_EQ(reported[0].ignoring, 101U);
  ASSERT_EQ(reported[0].children.size(), 32U);
  EXPECT_TRUE(reported[0].children[0].is_body);
  const std::string text = to_string(reported[0]);
  EXPECT_NE(text.find("the body, "), std::string::npos) << text;
  EXPECT_NE(text.find("stays"), std::string::npos) << text;
  EXPECT_NE(text.find("the body says so"), std::string::npos) << text;
  EXPECT_NE(text.find("and 69 more forks\n"), std::string::npos) << text;
}

TEST_F(overdue, a_scope_that_ends_soon_enough_is_not) {
  virtual_clock time;
  test::gate door;
  auto all = [&]() -> task<> {
    auto body = [&](scope& s) -> task<> {
      s.fork(stubborn(door));
      s.fork(opens(door, 1s));  // that one is told, too, and leaves
      co_await sleep_for(1h);
    };
    auto told = [&](scope& s) -> task<> {
      s.fork(opens(door, 1s));
      auto inner = with_scope({.deadline = time.now() + 5ms, .stop_within = 2s, .on_overdue = note}, body);
      EXPECT_TRUE((co_await as_result(std::move(inner))).is_stopped());
    };
    co_await with_scope(told);
    auto nobody = [](scope& s) -> task<> {
      s.request_stop();
      co_return;
    };
    co_await with_scope({.stop_within = 2s, .on_overdue = note}, nobody);
  };
  EXPECT_TRUE(run_timed(time, all()));
  EXPECT_TRUE(reported.empty());
  EXPECT_EQ(time.armed(), 0U);
}

task<> spin(std::atomic<bool>& told, std::atomic<bool>& enough) {
  told = true;
  while (!enough) std::this_thread::yield();
  co_return;
}

TEST_F(overdue, what_runs_has_no_stack_and_is_named) {
  weft::new_thread_executor threads;
  std::atomic<bool> runs{false}, enough{false};
  auto handler = [&](const overdue_scope& what) {
    note(what);
    enough = true;
  };
  auto body = [&](scope& s) -> task<> {
    s.fork_on(threads, spin(runs, enough));
    test::until([&] { return runs.load(); });
    s.request_stop({.reason = "enough of it"});
    co_return;
  };
  sync_wait(with_scope({.stop_within = 1ms, .on_overdue = handler}, body));
  ASSERT_EQ(reported.size(), 1U);
  ASSERT_FALSE(reported[0].children.empty());
  const weft::overdue_child& one = reported[0].children.back();  // the body, the first, may not have ended either
  EXPECT_FALSE(one.is_body);
  EXPECT_TRUE(one.stack.empty());
  EXPECT_FALSE(one.is_shielded);
  const std::string text = to_string(reported[0]);
  EXPECT_NE(text.find("::spin(std::atomic<bool>&, std::atomic<bool>&), which does not wait in weft"), std::string::npos)
      << text;
}

TEST_F(overdue, is_printed_where_no_handler_is_given) {
  virtual_clock time;
  test::gate door;
  auto all = [&]() -> task<> {
    auto body = [&](scope& s) -> task<> {
      s.fork(stubborn(door));
      s.request_stop({.reason = "closing time"});
      co_return;
    };
    auto told = [&](scope& s) -> task<> {
      s.fork(opens(door, 1min));
      co_await with_scope({.stop_within = 2s}, body);
      co_await with_scope({.stop_within = 2s, .on_overdue = [](const overdue_scope&) { ADD_FAILURE(); }}, body);
    };
    co_await with_scope(told);
  };
  testing::internal::CaptureStderr();
  EXPECT_TRUE(run_timed(time, all()));
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("after it was told to stop: closing time"), std::string::npos) << text;
  EXPECT_NE(text.find("stubborn"), std::string::npos) << text;
}

// The report looks at children that wait, run, end and go meanwhile.
TEST_F(overdue, the_report_and_the_end_race) {
  weft::new_thread_executor threads;
  std::atomic<int> reports{0};
  auto count = [&](const overdue_scope& what) {
    EXPECT_GE(what.ignoring, 1U);
    ++reports;
  };
  for (int round = 0; round != test::rounds(200); ++round) {
    test::gate door;
    auto child = [&](int n) -> task<> {
      if (n % 2 == 0) co_await weft::shielded(door.pass());
      for (int i = 0; i != n; ++i) std::this_thread::yield();
      co_await weft::shielded(sleep_for(n * 10us));
    };
    auto body = [&](scope& s) -> task<> {
      for (int n = 0; n != 6; ++n) n % 3 == 0 ? s.fork_on(threads, child, n) : s.fork(child, n);
      s.request_stop();
      co_await child(round % 4);
    };
    std::jthread other{[&] { door.open(); }};
    static_cast<void>(
        sync_wait(as_result(with_scope({.stop_within = (round % 10) * 10us, .on_overdue = count}, body))));
  }
  RecordProperty("reports", reports);
}

// ---- which failure ----------------------------------------------------------------------------------------------------------

task<> throws() {
  throw std::runtime_error{"failed"};
  co_return;
}

WEFT_TEST("why_stopped: a failure says which coroutine threw") {
  std::vector<stop_cause> why;
  test::gate never;
  auto sibling = [&]() -> task<> {
    const asks_why here{why};
    co_await never;
  };
  auto relays = []() -> task<> { co_await throws(); };
  auto body = [&](scope& s) -> task<> {
    s.fork(sibling);
    s.fork(relays);
    co_await never;
  };
  EXPECT_FALSE(co_await as_result(with_scope(body)));
  EXPECT_EQ(why.size(), 1U);
  if (why.empty()) co_return;
  EXPECT_STREQ(why[0].reason, "a fork of the scope, or its body, failed");
  EXPECT_EQ(weft::async_frame{why[0].thrown_in}.function(), "(anonymous namespace)::throws()");
}

}  // namespace
