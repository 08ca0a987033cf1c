// Fibers of a pool that yield to each other: where a worker's next job is another fiber, they switch to it and not to the
// worker's loop. Nobody but these counts is to notice.
#include <weft/fiber.hpp>

#include <gtest/gtest.h>
#include <unwind.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cfenv>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory_resource>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <weft/channel.hpp>
#include <weft/combine.hpp>
#include <weft/executor.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/sync.hpp>
#include <weft/task.hpp>

#include "core/worker.hpp"
#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::await;
using weft::pool;
using weft::scope;
using weft::sync_wait;
using weft::task;
using weft::with_scope;
using weft::this_fiber::yield;

// Not under the address sanitizer, nor where a look at the locks comes before each wait.
#if defined(WEFT_WATCH_LOCKS)
constexpr bool crosses = false;
#else
constexpr bool crosses = weft::detail::jumps_across;
#endif

std::size_t switches_across() {
  std::size_t all = 0;
  for (const weft::detail::worker* one = weft::detail::newest_worker(); one != nullptr; one = one->made_before)
    all += one->fibers.across.get();
  return all;
}

/// How many there are in `run`.
template <class Run>
std::size_t across_in(Run run) {
  const std::size_t before = switches_across();
  run();
  return switches_across() - before;
}

void yields(int turns) {
  for (int i = 0; i != turns; ++i) yield();
}
// The same, by the way of all waits.
void yields_by_the_loop(int turns) {
  for (int i = 0; i != turns; ++i) await(weft::yield());
}

// ---- where it is done ---------------------------------------------------------------------------------------------------

constexpr int turns = 610;

struct cost {
  std::size_t across, switches, migrations, jobs;
};

cost of_two(void (*yield_so)(int)) {
  pool workers{{.threads = 1}};
  const weft::fiber_stats before = weft::fibers();
  auto body = [&](scope& s) -> task<> {
    s.go(yield_so, turns);
    s.go(yield_so, turns);
    co_return;
  };
  const std::size_t across = across_in([&] { sync_wait(with_scope({.executor = &workers.executor()}, body)); });
  const weft::fiber_stats after = weft::fibers();
  return {across, after.switches - before.switches, after.migrations - before.migrations, workers.stats(0).jobs};
}

TEST(fiber_across, two_that_yield_go_on_in_each_other) {
  const cost through = of_two(yields), by_the_loop = of_two(yields_by_the_loop);
  EXPECT_EQ(by_the_loop.across, 0U);
  if (crosses)
    EXPECT_GT(through.across, 2U * turns * 9 / 10);  // the loop looks round in every 61st
  else
    EXPECT_EQ(through.across, 0U);
  EXPECT_EQ(through.switches, 2U * turns + 2);
  EXPECT_EQ(through.switches, by_the_loop.switches);
  EXPECT_EQ(through.migrations, by_the_loop.migrations);
  EXPECT_EQ(through.jobs, by_the_loop.jobs);
}

// Fibers and tasks that yield, that wake each other, and that end, on one worker: who runs when.
template <class Yield>
std::string order(Yield yield_so) {
  pool workers{{.threads = 1}};
  std::string trace;
  weft::channel<int> both{0};
  auto takes_turns = [&](char who, int count) {
    for (int i = 0; i != count; ++i) {
      trace += who;
      yield_so();
    }
  };
  auto receives = [&] {
    while (await(both.receive())) {
      trace += '<';
      yield_so();
    }
  };
  auto sends = [&] {
    for (int i = 0; i != 40; ++i) {
      await(both.send(i));
      trace += '>';
      if (i % 5 == 0) yield_so();
    }
    both.close();
  };
  auto a_task = [&](char who) -> task<> {
    for (int i = 0; i != 50; ++i) {
      trace += who;
      co_await weft::yield();
    }
  };
  auto body = [&](scope& s) -> task<> {
    for (int i = 0; i != 8; ++i) s.go(takes_turns, static_cast<char>('a' + i), 20 + 17 * i);
    s.fork(a_task('A'));
    s.go(receives);
    s.go(sends);
    s.go(takes_turns, 'x', 200);
    s.go(takes_turns, 'y', 200);
    s.fork(a_task('B'));
    co_return;
  };
  sync_wait(with_scope({.executor = &workers.executor()}, body));
  return trace;
}

TEST(fiber_across, who_runs_when_is_as_by_the_loop) {
  const test::calm in_turns;
  std::string across, by_the_loop;
  const std::size_t count = across_in([&] { across = order([] { yield(); }); });
  EXPECT_EQ(across_in([&] { by_the_loop = order([] { await(weft::yield()); }); }), 0U);
  EXPECT_EQ(across, by_the_loop);
  EXPECT_EQ(count > 500, crosses) << count;
}

