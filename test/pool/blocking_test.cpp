// Calls that block, on threads of their own.
// Long because each moment of a call, and each end of a pool, is a scene of its own.
#include <weft/blocking.hpp>

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <latch>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/error.hpp>
#include <weft/pool.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>
#include <weft/stop.hpp>
#include <weft/with.hpp>

#include "support/no_threads.hpp"
#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::as_result;
using weft::blocking;
using weft::blocking_pool;
using weft::sync_wait;
using weft::task;

// ---- what a call gives ------------------------------------------------------------------------------------------------------

WEFT_TEST("blocking: gives what the function returns, from another thread, and comes home") {
  const auto here = std::this_thread::get_id();
  const auto where = [] { return std::this_thread::get_id(); };
  EXPECT_NE(co_await blocking(where), here);
  EXPECT_EQ(std::this_thread::get_id(), here);
  int kept = 7;
  const auto refers = [&]() -> int& { return kept; };
  EXPECT_EQ(&co_await blocking(refers), &kept);
  const auto nothing = [&] { ++kept; };
  co_await blocking(nothing);
  EXPECT_EQ(kept, 8);
}

WEFT_TEST("blocking: moves its arguments, and what it returns") {
  const auto twice = [](std::unique_ptr<int> n, const std::string& text) {
    *n *= 2;
    return std::make_pair(std::move(n), text + text);
  };
  auto n = std::make_unique<int>(21);
  const std::string text = "ab";
  const auto [number, both] = co_await blocking(twice, std::move(n), text);
  EXPECT_EQ(*number, 42);
  EXPECT_EQ(both, "abab");
}

WEFT_TEST("blocking: throws what the function throws") {
  const auto fails = []() -> int { throw std::runtime_error{"as planned"}; };
  const auto ended = co_await as_result(blocking(fails));
  EXPECT_THROW(std::rethrow_exception(ended.exception()), std::runtime_error);
}

WEFT_TEST("blocking: a task of a pool goes on on the pool, and a call may block on a task") {
  const weft::pool workers{{.threads = 2}};
  const auto inner = []() -> task<int> { co_return 5; };
  const auto waits = [&] { return sync_wait(weft::start_on(workers.executor(), inner())); };
  const auto work = [&]() -> task<bool> {
    const int five = co_await blocking(waits);
    co_return five == 5 && workers.is_inside();
  };
  EXPECT_TRUE(co_await weft::start_on(workers.executor(), work()));
}

WEFT_TEST("blocking: its threads have names") {
  blocking_pool files{{.threads = 1, .name = "a-name-that-is-too-long"}};
  const auto own_name = [] {
    char name[32]{};
    pthread_getname_np(pthread_self(), name, sizeof name);
    return std::string{name};
  };
  EXPECT_EQ(co_await files.run(own_name), "a-name-that-is-");
}

WEFT_TEST("blocking: a fault there finds its handler") {
  const auto blocked = [] {
    sigset_t mine;
    sigemptyset(&mine);
    pthread_sigmask(SIG_SETMASK, nullptr, &mine);
    return mine;
  };
  const sigset_t there = co_await blocking(blocked);
  EXPECT_TRUE(sigismember(&there, SIGINT));
  EXPECT_FALSE(sigismember(&there, SIGSEGV));
}

// ---- how many at once -------------------------------------------------------------------------------------------------------

WEFT_TEST("blocking_pool: has a thread for each call that blocks, up to its limit") {
  blocking_pool four{{.threads = 4, .idle = 1h}};
  EXPECT_EQ(four.stats().threads, 0u);
  std::latch all{4};
  const auto meet = [&] { all.arrive_and_wait(); };  // all four, or for ever
  co_await weft::when_all(four.run(meet), four.run(meet), four.run(meet), four.run(meet));
  EXPECT_EQ(four.stats().threads, 4u);
}

