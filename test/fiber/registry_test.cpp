// Running work by number: found, stopped, timed and waited for.
#include <weft/registry.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <weft/clock.hpp>
#include <weft/combine.hpp>
#include <weft/error.hpp>
#include <weft/executor.hpp>
#include <weft/fiber.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/test.hpp>
#include <weft/with.hpp>

#include "support/timed_root.hpp"
#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::await;
using weft::registry;
using weft::scope;
using weft::sync_wait;
using weft::task;
using weft::with_scope;
using weft::work_end;

task<> rest(std::chrono::milliseconds d) { co_await weft::sleep_for(d); }
task<int> nap(std::chrono::milliseconds d, int n) {
  co_await weft::sleep_for(d);
  co_return n;
}

/// Runs a test's body in virtual time.
template <class F>
void in_virtual_time(const F& body) {
  weft::test::run(body);
}

// ---- what is listed -----------------------------------------------------------------------------------------------------

TEST(registry, lists_work_while_it_runs) {
  in_virtual_time([]() -> task<> {
    registry jobs;
    auto body = [&](scope& s) -> task<> {
      auto first = jobs.go({.name = "first"}, s, [] { weft::this_fiber::sleep_for(2ms); });
      auto second = jobs.fork(s, nap(1ms, 5));
      auto third = jobs.fork(s, [](int n) { return nap(3ms, n); }, 6);
      EXPECT_EQ(jobs.size(), 3U);
      const auto all = jobs.all();
      EXPECT_EQ(all.size(), 3U);
      EXPECT_EQ(std::string{all[0].name}, "first");
      EXPECT_EQ(all[0].id, first.id);
      EXPECT_EQ(all[1].id, second.id);
      EXPECT_EQ(all[2].name, nullptr);
      EXPECT_FALSE(all[1].stop_requested);

      EXPECT_EQ(co_await std::move(second.work), 5);
      EXPECT_FALSE(jobs.find(second.id).has_value());
      co_await std::move(first.work);
      EXPECT_EQ(jobs.size(), 1U);
      EXPECT_EQ(jobs.find(third.id)->id, third.id);
      EXPECT_EQ(co_await std::move(third.work), 6);
      EXPECT_EQ(jobs.size(), 0U);

      auto ran_through =
          jobs.go(s, [](std::unique_ptr<int> p) { return ++*p, std::move(p); }, std::make_unique<int>(7));
      EXPECT_GT(ran_through.id, third.id);  // numbers are not given twice
      EXPECT_FALSE(jobs.find(ran_through.id).has_value());
      EXPECT_EQ(*co_await std::move(ran_through.work), 8);
      int here = 1;
      auto refers = jobs.go(s, [&]() -> int& { return here; });
      EXPECT_EQ(&co_await std::move(refers.work), &here);
    };
    co_await with_scope(body);
  });
}

TEST(registry, finds_each_of_many) {
  in_virtual_time([]() -> task<> {
    registry jobs;
    auto body = [&](scope& s) -> task<> {
      std::vector<std::uint64_t> ids;
      for (int i = 0; i != 300; ++i) ids.push_back(jobs.fork(s, rest(std::chrono::milliseconds{1 + i % 3})).id);
      for (const std::uint64_t id : ids) EXPECT_TRUE(jobs.find(id).has_value());
      EXPECT_FALSE(jobs.find(0).has_value());
      EXPECT_FALSE(jobs.find(ids.back() + 1).has_value());
      co_await rest(1ms);
      co_await weft::yield();
      EXPECT_EQ(jobs.size(), 200U);
      for (std::size_t i = 0; i != ids.size(); ++i) EXPECT_EQ(jobs.find(ids[i]).has_value(), i % 3 != 0);
    };
    co_await with_scope(body);
    EXPECT_EQ(jobs.size(), 0U);
  });
}

