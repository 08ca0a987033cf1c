// The primitives by what they do: order, hand-over, what is given back, tasks and threads on one of each. sweep_sync_test
// stops them everywhere.
#include <weft/sync.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <optional>
#include <thread>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/executor.hpp>
#include <weft/fiber.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/test.hpp>

#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::as_result;
using weft::errc;
using weft::scope;
using weft::sleep_for;
using weft::sync_wait;
using weft::task;
using weft::timeout;
using weft::when_all;
using weft::with_scope;

// ---- sizes ----------------------------------------------------------------------------------------------------------------

// The book says them; none grows with those that wait.
static_assert(sizeof(weft::mutex) <= 40);
static_assert(sizeof(weft::shared_mutex) <= 88);
static_assert(sizeof(weft::semaphore) <= 40);
static_assert(sizeof(weft::event) <= 40);
static_assert(sizeof(weft::auto_event) <= 40);
static_assert(sizeof(weft::latch) <= 40);
static_assert(sizeof(weft::barrier) <= 48);
static_assert(sizeof(weft::condition_variable) <= 32);
static_assert(sizeof(weft::once) <= 48);
static_assert(sizeof(weft::guarded<long>) <= sizeof(weft::mutex) + sizeof(long));

// ---- mutex ----------------------------------------------------------------------------------------------------------------

WEFT_TEST("mutex: is given back at the end of the block") {
  weft::mutex m;
  {
    auto held = co_await m.lock();
    EXPECT_TRUE(m.is_locked());
    EXPECT_FALSE(m.try_lock());
  }
  EXPECT_FALSE(m.is_locked());
  auto held = m.try_lock();
  EXPECT_TRUE(held);
  held.unlock();
  EXPECT_FALSE(m.is_locked());
  EXPECT_FALSE(held);
}

WEFT_TEST("mutex: a guard moves with what it owns") {
  weft::mutex a, b;
  auto first = co_await a.lock();
  auto second = co_await b.lock();
  first = std::move(second);  // a is free
  EXPECT_FALSE(a.is_locked());
  EXPECT_TRUE(b.is_locked());
  const auto third = std::move(first);
  EXPECT_TRUE(b.is_locked());
}

TEST(mutex, serves_in_the_order_of_arrival_and_counts_who_waited) {
  weft::test::run([]() -> task<> {
    weft::mutex m;
    std::vector<int> order;
    auto one = [&](int which) -> task<> {
      const auto held = co_await m.lock();
      order.push_back(which);
      co_await sleep_for(1ms);
    };
    auto held = co_await m.lock();
    auto body = [&](scope& s) -> task<> {
      for (int i = 0; i != 4; ++i) s.fork(one, i);
      co_await sleep_for(1ms);
      EXPECT_EQ(m.stats().waiting, 4u);
      held.unlock();
    };
    co_await with_scope(body);
    EXPECT_EQ(order, (std::vector{0, 1, 2, 3}));
    EXPECT_EQ(m.stats().waits, 4u);
    EXPECT_EQ(m.stats().waiting, 0u);
  });
}

// One that was called runs behind what its executor has to run already, and who runs meanwhile overtakes it; but once.
TEST(mutex, who_runs_overtakes_who_was_called_but_once) {
  weft::manual_executor pump;
  weft::mutex m;
  std::vector<int> order;
  auto held = m.try_lock();
  auto waits = [&](int which) -> task<> {
    const auto mine = co_await m.lock();
    order.push_back(which);
  };
  auto all = [&]() -> task<> { co_await when_all(waits(1), waits(2)); };
  bool ended = false;
  weft::start(pump, all(), [&](const weft::result<void>& how) { ended = how.has_value(); });
  pump.run_all();
  EXPECT_EQ(m.stats().waiting, 2u);

  held.unlock();  // 1 is called
  EXPECT_FALSE(m.is_locked());
  for (int i = 0; i != 3; ++i) {
    held = m.try_lock();
    EXPECT_TRUE(held);
    held.unlock();  // calls nobody else
    EXPECT_EQ(m.stats().waiting, 1u);
  }
  held = m.try_lock();
  pump.run_all();  // 1 comes too late, and is the first in line
  EXPECT_EQ(m.stats().waiting, 2u);
  EXPECT_EQ(m.stats().waits, 2u);
  EXPECT_TRUE(order.empty());

  held.unlock();  // to 1
  EXPECT_TRUE(m.is_locked());
  EXPECT_FALSE(m.try_lock());
  pump.run_all();
  EXPECT_TRUE(ended);
  EXPECT_EQ(order, (std::vector{1, 2}));
  EXPECT_FALSE(m.is_locked());
}