// ---- where it is not ----------------------------------------------------------------------------------------------------

template <class Body>
std::size_t across_on(const weft::pool_options& options, Body body) {
  pool workers{options};
  return across_in([&] { sync_wait(with_scope({.executor = &workers.executor()}, body)); });
}

task<> two_of(scope& s, void (*function)()) {
  s.go(function);
  s.go(function);
  co_return;
}
task<> two_that_yield(scope& s) {
  return two_of(s, [] { yields(200); });
}

TEST(fiber_across, not_where_jobs_have_ranks) {
  EXPECT_EQ(across_on({.threads = 1, .priorities = 3}, two_that_yield), 0U);
  EXPECT_EQ(across_on({.threads = 1, .deadline_order = true}, two_that_yield), 0U);
}

TEST(fiber_across, not_on_other_executors) {
  pool workers{{.threads = 1}};
  weft::strand line{workers.executor()};
  EXPECT_EQ(across_in([&] { sync_wait(with_scope({.executor = &line}, two_that_yield)); }), 0U);
  EXPECT_EQ(across_in([&] { sync_wait(with_scope(two_that_yield)); }), 0U);
  weft::worker_group group{1};
  EXPECT_EQ(across_in([&] { sync_wait(with_scope({.executor = &group.worker(0)}, two_that_yield)); }), 0U);
  weft::manual_executor loop;
  bool ended = false;
  weft::start(loop, with_scope(two_that_yield), [&](weft::result<void> r) { ended = r.has_value(); });
  EXPECT_EQ(across_in([&] { loop.run_all(); }), 0U);
  EXPECT_TRUE(ended);
}

TEST(fiber_across, not_to_itself_nor_to_a_task) {
  const auto alone = [](scope& s) -> task<> {
    s.go([] { yields(200); });
    co_return;
  };
  EXPECT_EQ(across_on({.threads = 1}, alone), 0U);
  const auto beside_a_task = [](scope& s) -> task<> {
    s.go([] { yields(200); });
    for (int i = 0; i != 200; ++i) co_await weft::yield();
  };
  EXPECT_EQ(across_on({.threads = 1}, beside_a_task), 0U);
}

TEST(fiber_across, not_where_frames_are_of_a_scope) {
  std::pmr::unsynchronized_pool_resource memory;
  pool workers{{.threads = 1}};
  EXPECT_EQ(
      across_in([&] { sync_wait(with_scope({.memory = &memory, .executor = &workers.executor()}, two_that_yield)); }),
      0U);
}

TEST(fiber_across, not_while_an_exception_is_handled_or_on_its_way) {
  const auto handled = [](scope& s) -> task<> {
    return two_of(s, [] {
      try {
        throw std::runtime_error{"mine"};
      } catch (const std::runtime_error& one) {
        yields(200);
        EXPECT_STREQ(one.what(), "mine");
        EXPECT_TRUE(std::current_exception());
      }
      EXPECT_FALSE(std::current_exception());
    });
  };
  EXPECT_EQ(across_on({.threads = 1}, handled), 0U);
  const auto on_its_way = [](scope& s) -> task<> {
    return two_of(s, [] {
      struct yields_at_its_end {
        ~yields_at_its_end() {
          for (int i = 0; i != 200; ++i) yield();
          EXPECT_EQ(std::uncaught_exceptions(), 1);
        }
      };
      EXPECT_THROW(
          {
            const yields_at_its_end one;
            throw 1;
          },
          int);
    });
  };
  EXPECT_EQ(across_on({.threads = 1}, on_its_way), 0U);
}

// Who forks goes on as soon as the fork waits, though that may have somebody to switch to: on a fiber's stack, too.
TEST(fiber_across, not_before_who_forked_it_has_gone_on) {
  const test::calm in_turns;
  std::string trace;
  const auto forks = [&](scope& s) {
    yields(3);  // resumed by the worker's loop, after a fiber
    for (int i = 0; i != 5; ++i) {
      s.go([&] {
        trace += 'f';
        await(std::suspend_never{});
        yield();
        trace += 'F';
        yields(20);
      });
      trace += '.';
      yields(3);
    }
  };
  const auto body = [&](scope& s) -> task<> {
    s.go([&] { yields(100); });
    s.go([&] { yields(100); });
    s.go([&] { forks(s); });
    co_return;
  };
  const std::size_t count = across_on({.threads = 1}, body);
  EXPECT_EQ(trace, "f.Ff.Ff.Ff.Ff.F");
  EXPECT_EQ(count > 100, crosses) << count;
}