WEFT_TEST("blocking_pool: never more at once than its limit, however many call") {
  blocking_pool three{{.threads = 3}};
  std::atomic<int> inside{0}, most{0}, ran{0};
  const auto call = [&] {
    const int now = ++inside;
    int seen = most;
    while (seen < now && !most.compare_exchange_weak(seen, now)) {
    }
    std::this_thread::yield();
    ++ran;
    --inside;
  };
  const int count = test::rounds(2000);
  std::vector<task<>> all;
  for (int i = 0; i != count; ++i) all.push_back(three.run(call));
  co_await weft::when_all(std::move(all));
  EXPECT_EQ(ran, count);
  EXPECT_LE(most, 3);
  EXPECT_LE(three.stats().threads, 3u);
}

// From several threads of a pool, while its own come and go.
WEFT_TEST("blocking_pool: loses no call while it grows and shrinks") {
  blocking_pool hasty{{.threads = 3, .idle = 0ms}};
  const weft::pool workers{{.threads = 4}};
  std::atomic<int> ran{0};
  const auto call = [&] { ++ran; };
  const int each = test::rounds(500);
  const auto calls = [&]() -> task<> {
    for (int i = 0; i != each; ++i) co_await hasty.run(call);
  };
  auto all = [&](weft::scope& s) -> task<> {
    for (int i = 0; i != 8; ++i) s.fork(calls());
    co_return;
  };
  co_await weft::with_scope({.executor = &workers.executor()}, all);
  EXPECT_EQ(ran, 8 * each);
}

// A thread that was called from its rest is as good as one that rests until it has looked into the line.
WEFT_TEST("blocking_pool: starts no thread for a call while there is one that has nothing to do") {
  constexpr int enough = 16;
  blocking_pool many{{.threads = 64, .idle = 1h}};
  const auto all_at_once = [&](auto& call) {
    std::vector<task<>> all;
    for (int i = 0; i != enough; ++i) all.push_back(many.run(call));
    return weft::when_all(std::move(all));
  };
  std::latch all{enough};
  const auto meet = [&] { all.arrive_and_wait(); };
  co_await all_at_once(meet);
  const auto nothing = [] {};
  for (int round = 0; round != test::rounds(200); ++round) {
    test::until([&] { return many.stats().busy == 0; });  // then they rest
    EXPECT_EQ(many.stats().threads, static_cast<unsigned>(enough));
    co_await all_at_once(nothing);
  }
}

// ---- no threads -------------------------------------------------------------------------------------------------------------

// Who comes while another one's thread is being refused relies on that thread.
TEST(blocking_pool_refused, each_call_fails_and_none_waits_for_ever) {
  blocking_pool few{{.threads = 2}};
  const auto call = [] {};
  const int each = test::rounds(300);
  std::atomic<int> failed{0}, ended{0};
  {
    std::latch begun{4};
    std::array<std::jthread, 4> callers;
    std::atomic<bool> go{false};
    for (std::jthread& one : callers)
      one = std::jthread{[&] {
        begun.count_down();
        while (!go) std::this_thread::yield();
        for (int i = 0; i != each; ++i)
          weft::start(few.run(call), [&](const weft::result<void>& r) {
            if (r.exception()) ++failed;
            ++ended;
          });
      }};
    begun.wait();
    const test::no_threads now;
    go = true;
    for (std::jthread& one : callers) one.join();
  }
  EXPECT_EQ(ended, 4 * each);
  EXPECT_EQ(failed, 4 * each);
  EXPECT_EQ(few.stats().waiting, 0u);
  sync_wait(few.run(call));  // and threads come again
  test::until([&] { return ended == 4 * each; });
}