// One that was called, finds the mutex taken and was told to stop meanwhile, leaves; those behind it are served.
TEST(mutex, one_that_was_called_and_stopped_leaves_it_to_the_next) {
  for (const bool taken : {false, true}) {
    weft::manual_executor pump;
    weft::mutex m;
    std::vector<int> order;
    auto held = m.try_lock();
    auto waits = [&](int which) -> task<> {
      const auto mine = co_await m.lock();
      order.push_back(which);
    };
    auto body = [&](scope& s) -> task<> {
      auto first = s.fork(waits(1));
      s.fork(waits(2));
      co_await weft::yield();  // both are in line, and the test goes on
      first.request_stop();    // it was called
      co_return;
    };
    bool ended = false;
    weft::start(pump, with_scope(body), [&](const weft::result<void>& how) { ended = how.has_value(); });
    EXPECT_TRUE(pump.run_one());
    EXPECT_EQ(m.stats().waiting, 2u);
    weft::mutex::guard again;
    held.unlock();
    if (taken) again = m.try_lock();
    pump.run_all();
    EXPECT_EQ(ended, !taken);
    again.unlock();
    pump.run_all();
    EXPECT_TRUE(ended);
    EXPECT_EQ(order, taken ? (std::vector{2}) : (std::vector{1, 2}));  // what was given already wins
    EXPECT_FALSE(m.is_locked());
  }
}

TEST(mutex, a_wait_that_timed_out_holds_nothing) {
  weft::test::run([]() -> task<> {
    weft::mutex m;
    auto held = co_await m.lock();
    const auto late = co_await as_result(timeout(5ms, m.lock()));
    EXPECT_EQ(late.error(), errc::timed_out);
    EXPECT_EQ(weft::test::elapsed(), 5ms);
    held.unlock();
    EXPECT_FALSE(m.is_locked());
    const auto soon = co_await timeout(5ms, m.lock());
    EXPECT_TRUE(soon);
  });
}

TEST(mutex, keeps_tasks_on_a_pool_and_plain_threads_apart) {
  weft::mutex m;
  long count = 0;  // under m
  weft::pool p{{.threads = 3}};
  const int each = test::rounds(3000);
  auto adds = [&]() -> task<> {
    for (int i = 0; i != each; ++i) {
      const auto held = co_await m.lock();
      ++count;
      if (i % 64 == 0) co_await weft::yield();
    }
  };
  auto body = [&](scope& s) -> task<> {
    for (int i = 0; i != 4; ++i) s.fork_on(p.executor(), adds);
    co_return;
  };
  std::jthread thread{[&] {
    for (int i = 0; i != each; ++i) {
      const auto held = sync_wait(m.lock());
      ++count;
    }
  }};
  sync_wait(with_scope(body));
  thread.join();
  EXPECT_EQ(count, 5L * each);
}

TEST(mutex_death, is_not_destroyed_under_a_waiter) {
  EXPECT_DEATH(
      {
        auto m = std::make_unique<weft::mutex>();
        auto held = m->try_lock();
        weft::start(weft::detail::as_task(m->lock()), [](auto) {});
        m.reset();
      },
      "destroyed while somebody waits in it");
}

TEST(mutex_death, is_not_destroyed_before_who_was_called_has_run) {
  EXPECT_DEATH(
      {
        weft::manual_executor pump;
        auto m = std::make_unique<weft::mutex>();
        auto held = m->try_lock();
        weft::start(pump, weft::detail::as_task(m->lock()), [](auto) {});
        pump.run_all();
        held.unlock();  // nobody is in line, and nobody holds it
        m.reset();
        std::_Exit(0);
      },
      "destroyed while somebody waits in it");
}

TEST(mutex_death, is_not_destroyed_while_it_is_held) {
  EXPECT_DEATH(
      {
        weft::mutex::guard held;
        weft::mutex m;  // goes first
        held = m.try_lock();
      },
      "a mutex was destroyed while somebody holds it");
}

// ---- shared_mutex -----------------------------------------------------------------------------------------------------------