// The same where its first run has awaited what others began and ended on the same stack, so that nothing else says that it
// is the first: a child that loses is unwound at once.
TEST(fiber_across, not_in_a_first_run_that_has_awaited_children) {
  const test::calm in_turns;
  std::string trace;
  const auto never = []() -> task<> {
    weft::event forever;
    co_await forever.wait();
  };
  const auto at_once = []() -> task<> { co_return; };
  const auto forks = [&](scope& s) {
    yields(3);
    for (int i = 0; i != 5; ++i) {
      s.go([&] {
        trace += 'f';
        await(weft::when_any(never(), at_once()));
        yield();
        trace += 'F';
        yields(20);
      });
      trace += '.';
      yields(3);
    }
  };
  const auto body = [&](scope& s) -> task<> {
    s.go([&] { yields(100); });
    s.go([&] { yields(100); });
    s.go([&] { forks(s); });
    co_return;
  };
  const std::size_t count = across_on({.threads = 1}, body);
  EXPECT_EQ(trace, "f.Ff.Ff.Ff.Ff.F");
  EXPECT_EQ(count > 100, crosses) << count;
}

// ---- fairness -----------------------------------------------------------------------------------------------------------

TEST(fiber_across, what_comes_from_outside_has_its_turn) {
  for (const unsigned threads : {1U, 2U}) {
    pool workers{{.threads = threads}};
    std::atomic<bool> came = false;
    auto waits = [&] {
      while (!came) yield();
    };
    auto sets = [&]() -> task<> {
      came = true;
      co_return;
    };
    auto body = [&](scope& s) -> task<> {
      for (int i = 0; i != 4; ++i) s.go(waits);
      co_return;
    };
    auto fibers = [&] { sync_wait(with_scope({.executor = &workers.executor()}, body)); };
    std::thread inside{fibers};
    test::until([&] { return weft::fibers().live >= 4; });
    sync_wait(weft::start_on(workers.executor(), sets()));
    inside.join();
    EXPECT_TRUE(came);
  }
}

// ---- stops --------------------------------------------------------------------------------------------------------------

// At its next yield, and not only when the worker's loop has come to it.
TEST(fiber_across, one_that_was_told_to_stop_goes_no_further) {
  pool workers{{.threads = 1}};
  weft::stop_source stop;
  std::atomic<int> alive = 0;
  int turns_after = 0;
  auto body = [&](scope& s) -> task<> {
    for (int n = 0; n != 3; ++n)
      s.go([&, n] {
        const test::counted one{alive};
        yields(5 + n);
        stop.request_stop();
        for (;;) {
          yield();
          ++turns_after;
        }
      });
    co_return;
  };
  auto all = with_scope({.executor = &workers.executor(), .stop = stop.token()}, body);
  EXPECT_FALSE(sync_wait(weft::as_result(std::move(all))).exception());
  EXPECT_EQ(turns_after, 0);
  EXPECT_EQ(alive, 0);
}

TEST(fiber_across, a_stop_comes_to_those_that_yield_for_ever) {
  for (int i = 0; i != test::rounds(100); ++i) {
    pool workers{{.threads = 1U + static_cast<unsigned>(i % 2)}};
    weft::stop_source stop;
    std::atomic<int> alive = 0, ran = 0;
    auto body = [&](scope& s) -> task<> {
      for (int n = 0; n != 5; ++n)
        s.go([&] {
          const test::counted one{alive};
          for (;;) {
            ++ran;
            yield();
          }
        });
      co_return;
    };
    std::thread stopper{[&] {
      test::until([&] { return ran > 50; });
      stop.request_stop();
    }};
    auto result = sync_wait(weft::as_result(with_scope({.executor = &workers.executor(), .stop = stop.token()}, body)));
    EXPECT_FALSE(result.exception());
    stopper.join();
    EXPECT_EQ(alive, 0);
  }
}

TEST(fiber_across, a_pool_that_is_cancelled_ends_them) {
  const test::calm at_once;  // a pool that is shut down does not wait for a wake-up that comes late
  for (int i = 0; i != test::rounds(50); ++i) {
    pool workers{{.threads = 1U + static_cast<unsigned>(i % 2)}};
    std::atomic<int> alive = 0, ran = 0;
    auto body = [&](scope& s) -> task<> {
      for (int n = 0; n != 5; ++n)
        s.go([&] {
          const test::counted one{alive};
          for (;;) {
            ++ran;
            yield();
          }
        });
      co_return;
    };
    std::atomic<bool> over = false;
    weft::start(workers.executor(), with_scope(body), [&](const weft::result<void>&) { over = true; });
    test::until([&] { return ran > 50; });
    workers.shutdown(weft::pool_shutdown::cancel);
    EXPECT_TRUE(over);
    EXPECT_EQ(alive, 0);
  }
}