WEFT_TEST("blocking_pool: threads that have nothing to do go, but for those that are kept") {
  for (const unsigned keep : {0u, 2u}) {
    blocking_pool shrinks{{.threads = 4, .keep = keep, .idle = 1ms}};
    std::latch all{4};
    const auto meet = [&] { all.arrive_and_wait(); };
    co_await weft::when_all(shrinks.run(meet), shrinks.run(meet), shrinks.run(meet), shrinks.run(meet));
    test::until([&] { return shrinks.stats().threads == keep; });
    const auto again = [] { return 1; };
    EXPECT_EQ(co_await shrinks.run(again), 1);
    EXPECT_GE(shrinks.stats().threads, keep);
  }
}

// ---- stops ------------------------------------------------------------------------------------------------------------------

WEFT_TEST("blocking_pool: a stop takes a call out of the line; one that runs is waited for") {
  blocking_pool one{{.threads = 1}};
  std::latch begun{1}, go_on{1};
  const auto holds = [&] {
    begun.count_down();
    go_on.wait();
    return 1;
  };
  bool called = false;
  const auto never = [&] { called = true; };
  auto body = [&](weft::scope& s) -> task<> {
    auto runs = s.fork(one.run(holds));
    begun.wait();
    auto queued = s.fork(one.run(never));
    EXPECT_EQ(one.stats().waiting, 1u);
    queued.request_stop();
    const auto left = co_await as_result(std::move(queued));
    EXPECT_TRUE(left.is_stopped());
    EXPECT_EQ(one.stats().waiting, 0u);
    runs.request_stop();
    EXPECT_FALSE(runs.done());
    go_on.count_down();
    EXPECT_EQ(co_await std::move(runs), 1) << "what it gave is not lost";
  };
  co_await weft::with_scope(body);
  EXPECT_FALSE(called);
}

WEFT_TEST("blocking_pool: a task that was told to stop before does not call") {
  blocking_pool one{{.threads = 1}};
  weft::stop_source source;
  bool called = false;
  const auto never = [&] { called = true; };
  auto work = [&]() -> task<> {
    source.request_stop();
    co_await one.run(never);
  };
  const auto ended = co_await as_result(weft::with_stop(source.token(), work));
  EXPECT_TRUE(ended.is_stopped());
  EXPECT_FALSE(called);
  EXPECT_EQ(one.stats().threads, 0u);
}

// Stops from another thread, at any moment of a call: it is called or not, and comes back once.
WEFT_TEST("blocking_pool: stopped while it waits, begins, runs or ends") {
  blocking_pool two{{.threads = 2}};
  const weft::pool workers{{.threads = 2}};
  std::atomic<int> called{0};
  const auto call = [&] { return ++called; };
  int values = 0, stops = 0;
  for (int round = 0; round != test::rounds(400); ++round) {
    weft::stop_source source;
    auto several = [&]() -> task<int> {
      const auto [a, b, c] = co_await weft::when_all(two.run(call), two.run(call), two.run(call));
      co_return a + b + c;
    };
    auto work = [&]() -> task<int> { co_return co_await weft::start_on(workers.executor(), several()); };
    std::jthread stopper{[&, round] {
      for (int i = 0; i != round % 50; ++i) std::this_thread::yield();
      source.request_stop();
    }};
    const auto ended = co_await as_result(weft::with_stop(source.token(), work));
    ended.has_value() ? ++values : ++stops;
    EXPECT_TRUE(ended.has_value() || ended.is_stopped());
  }
  EXPECT_EQ(values + stops, test::rounds(400));
}

// ---- calls that a stop abandons ---------------------------------------------------------------------------------------------

using weft::abandon_on_stop;

// What a call and the test share, so that the call has it for itself.
struct held_up {
  std::latch begun{1}, go_on{1};
  std::atomic<bool> has_ended{false};
};
int hold_up(const std::shared_ptr<held_up>& by) {
  by->begun.count_down();
  by->go_on.wait();
  by->has_ended = true;
  return 1;
}