WEFT_TEST("shared_mutex: many share it or one has it alone") {
  weft::shared_mutex m;
  {
    const auto a = co_await m.lock_shared(), b = co_await m.lock_shared();
    EXPECT_FALSE(m.try_lock());
    EXPECT_TRUE(m.try_lock_upgradable());
  }
  const auto alone = co_await m.lock();
  EXPECT_FALSE(m.try_lock_shared());
  EXPECT_FALSE(m.try_lock_upgradable());
}

// Who comes to a shared_mutex when, and in which order they get it; each has it for 10 ms.
struct comers {
  weft::shared_mutex m;
  std::vector<char> order;

  task<> shares(char name, std::chrono::milliseconds when) {
    co_await sleep_for(when);
    const auto held = co_await m.lock_shared();
    order.push_back(name);
    co_await sleep_for(10ms);
  }
  task<> writes(char name, std::chrono::milliseconds when) {
    co_await sleep_for(when);
    const auto held = co_await m.lock();
    order.push_back(name);
    co_await sleep_for(10ms);
  }
};

TEST(shared_mutex, who_shares_does_not_overtake_who_wants_it_alone) {
  weft::test::run([]() -> task<> {
    comers c{.m = weft::shared_mutex{}, .order = {}};
    co_await when_all(c.shares('a', 0ms), c.writes('W', 1ms), c.shares('b', 2ms), c.shares('c', 3ms));
    EXPECT_EQ(c.order, (std::vector{'a', 'W', 'b', 'c'}));
    EXPECT_EQ(weft::test::elapsed(), 30ms) << "b and c share it";
  });
}

TEST(shared_mutex, writers_go_first_if_they_are_preferred) {
  weft::test::run([]() -> task<> {
    comers c{.m = weft::shared_mutex{{.prefer_writers = true}}, .order = {}};
    co_await when_all(c.writes('V', 0ms), c.shares('a', 1ms), c.writes('W', 2ms));
    EXPECT_EQ(c.order, (std::vector{'V', 'W', 'a'}));
  });
}

TEST(shared_mutex, an_upgrade_waits_for_those_that_share_and_lets_nobody_in_between) {
  weft::test::run([]() -> task<> {
    weft::shared_mutex m;
    std::vector<char> order;
    auto reads = [&]() -> task<> {
      const auto held = co_await m.lock_shared();
      co_await sleep_for(5ms);
      order.push_back('r');
    };
    auto writes = [&]() -> task<> {
      co_await sleep_for(1ms);
      const auto held = co_await m.lock();
      order.push_back('w');
    };
    auto upgrades = [&]() -> task<> {
      auto held = co_await m.lock_upgradable();
      co_await sleep_for(2ms);
      auto alone = co_await std::move(held).upgrade();
      order.push_back('u');
      EXPECT_FALSE(m.try_lock_shared());
      const auto shared = std::move(alone).downgrade();
      EXPECT_FALSE(m.try_lock()) << "it is shared";
    };
    co_await when_all(reads(), upgrades(), writes());
    EXPECT_EQ(order, (std::vector{'r', 'u', 'w'}));
  });
}

TEST(shared_mutex, a_stopped_writer_lets_those_behind_it_through) {
  weft::test::run([]() -> task<> {
    weft::shared_mutex m;
    const auto held = co_await m.lock_shared();
    auto shares = [&]() -> task<> {
      co_await sleep_for(1ms);
      const auto also = co_await m.lock_shared();
    };
    auto gives_up = [&]() -> task<> {
      EXPECT_EQ((co_await as_result(timeout(5ms, m.lock()))).error(), errc::timed_out);
    };
    co_await when_all(gives_up(), shares());
    EXPECT_EQ(weft::test::elapsed(), 5ms);
  });
}

TEST(shared_mutex, counts_all_that_wait) {
  weft::test::run([]() -> task<> {
    comers c{.m = weft::shared_mutex{{.prefer_writers = true}}, .order = {}};
    auto upgrades = [&]() -> task<> {
      auto held = co_await c.m.lock_upgradable();
      co_await sleep_for(5ms);
      const auto alone = co_await std::move(held).upgrade();
    };
    auto looks = [&]() -> task<> {
      co_await sleep_for(6ms);
      EXPECT_EQ(c.m.stats().waiting, 3u) << "one upgrades, one writes, one reads behind them";
    };
    co_await when_all(c.shares('a', 0ms), upgrades(), c.writes('W', 1ms), c.shares('b', 2ms), looks());
    EXPECT_EQ(c.m.stats().waiting, 0u);
    EXPECT_EQ(c.m.stats().waits, 3u);
  });
}