TEST(registry, work_that_can_not_start_is_not_listed) {
  in_virtual_time([]() -> task<> {
    registry jobs;
    auto body = [&](scope& s) -> task<> {
      auto one = jobs.fork(s, rest(1ms));
      EXPECT_THROW(jobs.fork(s, rest(1ms)), weft::error);
      EXPECT_EQ(jobs.size(), 1U);
      co_await std::move(one.work);
      s.request_stop();
      jobs.fork(s, rest(1ms));
    };
    static_cast<void>(co_await weft::as_result(with_scope({.max_children = 1}, body)));
    EXPECT_EQ(jobs.size(), 0U);
  });
}

// ---- its end ------------------------------------------------------------------------------------------------------------

TEST(registry, tells_how_work_ended) {
  in_virtual_time([]() -> task<> {
    registry jobs;
    auto body = [&](scope& s) -> task<> {
      auto succeeds = jobs.fork(s, nap(1ms, 1));
      auto fails = jobs.go(s, [] {
        weft::this_fiber::sleep_for(2ms);
        throw std::runtime_error{"no"};
      });
      auto leaves = jobs.go(s, [] {
        weft::this_fiber::sleep_for(3ms);
        weft::this_fiber::exit();
      });
      auto is_slow = jobs.fork({.limit = 4ms}, s, rest(10ms));
      EXPECT_EQ(co_await jobs.wait(succeeds.id), work_end::succeeded);
      EXPECT_EQ(co_await jobs.wait(fails.id), work_end::failed);
      EXPECT_EQ(co_await jobs.wait(leaves.id), work_end::stopped);
      EXPECT_EQ(co_await jobs.wait(is_slow.id), work_end::timed_out);
      EXPECT_EQ(weft::test::elapsed(), 4ms);
      EXPECT_EQ(co_await jobs.wait(is_slow.id), std::nullopt);  // nothing runs under this number now
      EXPECT_EQ(co_await jobs.wait(99), std::nullopt);
      EXPECT_EQ(jobs.size(), 0U);
    };
    weft::error_list errors;
    const auto how =
        co_await weft::as_result(with_scope({.on_error = weft::collect_all_errors, .errors = &errors}, body));
    EXPECT_TRUE(how.exception() != nullptr);
  });
}

TEST(registry, is_waited_for_by_many_and_by_fibers) {
  in_virtual_time([]() -> task<> {
    registry jobs;
    int seen = 0;
    auto body = [&](scope& s) -> task<> {
      const std::uint64_t id = jobs.fork(s, rest(2ms)).id;
      for (int i = 0; i != 3; ++i) {
        s.go([&, id] { seen += await(jobs.wait(id)) == work_end::succeeded; });
        s.fork([&](std::uint64_t of) -> task<> { seen += co_await jobs.wait(of) == work_end::succeeded; }, id);
      }
      auto impatient = s.fork(jobs.wait(id));  // stopped while it waits
      co_await rest(1ms);
      impatient.request_stop();
      co_await weft::yield();
      EXPECT_EQ(impatient.status(), weft::fork_status::stopped);
      EXPECT_EQ(seen, 0);
      EXPECT_TRUE(jobs.find(id).has_value());
    };
    co_await with_scope(body);
    EXPECT_EQ(seen, 6);
  });
}

// ---- stops --------------------------------------------------------------------------------------------------------------