WEFT_TEST("blocking: a call that may be abandoned gives what it returns or throws, and moves its arguments") {
  const auto twice = [](std::unique_ptr<int> n, const std::string& text) {
    *n *= 2;
    return std::make_pair(std::move(n), text + text);
  };
  auto n = std::make_unique<int>(21);
  const auto [number, both] = co_await blocking(abandon_on_stop, twice, std::move(n), std::string{"ab"});
  EXPECT_EQ(*number, 42);
  EXPECT_EQ(both, "abab");
  blocking_pool one{{.threads = 1}};
  const auto nothing = [] {};
  co_await one.run(abandon_on_stop, nothing);
  const auto fails = []() -> int { throw std::runtime_error{"as planned"}; };
  const auto ended = co_await as_result(one.run(abandon_on_stop, fails));
  EXPECT_THROW(std::rethrow_exception(ended.exception()), std::runtime_error);
  EXPECT_EQ(one.stats().abandoned, 0u);
}

// Its arguments are moved into the call where there may be no memory for it.
struct has_no_memory_when_told {
  static thread_local bool is_told;
  has_no_memory_when_told() = default;
  has_no_memory_when_told(has_no_memory_when_told&&) {  // NOLINT: it throws
    if (is_told) throw std::bad_alloc{};
  }
};
thread_local bool has_no_memory_when_told::is_told = false;

WEFT_TEST("blocking: what it fails with before a call that may be abandoned begins comes by the await") {
  blocking_pool one{{.threads = 1}};
  const auto nothing = [](const has_no_memory_when_told&) {};
  auto call = one.run(abandon_on_stop, nothing, has_no_memory_when_told{});
  has_no_memory_when_told::is_told = true;
  const auto ended = co_await as_result(std::move(call));
  has_no_memory_when_told::is_told = false;
  EXPECT_TRUE(ended.exception() != nullptr);
  if (ended.exception() == nullptr) co_return;
  EXPECT_THROW(std::rethrow_exception(ended.exception()), std::bad_alloc);
}

WEFT_TEST("blocking_pool: a stop abandons a call that runs, and others have a thread in its place") {
  blocking_pool one{{.threads = 1, .idle = 1h}};
  const auto state = std::make_shared<held_up>();
  const auto seven = [] { return 7; };
  auto body = [&](weft::scope& s) -> task<> {
    auto runs = s.fork(one.run(abandon_on_stop, hold_up, state));
    state->begun.wait();
    auto behind = s.fork(one.run(seven));  // in line behind it
    EXPECT_EQ(one.stats().waiting, 1u);
    runs.request_stop();
    const auto left = co_await as_result(std::move(runs));
    EXPECT_TRUE(left.is_stopped());
    EXPECT_EQ(co_await std::move(behind), 7);
    EXPECT_EQ(co_await one.run(seven), 7);
    EXPECT_EQ(one.stats().abandoned, 1u);
    EXPECT_EQ(one.stats().threads, 2u);
    EXPECT_FALSE(state->has_ended);
  };
  co_await weft::with_scope(body);
  state->go_on.count_down();
  test::until([&] { return one.stats().abandoned == 0; });
  EXPECT_TRUE(state->has_ended);
  test::until([&] { return state.use_count() == 1; });  // all that it had is gone
  test::until([&] { return one.stats().threads == 1; });
  EXPECT_EQ(co_await one.run(seven), 7);
}

WEFT_TEST("blocking_pool: a thread that is kept is none that an abandoned call has") {
  blocking_pool keeps{{.threads = 2, .keep = 1, .idle = 1ms}};
  const auto state = std::make_shared<held_up>();
  auto body = [&](weft::scope& s) -> task<> {
    auto runs = s.fork(keeps.run(abandon_on_stop, hold_up, state));
    state->begun.wait();
    runs.request_stop();
    EXPECT_TRUE((co_await as_result(std::move(runs))).is_stopped());
  };
  co_await weft::with_scope(body);
  const auto own_number = [] { return std::this_thread::get_id(); };
  const std::thread::id first = co_await keeps.run(own_number);
  std::this_thread::sleep_for(20ms);  // it stays, however long that is
  EXPECT_EQ(keeps.stats().threads, 2u);
  EXPECT_EQ(co_await keeps.run(own_number), first);
  state->go_on.count_down();
}