TEST(shared_mutex_death, is_not_destroyed_under_a_writer_that_goes_first) {
  EXPECT_DEATH(
      {
        auto m = std::make_unique<weft::shared_mutex>(weft::shared_mutex_options{.prefer_writers = true});
        new auto(m->try_lock_shared());
        weft::start(weft::detail::as_task(m->lock()), [](auto) {});
        m.reset();
      },
      "destroyed while somebody waits in it");
}

TEST(shared_mutex_death, is_not_destroyed_while_it_is_held) {
  EXPECT_DEATH(
      {
        auto m = std::make_unique<weft::shared_mutex>();
        new auto(m->try_lock_shared());  // g++ sees that what it owns is gone, where it is a variable
        m.reset();
      },
      "destroyed while somebody holds it");
}

TEST(shared_mutex_death, is_not_upgraded_by_a_guard_that_owns_nothing) {
  EXPECT_DEATH(static_cast<void>(weft::shared_mutex::upgradable_guard{}.upgrade()), "owns no mutex was upgraded");
}

// ---- semaphore ------------------------------------------------------------------------------------------------------------

TEST(shared_mutex_death, is_not_upgraded_by_a_guard_that_has_given_it_back_since) {
  EXPECT_DEATH(
      {
        weft::shared_mutex m;
        auto held = m.try_lock_upgradable();
        auto upgrade = std::move(held).upgrade();
        held.unlock();  // NOLINT(bugprone-use-after-move): that is the misuse
        static_cast<void>(sync_wait(upgrade));
      },
      "a guard that owns no mutex was upgraded");
}

TEST(semaphore_death, has_no_more_permits_than_it_can_count) {
  weft::semaphore s{std::size_t(-1)};
  EXPECT_DEATH(s.release(), "a semaphore was given more permits than it can count");
}

WEFT_TEST("semaphore: permits are given back, kept, and added") {
  weft::semaphore s{2};
  {
    const auto one = co_await s.acquire();
    EXPECT_EQ(s.available(), 1u);
    EXPECT_FALSE(s.try_acquire(2));
    auto two = s.try_acquire();
    EXPECT_TRUE(two);
    two.keep();
  }
  EXPECT_EQ(s.available(), 1u);
  s.release(4);
  EXPECT_EQ(s.available(), 5u);
  auto five = co_await s.acquire(5);
  five.release();
  EXPECT_EQ(s.available(), 5u);
}

TEST(semaphore, who_wants_many_is_not_starved_by_who_wants_few) {
  weft::test::run([]() -> task<> {
    weft::semaphore s{2};
    std::vector<int> order;
    auto takes = [&](std::size_t count, std::chrono::milliseconds when) -> task<> {
      co_await sleep_for(when);
      const auto held = co_await s.acquire(count);
      order.push_back(static_cast<int>(count));
      co_await sleep_for(10ms);
    };
    co_await when_all(takes(1, 0ms), takes(2, 1ms), takes(1, 2ms));
    EXPECT_EQ(order, (std::vector{1, 2, 1}));
  });
}

TEST(semaphore, one_that_gives_up_lets_those_behind_it_through) {
  weft::test::run([]() -> task<> {
    weft::semaphore s{1};
    auto wants_two = [&]() -> task<> {
      EXPECT_EQ((co_await as_result(timeout(5ms, s.acquire(2)))).error(), errc::timed_out);
    };
    auto wants_one = [&]() -> task<> {
      co_await sleep_for(1ms);
      const auto held = co_await s.acquire();
    };
    co_await when_all(wants_two(), wants_one());
    EXPECT_EQ(weft::test::elapsed(), 5ms);
    EXPECT_EQ(s.available(), 1u);
  });
}

TEST(semaphore, lets_as_many_threads_in_as_it_has_permits) {
  weft::semaphore s{2};
  std::atomic<int> inside{0}, most{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i != 4; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n != test::rounds(1000); ++n) {
        const auto permit = sync_wait(s.acquire());
        const int now = ++inside;
        int seen = most.load();
        while (now > seen && !most.compare_exchange_weak(seen, now)) {
        }
        --inside;
      }
    });
  threads.clear();
  EXPECT_LE(most, 2);
  EXPECT_EQ(s.available(), 2u);
}

// ---- events, latch, barrier -------------------------------------------------------------------------------------------------