TEST(registry, stops_one_by_its_number) {
  in_virtual_time([]() -> task<> {
    registry jobs;
    auto body = [&](scope& s) -> task<> {
      struct asks_why {
        std::string& why;
        ~asks_why() { why = weft::why_stopped().back().reason; }
      };
      std::string why;
      auto one = jobs.go(s, [&] {
        const asks_why at_end{why};
        weft::this_fiber::sleep_for(1h);
      });
      auto other = jobs.fork(s, nap(5ms, 3));
      EXPECT_TRUE(jobs.request_stop(one.id, {.reason = "kicked"}));
      EXPECT_EQ(co_await jobs.wait(one.id), work_end::stopped);
      EXPECT_EQ(why, "kicked");
      EXPECT_FALSE(jobs.request_stop(one.id));  // it has ended
      EXPECT_FALSE(jobs.request_stop(77));
      EXPECT_EQ(co_await std::move(other.work), 3);

      auto ignores = jobs.fork(s, weft::shielded(rest(2ms)));
      EXPECT_TRUE(jobs.request_stop(ignores.id));
      EXPECT_FALSE(jobs.request_stop(ignores.id));  // it was told before
      EXPECT_TRUE(jobs.find(ignores.id)->stop_requested);
      EXPECT_NE(co_await jobs.wait(ignores.id), std::nullopt);

      std::uint64_t own = 0;
      auto stops_itself = jobs.go(s, [&] {
        weft::this_fiber::sleep_for(1ms);
        EXPECT_TRUE(jobs.request_stop(own));
        weft::this_fiber::sleep_for(1h);
      });
      own = stops_itself.id;
      EXPECT_EQ(co_await jobs.wait(own), work_end::stopped);
      EXPECT_LT(weft::test::elapsed(), 1h);
    };
    co_await with_scope(body);
  });
}

// ---- limits -------------------------------------------------------------------------------------------------------------

TEST(registry, a_limit_stops_only_what_is_over_it) {
  in_virtual_time([]() -> task<> {
    registry jobs;
    auto body = [&](scope& s) -> task<> {
      auto in_time = jobs.fork({.limit = 5ms}, s, nap(4ms, 1));
      auto late = jobs.go({.limit = 5ms}, s, [] { weft::this_fiber::sleep_for(1h); });
      auto as_long_as_it_takes = jobs.fork(s, nap(9ms, 2));
      EXPECT_EQ(co_await jobs.wait(late.id), work_end::timed_out);
      EXPECT_EQ(weft::test::elapsed(), 5ms);
      EXPECT_EQ(co_await std::move(in_time.work), 1);
      EXPECT_EQ(co_await std::move(as_long_as_it_takes.work), 2);
    };
    co_await with_scope(body);
  });
}

TEST(registry, a_limit_can_be_changed) {
  in_virtual_time([]() -> task<> {
    registry jobs;
    auto body = [&](scope& s) -> task<> {
      auto sooner = jobs.fork({.limit = 1h}, s, rest(2h));
      auto later = jobs.fork({.limit = 1ms}, s, rest(2h));
      auto never = jobs.fork({.limit = 1ms}, s, nap(50ms, 4));
      auto first_one = jobs.fork(s, rest(2h));
      EXPECT_TRUE(jobs.set_limit(sooner.id, 3ms));
      EXPECT_TRUE(jobs.set_limit(later.id, 20ms));
      EXPECT_TRUE(jobs.set_limit(never.id, weft::clock::duration::max()));
      EXPECT_TRUE(jobs.set_limit(first_one.id, 7ms));
      EXPECT_FALSE(jobs.set_limit(77, 1ms));
      EXPECT_EQ(co_await jobs.wait(sooner.id), work_end::timed_out);
      EXPECT_EQ(weft::test::elapsed(), 3ms);
      EXPECT_FALSE(jobs.set_limit(sooner.id, 1ms));
      EXPECT_EQ(co_await jobs.wait(first_one.id), work_end::timed_out);
      EXPECT_EQ(weft::test::elapsed(), 7ms);
      EXPECT_EQ(co_await jobs.wait(later.id), work_end::timed_out);
      EXPECT_EQ(weft::test::elapsed(), 20ms);
      EXPECT_EQ(co_await std::move(never.work), 4);
    };
    co_await with_scope(body);
  });
}