WEFT_TEST("blocking_pool: a stop waits for a call where as many as may be are abandoned") {
  blocking_pool two{{.threads = 2, .max_abandoned = 1}};
  const auto first = std::make_shared<held_up>(), second = std::make_shared<held_up>();
  auto body = [&](weft::scope& s) -> task<> {
    auto one = s.fork(two.run(abandon_on_stop, hold_up, first));
    auto other = s.fork(two.run(abandon_on_stop, hold_up, second));
    first->begun.wait();
    second->begun.wait();
    one.request_stop();
    const auto left = co_await as_result(std::move(one));
    EXPECT_TRUE(left.is_stopped());
    other.request_stop();
    EXPECT_FALSE(other.done());
    EXPECT_EQ(two.stats().abandoned, 1u);
    second->go_on.count_down();
    EXPECT_EQ(co_await std::move(other), 1) << "what it gave is not lost";
    first->go_on.count_down();
  };
  co_await weft::with_scope(body);
}

WEFT_TEST("blocking_pool: a stop takes a call that might be abandoned out of the line") {
  blocking_pool one{{.threads = 1}};
  const auto state = std::make_shared<held_up>(), never = std::make_shared<held_up>();
  auto body = [&](weft::scope& s) -> task<> {
    auto runs = s.fork(one.run(abandon_on_stop, hold_up, state));
    state->begun.wait();
    auto queued = s.fork(one.run(abandon_on_stop, hold_up, never));
    queued.request_stop();
    const auto left = co_await as_result(std::move(queued));
    EXPECT_TRUE(left.is_stopped());
    EXPECT_EQ(never.use_count(), 1);
    EXPECT_EQ(one.stats().abandoned, 0u);
    state->go_on.count_down();
    EXPECT_EQ(co_await std::move(runs), 1);
  };
  co_await weft::with_scope(body);
}

std::atomic<int> lost_calls{0};

WEFT_TEST("blocking_pool: what an abandoned call throws is a lost error") {
  lost_calls = 0;
  const auto before = weft::set_lost_error_handler([](const char* operation, const std::exception_ptr&) noexcept {
    if (std::string_view{operation}.find("abandoned") != std::string_view::npos) ++lost_calls;
  });
  const auto state = std::make_shared<held_up>();
  {
    blocking_pool one{{.threads = 1}};
    const auto fails = [](const std::shared_ptr<held_up>& by) {
      hold_up(by);
      throw std::runtime_error{"as planned"};
    };
    auto body = [&](weft::scope& s) -> task<> {
      auto runs = s.fork(one.run(abandon_on_stop, fails, state));
      state->begun.wait();
      runs.request_stop();
      const auto left = co_await as_result(std::move(runs));
      EXPECT_TRUE(left.is_stopped());
    };
    co_await weft::with_scope(body);
    state->go_on.count_down();
  }  // waits for it
  EXPECT_TRUE(state->has_ended);
  EXPECT_EQ(lost_calls, 1);
  weft::set_lost_error_handler(before);
}

// Those in line wait for the abandoned call then, or for a thread that somebody else gets.
TEST(blocking_pool_refused, an_abandoned_call_without_a_thread_in_its_place_serves_when_it_has_ended) {
  blocking_pool one{{.threads = 1}};
  const auto state = std::make_shared<held_up>();
  std::atomic<int> stopped{0}, seven{0};
  weft::stop_source source;
  const auto call = [] { return 7; };
  auto runs = [&]() -> task<int> { co_return co_await one.run(abandon_on_stop, hold_up, state); };
  weft::start(weft::with_stop(source.token(), runs),
              [&](const weft::result<int>& r) { stopped = r.is_stopped() ? 1 : 2; });
  state->begun.wait();
  weft::start(one.run(call), [&](weft::result<int> r) { seven = std::move(r).value(); });
  {
    const test::no_threads now;
    source.request_stop();
  }
  EXPECT_EQ(stopped, 1);
  EXPECT_EQ(one.stats().threads, 1u);
  EXPECT_EQ(one.stats().waiting, 1u);
  EXPECT_EQ(seven, 0);
  state->go_on.count_down();
  test::until([&] { return seven == 7; });
  EXPECT_EQ(one.stats().abandoned, 0u);
}