WEFT_TEST("event: lets all pass while it is set") {
  weft::event e;
  int passed = 0;
  auto passes = [&]() -> task<> {
    co_await e.wait();
    ++passed;
  };
  auto opens = [&]() -> task<> {
    EXPECT_EQ(passed, 0);
    EXPECT_EQ(e.stats().waiting, 2u);
    e.set();
    co_return;
  };
  co_await when_all(passes(), passes(), opens());
  co_await passes();
  EXPECT_EQ(passed, 3);
  e.reset();
  EXPECT_FALSE(e.is_set());
}

TEST(event, may_be_destroyed_by_who_was_let_through) {
  for (int i = 0; i != test::rounds(2000); ++i) {
    auto e = std::make_unique<weft::event>();
    std::jthread sets{[at = e.get()] { at->set(); }};
    sync_wait(e->wait());
    e.reset();  // set() may not have returned
  }
}

WEFT_TEST("auto_event: lets one pass each time") {
  weft::auto_event e{true};
  co_await e.wait();
  int passed = 0;
  auto passes = [&]() -> task<> {
    co_await e.wait();
    ++passed;
  };
  auto sets = [&]() -> task<> {
    e.set();
    EXPECT_EQ(e.stats().waiting, 1u);
    e.set();
    co_return;
  };
  co_await when_all(passes(), passes(), sets());
  EXPECT_EQ(passed, 2);
  e.set();
  e.set();
  co_await e.wait();
  EXPECT_TRUE((co_await as_result(timeout(1ms, e.wait()))).error() == errc::timed_out) << "set twice, it lets one pass";
}

WEFT_TEST("latch: opens at zero for good") {
  weft::latch l{3};
  auto arrives = [&]() -> task<> { co_await l.arrive_and_wait(); };
  auto waits = [&]() -> task<> { co_await l.wait(); };
  auto counts = [&]() -> task<> {
    EXPECT_FALSE(l.is_open());
    l.count_down();
    co_return;
  };
  co_await when_all(waits(), arrives(), arrives(), counts());
  EXPECT_TRUE(l.is_open());
  co_await l.wait();
}

TEST(latch_death, is_not_counted_below_zero) {
  EXPECT_DEATH(weft::latch{1}.count_down(2), "counted down by more than was left");
}

TEST(barrier, lets_its_parties_pass_together_and_tells_the_last) {
  weft::barrier b{3};
  std::array<std::atomic<int>, 3> phase{};
  std::atomic<int> last{0};
  weft::pool p{{.threads = 2}};
  const int phases = test::rounds(500);
  auto party = [&](std::size_t me) -> task<> {
    for (int i = 0; i != phases; ++i) {
      phase[me] = i + 1;
      if (co_await b.arrive_and_wait()) ++last;
      for (const auto& other : phase) EXPECT_GE(other.load(), i + 1);
      co_await b.arrive_and_wait();
    }
  };
  auto body = [&](scope& s) -> task<> {
    for (std::size_t i = 0; i != 3; ++i) s.fork_on(p.executor(), party, i);
    co_return;
  };
  sync_wait(with_scope(body));
  EXPECT_EQ(last, phases);
}

TEST(barrier, who_gives_up_has_not_arrived_and_who_leaves_is_not_waited_for) {
  weft::test::run([]() -> task<> {
    weft::barrier b{2};
    EXPECT_EQ((co_await as_result(timeout(5ms, b.arrive_and_wait()))).error(), errc::timed_out);
    auto arrives = [&]() -> task<> { co_await b.arrive_and_wait(); };
    auto leaves = [&]() -> task<> {
      co_await sleep_for(5ms);
      b.drop();
    };
    co_await when_all(arrives(), leaves());
    EXPECT_EQ(weft::test::elapsed(), 10ms);
    EXPECT_TRUE(co_await b.arrive_and_wait()) << "one party is left";
  });
}

// What is done once a phase is done by somebody, also where the phase ends since one left.
TEST(barrier, one_that_leaves_has_the_last_of_the_others_told) {
  weft::test::run([]() -> task<> {
    weft::barrier b{4};
    std::vector<int> told;
    auto arrives = [&](int me) -> task<> {
      if (co_await b.arrive_and_wait()) told.push_back(me);
    };
    auto leaves = [&]() -> task<> {
      b.drop();
      EXPECT_EQ(told, std::vector<int>{});
      b.drop();
      co_return;
    };
    co_await when_all(arrives(1), arrives(2), leaves());
    EXPECT_EQ(told, std::vector{2});
    co_await when_all(arrives(3), arrives(4));
    EXPECT_EQ(told, (std::vector{2, 4})) << "nobody else is told";
  });
}