TEST(registry, leaves_no_timer_behind) {
  test::virtual_clock time;
  registry jobs;
  auto body = [&](scope& s) -> task<> {
    auto one = jobs.fork({.limit = 1h}, s, rest(1ms));
    auto two = jobs.fork({.limit = 1h}, s, rest(1ms));
    jobs.set_limit(two.id, 2h);
    EXPECT_EQ(time.armed(), 4U);
    co_await std::move(one.work);
    co_await std::move(two.work);
    EXPECT_EQ(time.armed(), 0U);
  };
  EXPECT_TRUE(test::run_timed(time, with_scope(body)).has_value());
  EXPECT_EQ(time.elapsed(), 1ms);
}

TEST(registry, goes_by_the_real_clock) {
  registry jobs;
  auto body = [&](scope& s) -> task<> {
    auto late = jobs.go({.limit = 1ms}, s, [] { weft::this_fiber::sleep_for(1h); });
    auto in_time = jobs.fork({.limit = 1h}, s, rest(1ms));
    const auto first = co_await jobs.wait(in_time.id), second = co_await jobs.wait(late.id);  // empty: it has ended
    EXPECT_EQ(first.value_or(work_end::succeeded), work_end::succeeded);
    EXPECT_EQ(second.value_or(work_end::timed_out), work_end::timed_out);
    EXPECT_NE(late.work.status(), weft::fork_status::succeeded);
  };
  sync_wait(with_scope(body));
}

TEST(registry, go_throws_where_there_is_no_stack_and_lists_nothing) {
  weft::stack_pool few{{.max_stacks = 2}};
  in_virtual_time([&]() -> task<> {
    registry jobs;
    auto body = [&](scope& s) -> task<> {
      const auto rests = [] { weft::this_fiber::sleep_for(1ms); };
      for (int i = 0; i != 2; ++i) jobs.go({.stack = {.pool = &few}}, s, rests);
      EXPECT_THROW(jobs.go({.stack = {.pool = &few}}, s, rests), weft::error);
      EXPECT_EQ(jobs.size(), 2U);
      EXPECT_EQ(s.children(), 2U);
      co_return;
    };
    co_await with_scope(body);
    EXPECT_EQ(jobs.size(), 0U);
  });
  EXPECT_EQ(few.stats().in_use, 0U);
}

TEST(registry, can_be_pumped_by_hand) {
  weft::manual_executor loop;
  registry jobs{{.pumped = true}};
  std::vector<int> turns(3);
  std::uint64_t ids[3]{};
  auto body = [&](scope& s) -> task<> {
    const auto turn = [&](int which) {
      for (;; weft::this_fiber::yield()) ++turns[static_cast<std::size_t>(which)];
    };
    ids[0] = jobs.go({.limit = 10s}, s, turn, 0).id;
    ids[1] = jobs.go({.limit = 20s}, s, turn, 1).id;
    ids[2] = jobs.go(s, turn, 2).id;
    EXPECT_EQ(co_await jobs.wait(ids[0]), work_end::timed_out);
    EXPECT_EQ(co_await jobs.wait(ids[1]), work_end::timed_out);
    EXPECT_EQ(co_await jobs.wait(ids[2]), work_end::stopped);
  };
  test::timed_root<void> game{{.executor = &loop}, with_scope(body)};
  game.schedule();
  const auto frame = [&](weft::clock::duration now, std::size_t over) {  // of a game that has its own time
    EXPECT_EQ(jobs.tick(now), over);
    for (int i = 0; i != 20; ++i) loop.run_one();
  };
  frame(0s, 0);
  frame(9s, 0);
  EXPECT_EQ(jobs.size(), 3U);
  frame(10s, 1);
  EXPECT_EQ(jobs.size(), 2U);
  EXPECT_TRUE(jobs.set_limit(ids[1], 50s));
  frame(30s, 0);
  frame(60s, 1);
  EXPECT_EQ(jobs.size(), 1U);
  const int before = turns[2];
  frame(1000s, 0);
  EXPECT_GT(turns[2], before);
  EXPECT_TRUE(jobs.request_stop(ids[2]));
  loop.run_all();
  EXPECT_TRUE(game.over());
  EXPECT_TRUE(game.take().has_value());
}