// Stops from another thread, at any moment of a call: each that was called ends, and no thread is lost.
WEFT_TEST("blocking_pool: abandons calls while they wait, begin, run or end") {
  struct counts {
    std::atomic<int> begun{0}, ended{0};
  };
  const auto all = std::make_shared<counts>();
  {
    blocking_pool two{{.threads = 2, .max_abandoned = 2}};
    const weft::pool workers{{.threads = 2}};
    const auto call = [](const std::shared_ptr<counts>& of) {
      ++of->begun;
      std::this_thread::yield();
      return ++of->ended;
    };
    for (int round = 0; round != test::rounds(400); ++round) {
      weft::stop_source source;
      auto several = [&]() -> task<int> {
        const auto [a, b, c] =
            co_await weft::when_all(two.run(abandon_on_stop, call, all), two.run(abandon_on_stop, call, all),
                                    two.run(abandon_on_stop, call, all));
        co_return a + b + c;
      };
      auto work = [&]() -> task<int> { co_return co_await weft::start_on(workers.executor(), several()); };
      std::jthread stopper{[&, round] {
        for (int i = 0; i != round % 50; ++i) std::this_thread::yield();
        source.request_stop();
      }};
      const auto ended = co_await as_result(weft::with_stop(source.token(), work));
      EXPECT_TRUE(ended.has_value() || ended.is_stopped());
      const weft::blocking_stats now = two.stats();
      EXPECT_LE(now.abandoned, 2u);
      EXPECT_LE(now.threads, 4u);
      EXPECT_EQ(now.waiting, 0u);
    }
  }
  EXPECT_EQ(all->begun, all->ended);
  EXPECT_EQ(all.use_count(), 1);
}

WEFT_TEST("blocking: the runtime says how many calls block") {
  const auto state = std::make_shared<held_up>();
  const weft::runtime rt{{.threads = 1}};
  auto body = [&](weft::scope& s) -> task<> {
    auto runs = s.fork(blocking(abandon_on_stop, hold_up, state));
    state->begun.wait();
    EXPECT_GE(weft::process_blocking_stats().busy, 1u);
    runs.request_stop();
    const auto left = co_await as_result(std::move(runs));
    EXPECT_TRUE(left.is_stopped());
    EXPECT_NE(rt.explain().find("of them at one that was abandoned: 1"), std::string::npos) << rt.explain();
    state->go_on.count_down();
  };
  co_await weft::with_scope(body);
  test::until([&] { return weft::process_blocking_stats().abandoned == 0; });
}

// ---- the end ----------------------------------------------------------------------------------------------------------------

TEST(blocking_pool_end, leaves_no_thread_behind) {
  struct at_thread_end {
    std::atomic<int>* count = nullptr;
    ~at_thread_end() {
      std::this_thread::sleep_for(2ms);
      ++*count;
    }
  };
  std::atomic<int> ended{0};
  {
    blocking_pool few{{.threads = 3}};
    std::latch all{3};
    const auto meet = [&] {
      thread_local at_thread_end last;
      last.count = &ended;
      all.arrive_and_wait();
    };
    sync_wait(weft::when_all(few.run(meet), few.run(meet), few.run(meet)));
  }
  EXPECT_EQ(ended, 3);
}