// ---- condition_variable, once, guarded ----------------------------------------------------------------------------------------

TEST(condition_variable, wakes_with_the_mutex_held) {
  weft::test::run([]() -> task<> {
    weft::mutex m;
    weft::condition_variable changed;
    std::vector<int> queue;
    int got = 0;
    auto takes = [&]() -> task<> {
      auto held = co_await m.lock();
      auto there = [&] { return !queue.empty(); };
      co_await changed.wait(held, there);
      EXPECT_TRUE(held);
      got += queue.back();
      queue.pop_back();
    };
    auto gives = [&]() -> task<> {
      co_await sleep_for(1ms);
      {
        const auto held = co_await m.lock();
        queue = {1, 2};
      }
      changed.notify_one();
      co_await sleep_for(1ms);
      EXPECT_EQ(got, 2);
      changed.notify_all();
    };
    co_await when_all(takes(), takes(), gives());
    EXPECT_EQ(got, 3);
    EXPECT_FALSE(m.is_locked());
  });
}

TEST(condition_variable, a_wait_that_is_stopped_holds_nothing) {
  weft::test::run([]() -> task<> {
    weft::mutex m;
    weft::condition_variable changed;
    auto waits = [&]() -> task<> {
      auto held = co_await m.lock();
      co_await changed.wait(held);
    };
    EXPECT_EQ((co_await as_result(timeout(5ms, waits()))).error(), errc::timed_out);
    EXPECT_FALSE(m.is_locked());
  });
}

// Who goes on, and takes the mutex again, would wait for itself else.
TEST(condition_variable, a_wait_that_is_told_to_stop_before_it_is_in_line_has_given_the_mutex_back) {
  weft::test::run([]() -> task<> {
    weft::mutex m;
    weft::condition_variable changed;
    auto held = co_await m.lock();
    auto body = [&](scope& s) -> task<> {
      weft::fork<void> waits;
      int asked = 0;
      auto stops = [&] {
        if (++asked == 2) waits.request_stop();
        return false;
      };
      waits = s.fork(changed.wait(held, stops));
      while (changed.stats().waiting == 0) co_await weft::yield();
      changed.notify_one();
      while (waits.status() == weft::fork_status::running) co_await weft::yield();
      const auto how = co_await as_result(std::move(waits));
      EXPECT_TRUE(how.is_stopped());
      EXPECT_EQ(asked, 2);
    };
    co_await with_scope(body);
    EXPECT_FALSE(held);
    EXPECT_FALSE(m.is_locked());
  });
}

// The guard is not the wait's own: who goes on in spite of the stop finds it as always.
TEST(condition_variable, a_wait_that_ends_stopped_has_given_the_mutex_back_wherever_the_stop_came) {
  weft::mutex m;
  weft::condition_variable changed;
  for (const bool notified : {false, true}) {
    bool stopped = false, owns = true;
    auto waits = [&]() -> task<> {
      auto held = co_await m.lock();
      weft::stop_source stop;
      auto body = [&](weft::scope&) -> task<> { co_await changed.wait(held, [] { return false; }); };
      auto inside = [&]() -> task<> {
        if (!notified) stop.request_stop();
        const auto how = co_await as_result(weft::with_scope(weft::scope_options{.stop = stop.token()}, body));
        stopped = how.is_stopped();
        owns = static_cast<bool>(held);
      };
      auto notifies = [&]() -> task<> {
        const auto mine = co_await m.lock();
        changed.notify_one();
        stop.request_stop();  // who was notified has the mutex first, and finds that it has to wait again
      };
      co_await when_all(inside(), notifies());
    };
    weft::sync_wait(waits());
    EXPECT_TRUE(stopped);
    EXPECT_FALSE(owns);
    EXPECT_FALSE(m.is_locked());
  }
}

// Tells who parks next to stop, if it is told to: between its first look and its place in line.
struct stops_who_parks {
  static inline bool next = false;
  static inline const weft::detail::wait_watch watch{
      .parking =
          [](weft::detail::sleeper& one) noexcept {
            if (std::exchange(next, false)) one.request_stop();
          },
      .parked = [](weft::detail::sleeper&, bool) noexcept {},
      .waking = [](weft::detail::sleeper&, weft::detail::wake_up) noexcept { return false; },
      .stopping = [](weft::detail::sleeper&) noexcept {},
      .ran_dry = []() noexcept { return false; },
  };
};