TEST(registry, goes_by_a_time_that_begins_anywhere) {
  using duration = weft::clock::duration;
  for (const duration begin : {duration::min(), duration{-10s}, duration{1000h}, duration::max() - 5s}) {
    weft::manual_executor loop;
    registry jobs{{.pumped = true}};
    EXPECT_EQ(jobs.tick(begin), 0U);
    auto body = [&](scope& s) -> task<> {
      const auto turns = [] {
        for (;;) weft::this_fiber::yield();
      };
      const auto soon = jobs.go({.limit = 2s}, s, turns).id;
      const auto late = jobs.go({.limit = duration::max()}, s, turns).id;
      jobs.set_limit(late, duration::max() - 1ns);
      const auto at_once = jobs.go(s, turns).id;
      jobs.set_limit(at_once, duration::min());
      EXPECT_EQ(jobs.tick(begin), 1U);
      EXPECT_EQ(co_await jobs.wait(at_once), work_end::timed_out);
      EXPECT_EQ(jobs.tick(begin + 1s), 0U);
      EXPECT_EQ(jobs.tick(begin + 2s), 1U);
      EXPECT_EQ(co_await jobs.wait(soon), work_end::timed_out);
      jobs.request_stop(late);
    };
    test::timed_root<void> game{{.executor = &loop}, with_scope(body)};
    game.schedule();
    loop.run_all();
    EXPECT_TRUE(game.over());
  }
}

// ---- threads ------------------------------------------------------------------------------------------------------------

// Work that ends, is stopped, runs out of time, gets new limits and is waited for, all at once, on all sides.
TEST(registry, is_used_from_everywhere) {
  weft::pool workers{{.threads = 3}};
  registry jobs;
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> newest{0};
  std::atomic<int> stopped{0};
  std::thread from_outside{[&] {
    for (std::uint64_t id = 1; !done.load(); ++id) {
      if (id > newest.load()) id = newest.load() > 40 ? newest.load() - 40 : 1;
      if (id % 3 == 0) stopped += jobs.request_stop(id);
      if (id % 3 == 1) static_cast<void>(jobs.set_limit(id, std::chrono::microseconds{id % 50}));
      static_cast<void>(jobs.find(id));
      std::this_thread::yield();
    }
  }};
  int ended = 0;
  const int rounds = test::rounds(2000);
  auto body = [&](scope& s) -> task<> {
    for (int i = 0; i != rounds; ++i) {
      auto a = jobs.go({.limit = std::chrono::microseconds{i % 100}}, s, [] {
        for (int turn = 0; turn != 5; ++turn) weft::this_fiber::yield();
      });
      auto b = jobs.fork(s, rest(i % 16 == 0 ? 1ms : 0ms));
      newest.store(b.id);
      ended += (co_await jobs.wait(a.id)).has_value();
      ended += (co_await jobs.wait(b.id)).has_value();
    }
  };
  sync_wait(weft::start_on(workers.executor(), with_scope(body)));
  done.store(true);
  from_outside.join();
  EXPECT_LE(ended, 2 * rounds);
  EXPECT_EQ(jobs.size(), 0U);
}

// ---- misuse -------------------------------------------------------------------------------------------------------------

TEST(registry_misuse, is_told) {
  GTEST_FLAG_SET(death_test_style, std::getenv("WEFT_TEST_EMULATED") != nullptr ? "fast" : "threadsafe");
  const auto dies_early = [] {
    auto body = [](scope& s) -> task<> {
      std::optional<registry> jobs{std::in_place};
      jobs->fork(s, rest(1h));
      jobs.reset();
      co_return;
    };
    sync_wait(with_scope(body));
  };
  EXPECT_DEATH(dies_early(), "weft: a registry was destroyed while work ran that is listed in it");
  const auto ticks = [] {
    registry jobs;
    jobs.tick(1s);
  };
  EXPECT_DEATH(ticks(), "weft: tick.. of a registry that goes by a clock");
}

}  // namespace