struct told {
  explicit told(int& of) : count{&of} {}
  told(told&& other) noexcept : count{std::exchange(other.count, nullptr)} {}
  ~told() {
    if (count != nullptr) ++*count;
  }
  int* count;
};

// A task that ended stopped is gone; its owner, on the stack of a fiber that has caught that and goes on, knows, wherever it
// has been meanwhile, and no other owner takes its task for that one: neither another fiber's nor a later one's, whose
// frame lies at the same place.
TEST(fiber_across, a_task_that_was_stopped_is_not_destroyed_again) {
  for (const int turns : {1, 2, 3, 100}) {
    int destroyed = 0, ended = 0;
    const auto awaits = [](std::optional<weft::fork<void>> gone, told) -> task<> { co_await *std::move(gone); };
    const auto is_destroyed_unused = [&] {
      const int before = destroyed;
      {
        [[maybe_unused]] const task<> unused = awaits(std::nullopt, told{destroyed});
      }
      return destroyed == before + 1;
    };
    const auto body = [&](scope& s) -> task<> {
      for (int i = 0; i != 2; ++i)
        s.go([&, i] {
          yields(2 + i);
          {
            task<> work = awaits(s.go([] { weft::this_fiber::exit(); }), told{destroyed});
            EXPECT_THROW(await(std::move(work)), weft::stopped);
            yields(turns);
            yields_by_the_loop(turns + i);
          }
          yields(turns);
          EXPECT_TRUE(is_destroyed_unused());
          ++ended;
        });
      for (int i = 0; i != 2; ++i)
        s.go([&] {
          for (int n = 0; n != 200; ++n) {
            n % 3 == 0 ? yields_by_the_loop(1) : yields(1);
            EXPECT_TRUE(is_destroyed_unused());
          }
        });
      co_return;
    };
    const std::size_t count = across_on({.threads = 1}, body);
    EXPECT_EQ(count > 50, crosses) << count;
    EXPECT_EQ(ended, 2);
    EXPECT_EQ(destroyed, 2 + 2 + 2 * 200);
  }
}

// ---- what comes along ---------------------------------------------------------------------------------------------------

[[gnu::noinline]] int rounding() {
  asm volatile("");
  return std::fegetround();
}
[[gnu::noinline]] long double third() {  // by the other control word, where there is one
  volatile long double one = 1.0L;
  return one / 3;
}
[[gnu::noinline]] int error_number() {
  asm volatile("");
  return errno;
}
[[gnu::noinline]] void set_error_number(int to) {
  asm volatile("");
  errno = to;
}