// Without an executor, who waits for the mutex runs where it is given back: in the await that is about to end stopped.
TEST(condition_variable, a_wait_that_is_stopped_as_it_begins_lets_another_one_run_and_ends) {
  const test::calm quiet;
  weft::mutex m;
  weft::condition_variable changed;
  bool stopped = false, had_it = false;
  auto locks = [&]() -> task<> {
    const auto held = co_await m.lock();
    had_it = true;
  };
  auto waits = [&]() -> task<> {
    auto held = co_await m.lock();
    weft::start(locks(), [](weft::result<void>) {});
    stops_who_parks::next = true;
    co_await changed.wait(held);
  };
  weft::detail::wait_watch::begin(&stops_who_parks::watch);
  weft::start(waits(), [&](weft::result<void> how) { stopped = how.is_stopped(); });
  weft::detail::wait_watch::begin(nullptr);
  EXPECT_TRUE(stopped);
  EXPECT_TRUE(had_it);
  EXPECT_FALSE(m.is_locked());
  EXPECT_EQ(changed.stats().waiting, 0u);
}

WEFT_TEST("once: happens once, and again after a failure") {
  weft::once o;
  int calls = 0;
  auto fails = [&]() -> task<> {
    ++calls;
    throw std::runtime_error{"not yet"};
    co_return;
  };
  auto works = [&] { ++calls; };
  EXPECT_FALSE((co_await as_result(o.call(fails))).has_value());
  EXPECT_FALSE(o.is_done());
  co_await when_all(o.call(works), o.call(works));
  EXPECT_TRUE(o.is_done());
  EXPECT_EQ(calls, 2);
}

// Who waits for one that is at it is not taken for one that waits for itself: not beside it in one root, nor where the frame
// of one that has failed lay before.
WEFT_TEST("once: others wait for who is at it, and try again") {
  weft::once o;
  int calls = 0;
  auto fails_late = [&]() -> task<> {
    ++calls;
    co_await sleep_for(1ms);
    if (calls != 4) throw std::runtime_error{"not yet"};
  };
  auto tries = [&]() -> task<bool> { co_return (co_await as_result(o.call(fails_late))).has_value(); };
  auto two = [&]() -> task<int> {
    auto [a, b] = co_await when_all(tries(), tries());
    co_return int{a} + int{b};
  };
  auto [a, b, c] = co_await when_all(two(), two(), tries());
  EXPECT_EQ(a + b + int{c}, 2);
  EXPECT_EQ(calls, 4);
  EXPECT_TRUE(o.is_done());
}

// What another once waits for is no recursion.
WEFT_TEST("once: one may be called by another one's function, and one that is done by its own") {
  weft::once outer, inner, done;
  auto nothing = [] {};
  co_await done.call(nothing);
  auto calls_inner = [&]() -> task<> {
    co_await inner.call(nothing);
    co_await done.call(nothing);
  };
  co_await outer.call(calls_inner);
  EXPECT_TRUE(outer.is_done() && inner.is_done());
}

WEFT_TEST("condition_variable: of another mutex, once nobody waits with the one before") {
  weft::condition_variable changed;
  for (int i = 0; i != 3; ++i) {
    weft::mutex m;
    bool set = false;
    auto waits = [&]() -> task<> {
      auto held = co_await m.lock();
      auto is_set = [&] { return set; };
      co_await changed.wait(held, is_set);
    };
    auto sets = [&]() -> task<> {
      const auto held = co_await m.lock();
      set = true;
      changed.notify_all();
    };
    co_await when_all(waits(), waits(), sets());
  }
}

WEFT_TEST("once: tells how many wait for who is at it, and waited") {
  weft::once o;
  auto works = []() -> task<> { co_await sleep_for(1ms); };
  auto looks = [&]() -> task<> {
    EXPECT_EQ(o.stats().waiting, 2u);
    EXPECT_EQ(o.stats().waits, 2u);
    co_return;
  };
  co_await when_all(o.call(works), o.call(works), o.call(works), looks());
  co_await o.call(works);
  EXPECT_EQ(o.stats().waiting, 0u);
  EXPECT_EQ(o.stats().waits, 2u);
}