class blocking_pool_misuse : public testing::Test {
 protected:
  blocking_pool_misuse() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(blocking_pool_misuse, without_threads) {
  EXPECT_DEATH(blocking_pool{{.threads = 0}}, "weft: a blocking_pool without threads was asked for");
}

TEST_F(blocking_pool_misuse, destroyed_by_a_call_of_its_own) {
  const auto destroys_itself = [] {
    auto* const files = new blocking_pool;
    const auto ends = [&] { delete files; };
    sync_wait(files->run(ends));
  };
  EXPECT_DEATH(destroys_itself(), "weft: a blocking_pool was destroyed on one of its own threads");
}

// Such a task goes on on the thread of the call.
TEST_F(blocking_pool_misuse, destroyed_by_a_task_without_an_executor) {
  const auto destroys = [] {
    auto* const files = new blocking_pool;
    std::latch waits{1}, destroyed{1};
    const auto call = [&] { waits.wait(); };
    weft::start(files->run(call), [&](const weft::result<void>&) {
      delete files;
      destroyed.count_down();
    });
    waits.count_down();
    destroyed.wait();
  };
  EXPECT_DEATH(destroys(), "weft: a blocking_pool was destroyed on one of its own threads");
}

TEST_F(blocking_pool_misuse, in_a_child_that_was_forked) {
  const auto fork_and_use = [] {
    blocking_pool few;
    const auto call = [] {};
    sync_wait(few.run(call));
    const pid_t child = ::fork();
    if (child == 0) {
      sync_wait(few.run(call));
      std::_Exit(0);
    }
    int status;
    ::waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) std::abort();
  };
  EXPECT_DEATH(fork_and_use(), "weft: a blocking_pool was used in a process that was forked");
}

// What waits in line is the parent's: the child, whose call has ended, does not call it again.
TEST_F(blocking_pool_misuse, in_a_child_that_a_call_has_forked) {
  const auto fork_in_a_call = [] {
    blocking_pool one{{.threads = 1}};
    const pid_t parent = ::getpid();
    pid_t child = -1;
    const auto forks = [&] {
      test::until([&] { return one.stats().waiting == 1; });
      child = ::fork();
    };
    const auto later = [&] {
      if (::getpid() != parent) std::_Exit(0);
    };
    weft::start(one.run(forks), [](const weft::result<void>&) {});
    sync_wait(one.run(later));
    int status;
    ::waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) std::abort();
  };
  EXPECT_DEATH(fork_in_a_call(), "weft: a blocking_pool was used in a process that was forked");
}

// What the exit of a process that has a call under way does, in its order: the call's thread ends behind all that.
class one_at_exit {
 public:
  [[noreturn]] static void exit() {
    std::atexit(let_it_go);  // after what blocking() does there, which is registered later
    const auto holds = [] {
      thread_ = ::gettid();
      begun_.count_down();
      go_on_.wait();
    };
    weft::start(blocking(holds), [](const weft::result<void>&) {});
    begun_.wait();
    std::exit(0);
  }

 private:
  static void let_it_go() {
    go_on_.count_down();
    const std::string entry = "/proc/self/task/" + std::to_string(thread_);
    test::until([&] { return ::access(entry.c_str(), F_OK) != 0; });
  }

  static inline std::latch begun_{1}, go_on_{1};
  static inline pid_t thread_ = 0;
};

TEST(blocking_end, a_call_that_outlives_main_holds_up_nobody_and_leaks_no_thread) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(one_at_exit::exit(), testing::ExitedWithCode(0), "");
}

TEST(blocking_end, a_forked_child_has_one_of_its_own) {
  const auto call = [] { return 42; };
  EXPECT_EQ(sync_wait(blocking(call)), 42);
  const pid_t child = ::fork();
  if (child == 0) {
#if !defined(WEFT_TEST_TSAN)  // which stands no threads in a forked child
    std::_Exit(sync_wait(blocking(call)) == 42 ? 0 : 1);
#endif
    std::_Exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