// Each keeps to itself what is a thread's, on workers that steal from each other; some end at once, some wait otherwise,
// and some are come to while they handle an exception.
void keep_to_themselves(unsigned threads, int count) {
  pool workers{{.threads = threads}};
  constexpr int ways[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  std::atomic<int> alive = 0;
  const int before = std::fegetround();
  long double thirds[4];
  for (int i = 0; i != 4; ++i) {
    std::fesetround(ways[i]);
    thirds[i] = third();
  }
  std::fesetround(before);
  auto one_of_them = [&](int n) {
    const test::counted one{alive};
    const int way = ways[n % 4];
    std::fesetround(way);
    set_error_number(n);
    const auto expect_mine = [&] {
      EXPECT_EQ(rounding(), way);
      EXPECT_EQ(third(), thirds[n % 4]);
      EXPECT_EQ(error_number(), n);
    };
    for (int turn = 0; turn != n % 23; ++turn) {
      yield();
      expect_mine();
      try {
        if ((n + turn) % 7 == 0) throw turn;
      } catch (int thrown) {
        yield();
        EXPECT_EQ(thrown, turn);
        EXPECT_TRUE(std::current_exception());
        expect_mine();
      }
      EXPECT_FALSE(std::current_exception());
      if ((n + turn) % 11 == 0) {
        await(weft::yield());
        expect_mine();
      }
    }
    return n;
  };
  auto body = [&](scope& s) -> task<long> {
    std::vector<weft::fork<int>> all;
    for (int i = 0; i != count; ++i) all.push_back(s.go(one_of_them, i));
    long sum = 0;
    for (auto& one : all) sum += co_await std::move(one);
    co_return sum;
  };
  EXPECT_EQ(sync_wait(with_scope({.executor = &workers.executor()}, body)), static_cast<long>(count) * (count - 1) / 2);
  EXPECT_EQ(alive, 0);
}

TEST(fiber_across, each_keeps_what_is_a_threads_on_one_worker) {
  const std::size_t count = across_in([] { keep_to_themselves(1, 600); });
  EXPECT_EQ(count > 1000, crosses) << count;
}
TEST(fiber_across, each_keeps_what_is_a_threads_among_thieves) {
  for (int i = 0; i != 5; ++i) keep_to_themselves(4, test::rounds(3000));
}

// What a task, or a job of no task, sets of its thread between two turns of fibers is there behind them: the thread's control
// words are read anew where anybody else has run.
TEST(fiber_across, what_others_set_of_the_thread_is_there_after_a_fibers_turn) {
  pool workers{{.threads = 1}};
  struct sets_rounding : weft::job {
    explicit sets_rounding(int to) noexcept : way{to} {
      run = [](weft::job& self) noexcept { std::fesetround(static_cast<sets_rounding&>(self).way); };
    }
    const int way;
  };
  for (const auto yield_so : {yields, yields_by_the_loop}) {
    sets_rounding down{FE_DOWNWARD}, as_before{std::fegetround()};
    bool posted = false;
    auto posts = [&] {
      yield_so(5);
      workers.executor().post(down);  // it runs next, and another fiber behind it
      yield_so(1);
      posted = true;
      yield_so(5);
    };
    auto sets = [&]() -> task<> {
      for (int i = 0; i != 2; ++i) co_await weft::yield();  // the fibers have had turns
      std::fesetround(FE_UPWARD);
      co_await weft::yield();
      EXPECT_EQ(rounding(), FE_UPWARD);
      while (!posted) co_await weft::yield();
      EXPECT_EQ(rounding(), FE_DOWNWARD);
      workers.executor().post(as_before);
      co_await weft::yield();
    };
    auto body = [&](scope& s) -> task<> {
      s.go(posts);
      for (int i = 0; i != 3; ++i) s.go(yield_so, 20);
      s.fork(sets());
      co_return;
    };
    sync_wait(with_scope({.executor = &workers.executor()}, body));
  }
}

// One that was come to waits for something else, is refused, throws, and ends.
TEST(fiber_across, one_that_was_come_to_waits_as_any) {
  struct refuses {
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<>) const { throw std::runtime_error{"not today"}; }
    void await_resume() const {}
  };
  pool workers{{.threads = 2}};
  weft::channel<int> to{1};
  auto sends = [&](int n) {
    for (int i = 0; i != 100; ++i) {
      yield();
      EXPECT_THROW(await(refuses{}), std::runtime_error);
      yields(i % 3);
      await(to.send(n));
    }
  };
  auto receives = [&] {
    long sum = 0;
    for (int i = 0; i != 400; ++i) {
      sum += *await(to.receive());
      yields(i % 2);
    }
    return sum;
  };
  auto body = [&](scope& s) -> task<long> {
    for (int n = 1; n != 5; ++n) s.go(sends, n);
    co_return co_await s.go(receives);
  };
  EXPECT_EQ(sync_wait(with_scope({.executor = &workers.executor()}, body)), 100 * (1 + 2 + 3 + 4));
}

// ---- who asks where it is -----------------------------------------------------------------------------------------------

[[gnu::noinline]] std::vector<std::uintptr_t> calls() {
  std::vector<std::uintptr_t> all;
  _Unwind_Backtrace(
      [](_Unwind_Context* at, void* into) {
        static_cast<std::vector<std::uintptr_t>*>(into)->push_back(_Unwind_GetIP(at));
        return _URC_NO_REASON;
      },
      &all);
  return all;
}

TEST(fiber_across, unwinders_go_on_from_there_to_the_worker) {
  std::vector<std::uintptr_t> by_the_loop, across;
  const auto looks = [&] {
    for (int i = 0; i != 100; ++i) {
      const bool came_across = across_in([] { yield(); }) > 1;
      (came_across ? across : by_the_loop) = calls();
    }
  };
  const auto body = [&](scope& s) -> task<> {
    s.go(looks);
    s.go(looks);
    co_return;
  };
  across_on({.threads = 1}, body);
  ASSERT_GT(by_the_loop.size(), 6U);
  if (!crosses) return;
  EXPECT_EQ(across.size(), by_the_loop.size());
  EXPECT_TRUE(std::equal(across.rbegin(), across.rbegin() + 4, by_the_loop.rbegin()));
}

}  // namespace