WEFT_TEST("guarded: the value is reached by who holds it") {
  weft::guarded<std::vector<int>> numbers{std::vector{1, 2}};
  {
    auto all = co_await numbers.lock();
    all->push_back(3);
    EXPECT_FALSE(numbers.try_lock());
  }
  const auto all = numbers.try_lock();
  EXPECT_TRUE(all);
  EXPECT_EQ((*all).size(), 3u);
}

// ---- in fibers --------------------------------------------------------------------------------------------------------------

using weft::await;

WEFT_TEST("sync: a fiber leaves its stack only to wait") {
  weft::mutex m;
  weft::guarded<int> number{1};
  weft::shared_mutex shared;
  weft::semaphore permits{2};
  weft::event open{true};
  weft::auto_event one_passes;
  const std::pair<const char*, std::function<void()>> those[] = {
      {"mutex", [&] { EXPECT_TRUE(await(m.lock())); }},
      {"guarded", [&] { EXPECT_EQ(*await(number.lock()), 1); }},
      {"shared_mutex", [&] { EXPECT_TRUE(await(shared.lock())); }},
      {"shared_mutex, shared", [&] { EXPECT_TRUE(await(shared.lock_shared())); }},
      {"shared_mutex, to upgrade", [&] { EXPECT_TRUE(await(await(shared.lock_upgradable()).upgrade())); }},
      {"semaphore", [&] { EXPECT_TRUE(await(permits.acquire(2))); }},
      {"event", [&] { await(open.wait()); }},
      {"auto_event",
       [&] {
         one_passes.set();
         await(one_passes.wait());
       }},
      {"latch", [&] { await(weft::latch{0}.wait()); }},
      {"latch, the last", [&] { await(weft::latch{1}.arrive_and_wait()); }},
      {"barrier", [&] { EXPECT_TRUE(await(weft::barrier{1}.arrive_and_wait())); }},
  };
  for (const auto& [what, passes] : those) {
    SCOPED_TRACE(what);
    auto body = [&](scope& s) -> task<> {
      co_await s.go([&] {
        const std::size_t before = weft::fibers().switches;
        passes();
        EXPECT_EQ(weft::fibers().switches, before);
      });
      weft::fork<void> told;
      told = s.go([&] {
        weft::this_fiber::yield();
        told.request_stop();
        passes();  // which needs no wait, and ends it all the same
        ADD_FAILURE() << "it went on";
      });
      while (told.status() == weft::fork_status::running) co_await weft::yield();
      const auto how = co_await as_result(std::move(told));
      EXPECT_TRUE(how.is_stopped());
    };
    co_await with_scope(body);
  }
  EXPECT_FALSE(m.is_locked());
  EXPECT_TRUE(shared.try_lock());
  EXPECT_EQ(permits.available(), 2u);
}

WEFT_TEST("sync: a fiber waits where it must, and overtakes nobody") {
  weft::mutex m;
  weft::shared_mutex shared;
  weft::semaphore permits{2};
  weft::latch last{2};
  weft::barrier both{2};
  auto body = [&](scope& s) -> task<> {
    auto held = co_await m.lock();
    auto reads = co_await shared.lock_shared();
    bool wrote = false, took = false;
    auto writes = [&]() -> task<> {
      const auto alone = co_await shared.lock();
      wrote = true;
    };
    auto wants_many = [&]() -> task<> {
      const auto three = co_await permits.acquire(3);
      took = true;
    };
    s.fork(writes());
    s.fork(wants_many());
    weft::fork<void> locks = s.go([&] { EXPECT_TRUE(await(m.lock())); });
    weft::fork<void> shares = s.go([&] {
      EXPECT_TRUE(await(shared.lock_shared()));
      EXPECT_TRUE(wrote);
    });
    weft::fork<void> wants_one = s.go([&] {
      EXPECT_TRUE(await(permits.acquire()));
      EXPECT_TRUE(took);
    });
    weft::fork<bool> arrives = s.go([&] {
      await(last.arrive_and_wait());
      return await(both.arrive_and_wait());
    });
    co_await weft::yield();
    for (const weft::fork<void>* one : {&locks, &shares, &wants_one})
      EXPECT_EQ(one->status(), weft::fork_status::running);
    EXPECT_EQ(arrives.status(), weft::fork_status::running);
    held.unlock();
    reads.unlock();
    permits.release();
    last.count_down();
    const bool came_last = co_await both.arrive_and_wait();
    EXPECT_NE(co_await std::move(arrives), came_last);
  };
  co_await with_scope(body);
  EXPECT_EQ(permits.available(), 3u);
}

}  // namespace
