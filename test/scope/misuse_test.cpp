// What a program must not do ends it, with a sentence that says who broke what.
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <limits>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>
#include <weft/channel.hpp>
#include <weft/clock.hpp>
#include <weft/combine.hpp>
#include <weft/coroutine.hpp>
#include <weft/executor.hpp>
#include <weft/fiber.hpp>
#include <weft/from_callback.hpp>
#include <weft/future.hpp>
#include <weft/generator.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>
#include <weft/shared_task.hpp>
#include <weft/sync.hpp>
#include <weft/task.hpp>
#include <weft/with.hpp>

#include "support/weft_test.hpp"

namespace {

using weft::result;
using weft::stop_source;
using weft::sync_wait;
using weft::task;
using namespace std::chrono_literals;

// Each in a process of its own, started anew: threads of this one would be missing in a fork.
class misuse : public testing::Test {
 protected:
  misuse() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

task<int> number(int n) { co_return n; }
task<> wait_for_it(weft::event& it) { co_await it.wait(); }

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

TEST_F(misuse, a_time_that_is_no_number) {
  using real = std::chrono::duration<double>;
  using at = std::chrono::time_point<std::chrono::steady_clock, real>;
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const auto says = "weft: a duration or a time was given that is no number";
  auto one = [] { return number(1); };
  EXPECT_DEATH(static_cast<void>(weft::sleep_for(real{nan})), says);
  EXPECT_DEATH(static_cast<void>(weft::sleep_until(at{real{nan}})), says);
  EXPECT_DEATH(static_cast<void>(weft::timeout(real{nan}, number(1))), says);
  EXPECT_DEATH(static_cast<void>(weft::timeout(real{nan})), says);
  EXPECT_DEATH(static_cast<void>(weft::after(real{nan})), says);
  EXPECT_DEATH(static_cast<void>(weft::with_deadline(real{nan}, one)), says);
  EXPECT_DEATH(static_cast<void>(weft::with_deadline(at{real{nan}}, one)), says);
}

TEST_F(misuse, options_that_make_no_sense) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const auto retries = [](const weft::retry_policy& policy) { static_cast<void>(weft::retry(policy)); };
  EXPECT_DEATH(retries({.delay = -1ms}), "a policy whose delay or max_delay is below zero");
  EXPECT_DEATH(retries({.max_delay = -1ms}), "a policy whose delay or max_delay is below zero");
  EXPECT_DEATH(retries({.factor = -1}), "a policy whose factor is below zero, or no number");
  EXPECT_DEATH(retries({.factor = nan}), "a policy whose factor is below zero, or no number");
  EXPECT_DEATH(retries({.jitter = 1.5}), "a policy whose jitter is not from 0 to 1");
  EXPECT_DEATH(retries({.jitter = nan}), "a policy whose jitter is not from 0 to 1");
  auto one = [] { return number(1); };
  EXPECT_DEATH(static_cast<void>(weft::retry({.jitter = -1}, one)), "a policy whose jitter is not from 0 to 1");
  auto body = [](weft::scope&) { return number(1); };
  EXPECT_DEATH(static_cast<void>(weft::with_scope({.max_children = 0}, body)), "a scope with max_children = 0");
  EXPECT_DEATH(static_cast<void>(weft::with_scope({.stop_within = -1s}, body)), "a stop_within below zero");
  auto again = [](std::exception_ptr) { return weft::on_failure::restart; };
  EXPECT_DEATH(static_cast<void>(weft::supervise(again, {.within = 0s})), "restart_limits whose `within` is no time");
  EXPECT_DEATH(static_cast<void>(weft::windowed(0)), "would never start anything");
  EXPECT_DEATH(weft::barrier{0}, "a barrier of no parties");
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

TEST_F(misuse, a_fork_or_view_that_outlives_its_scope) {
  test::gate door;
  door.open();
  const auto keep = [&](auto kept, auto take) {
    auto body = [&](weft::scope& s) -> task<> {
      kept = take(s.fork(number, 1));
      co_return;
    };
    sync_wait(weft::with_scope(body));
  };
  EXPECT_DEATH(keep(weft::fork_view<int>{}, [](weft::fork<int> f) { return f.view(); }),
               "weft: a fork's handle or view outlived its scope");
  const auto keep_one_that_waits = [] {
    test::gate door;
    weft::fork<> kept;
    auto pass = [&]() -> task<> { co_await door; };
    auto body = [&](weft::scope& s) -> task<> {
      kept = s.fork(pass);
      door.open();
      co_return;
    };
    sync_wait(weft::with_scope(body));
  };
  EXPECT_DEATH(keep_one_that_waits(), "weft: a fork's handle or view outlived its scope");
}

TEST_F(misuse, a_scope_that_is_used_after_its_end) {
#if defined(WEFT_TEST_ASAN)
  const char* const says =
      "use-after-poison|use-after-free|use-after-scope|fork or go was called on a scope that has ended";
#elif WEFT_FILLS_FRAMES  // the scope's memory has been filled, and so has the pointer to its policy
  const char* const says = "";
#else
  const char* const says = "weft: fork or go was called on a scope that has ended";
#endif
  weft::scope* kept = nullptr;
  auto body = [&](weft::scope& s) -> task<> {
    kept = &s;
    co_return;
  };
  const auto use = [&](auto how) {
    auto whole = [&]() -> task<> {
      co_await weft::with_scope(body);
      how();
    };
    sync_wait(whole());
  };
  EXPECT_DEATH(use([&] { kept->fork(number, 1); }), says);
  EXPECT_DEATH(use([&] { kept->go([] {}); }), says);
  weft::manual_executor loop;
  EXPECT_DEATH(use([&] { kept->fork_on(loop, number, 1); }), says);
  const auto on_a_pool = [&] {
    const weft::pool p{{.threads = 2}};
    auto whole = [&]() -> task<> {
      co_await weft::with_scope(body);
      kept->fork(number, 1);
    };
    sync_wait(weft::start_on(p.executor(), whole()));
  };
  EXPECT_DEATH(on_a_pool(), says);
}

TEST_F(misuse, moving_the_value_out_of_a_fork_that_has_a_view) {
  auto body = [](weft::scope& s) -> task<int> {
    weft::fork<int> f = s.fork(number, 1);
    const weft::fork_view<int> view = f.view();
    co_return co_await std::move(f) + co_await view;
  };
  EXPECT_DEATH(sync_wait(weft::with_scope(body)),
               "weft: the value of a fork was moved out .* while a view of it was left");
}

TEST_F(misuse, an_empty_fork) {
  auto body = [](weft::scope&) -> task<int> { co_return co_await weft::fork<int>{}; };
  EXPECT_DEATH(sync_wait(weft::with_scope(body)), "weft: an empty fork or view was used");
}

TEST_F(misuse, a_frame_that_outlives_the_memory_of_its_scope) {
  const auto keep = [] {
    test::counting_resource memory;
    task<int> kept;
    auto body = [&](weft::scope&) -> task<> {
      kept = number(1);
      co_return;
    };
    sync_wait(weft::with_scope({.memory = &memory}, body));
  };
  EXPECT_DEATH(keep(), "weft: a frame from a scope's memory outlived the scope");
  const auto give_back = [] {
    test::counting_resource memory;
    auto make = []() -> task<task<int>> { co_return number(1); };
    static_cast<void>(sync_wait(weft::with_memory(&memory, make)));
  };
  EXPECT_DEATH(give_back(), "weft: a frame from a scope's memory outlived the scope");
}

TEST_F(misuse, memory_of_two_executors_that_was_not_declared_shared) {
  const auto fork_elsewhere = [] {
    test::counting_resource memory;
    weft::manual_executor loop;
    auto body = [&](weft::scope& s) -> task<> {
      s.fork_on(loop, number, 1);
      co_return;
    };
    sync_wait(weft::with_scope({.memory = &memory}, body));
  };
  EXPECT_DEATH(fork_elsewhere(), "weft: fork_on to another executor below a scope with memory that was not declared");
  const auto scope_elsewhere = [] {
    test::counting_resource memory;
    weft::manual_executor loop;
    auto body = [](weft::scope&) -> task<> { co_return; };
    auto below = [&]() -> task<> { co_await weft::with_scope({.executor = &loop}, body); };
    sync_wait(weft::with_memory(&memory, below));
  };
  EXPECT_DEATH(scope_elsewhere(), "weft: a scope on another executor below memory that was not declared shared");
  const auto two_threads = [] {
    test::counting_resource memory;
    test::gate door;
    auto waits = [&]() -> task<> { co_await door; };
    weft::start(weft::with_memory(&memory, waits), [](result<void>) {});  // without an executor
    std::jthread other{[&] { door.open(); }};
  };
  EXPECT_DEATH(two_threads(), "weft: two executors, or two threads of none, use the memory of one scope");
}

TEST_F(misuse, memory_of_one_executor_by_two_of_its_threads_at_once) {
  class slow final : public std::pmr::memory_resource {
   public:
    std::atomic<bool> both_forked{false};

   private:
    void* do_allocate(std::size_t bytes, std::size_t alignment) override {
      if (both_forked) test::until([] { return false; });  // until the other one comes, and ends the program
      return std::pmr::new_delete_resource()->allocate(bytes, alignment);
    }
    void do_deallocate(void* block, std::size_t bytes, std::size_t alignment) override {
      std::pmr::new_delete_resource()->deallocate(block, bytes, alignment);
    }
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }
  };
  const auto at_once = [] {
    slow memory;
    const weft::pool p{{.threads = 2}};
    auto body = [&](weft::scope& s) -> task<> {
      const auto waits = [&]() -> task<int> {
        test::until([&] { return memory.both_forked.load(); });
        std::vector<task<int>> frames;  // of their own: no compiler puts them into this one's
        frames.push_back(number(1));
        co_return co_await std::move(frames.back());
      };
      auto a = s.fork_on(p.executor(), waits), b = s.fork_on(p.executor(), waits);
      memory.both_forked = true;
      co_await std::move(a);
      co_await std::move(b);
    };
    sync_wait(weft::start_on(p.executor(), weft::with_scope({.memory = &memory}, body)));
  };
  EXPECT_DEATH(at_once(), "weft: two threads use the memory of one scope at once");
}

#if defined(WEFT_WATCH_LOCKS)
constexpr char holds_a_mutex[] = "weft: a task waits while it holds a std::mutex, which .*holds_one.* has locked";

task<> wait_for(weft::event& it) { co_await it.wait(); }
task<> holds_one_and_waits(std::mutex& m, weft::event& never) {
  const std::lock_guard guard{m};
  co_await never.wait();
}
task<> holds_one_and_awaits(std::mutex& m, weft::event& never) {
  const std::lock_guard guard{m};
  co_await wait_for(never);
}
task<> holds_one_and_joins(std::recursive_timed_mutex& m, weft::event& never) {
  const std::unique_lock guard{m, std::chrono::seconds{1}};
  co_await weft::when_all(wait_for(never), wait_for(never));
}
task<> holds_one_and_yields(std::mutex& m) {
  const std::unique_lock guard{m, std::try_to_lock};
  co_await weft::yield();
}

TEST_F(misuse, a_mutex_of_the_standard_library_held_by_a_task_that_waits) {
  std::mutex m;
  std::recursive_timed_mutex other;
  weft::event never;
  EXPECT_DEATH(sync_wait(holds_one_and_waits(m, never)), holds_a_mutex);
  EXPECT_DEATH(sync_wait(holds_one_and_awaits(m, never)), holds_a_mutex);
  EXPECT_DEATH(sync_wait(holds_one_and_joins(other, never)), holds_a_mutex);
  EXPECT_DEATH(sync_wait(holds_one_and_yields(m)), holds_a_mutex);
}

int waits_in_a_fiber(std::mutex& m) {
  const std::lock_guard guard{m};
  weft::this_fiber::yield();
  return 1;
}

TEST_F(misuse, a_mutex_of_the_standard_library_held_by_a_fiber_that_waits) {
  const auto waits = [] {
    const weft::pool p{{.threads = 1}};
    std::mutex m;
    auto body = [&](weft::scope& s) -> task<> { co_await s.go(waits_in_a_fiber, std::ref(m)); };
    sync_wait(weft::with_scope({.executor = &p.executor()}, body));
  };
  EXPECT_DEATH(waits(), "waits_in_a_fiber");
  EXPECT_DEATH(waits(), "weft: a fiber waits while it holds a std::mutex");
}

// What is unlocked in time, what does not wait, and what somebody else holds.
TEST_F(misuse, mutexes_of_the_standard_library_that_are_no_misuse) {
  std::mutex m, outer, of_the_body;
  weft::event go;
  int sum = 0;
  auto work = [&]() -> task<> {
    for (int turn = 0; turn != 3; ++turn) {
      {
        const std::lock_guard guard{m};
        sum += co_await number(1);  // does not wait
      }
      co_await go.wait();
      co_await weft::yield();
    }
    std::unique_lock moves{m};
    auto child = [](std::unique_lock<std::mutex> guard) -> task<> {
      guard.unlock();
      co_await weft::yield();
    };
    co_await child(std::move(moves));
  };
  const std::lock_guard by_the_caller{outer};
  auto both = [&]() -> task<> {
    auto body = [&](weft::scope& s) -> task<> {
      s.fork(work());
      const std::lock_guard guard{of_the_body};  // the fork runs on, perhaps nested in this
      go.set();
      co_return;
    };
    co_await weft::with_scope(body);
  };
  sync_wait(both());
  EXPECT_EQ(sum, 3);
}
#endif

TEST_F(misuse, a_condition_variable_with_two_mutexes) {
  const auto waits_with_two = [] {
    weft::mutex one, other;
    weft::condition_variable changed;
    auto waits = [&](weft::mutex& m) -> task<> {
      auto held = co_await m.lock();
      co_await changed.wait(held);
    };
    sync_wait(weft::when_all(waits(one), waits(other)));
  };
  EXPECT_DEATH(waits_with_two(), "weft: a condition_variable was waited on with two mutexes");
}

TEST_F(misuse, a_once_that_calls_itself) {
  const auto calls_itself = [] {
    weft::once o;
    auto again = [&]() -> task<> {
      auto nothing = [] {};
      co_await o.call(nothing);
    };
    auto deeper = [&]() -> task<> { co_await again(); };
    sync_wait(o.call(deeper));
  };
  const auto in_a_fiber = [] {
    weft::once o;
    auto again = [&]() -> task<> {
      auto nothing = [] {};
      co_await o.call(nothing);
    };
    auto body = [&](weft::scope& s) -> task<> {
      auto calls = [&] { weft::await(o.call(again)); };
      s.go(calls);
      co_return;
    };
    sync_wait(weft::with_scope(body));
  };
  const auto sentence = "weft: the function of a once called that once, and would wait for itself";
  EXPECT_DEATH(calls_itself(), sentence);
  EXPECT_DEATH(in_a_fiber(), sentence);
}

// ---- executors that go while something waits ----------------------------------------------------------------------------

#if !defined(NDEBUG)
TEST_F(misuse, a_pool_destroyed_while_a_task_waits) {
  const char* const says = "weft: a pool was destroyed while a task of it waits";
  const auto with_a_task = [] {
    weft::event never;
    std::optional<weft::pool> p{std::in_place, weft::pool_options{.threads = 2}};
    weft::start(p->executor(), wait_for_it(never), [](result<void>) {});
    p.reset();
  };
  EXPECT_DEATH(with_a_task(), says);
  const auto with_a_fiber = [] {
    weft::event never;
    std::optional<weft::pool> p{std::in_place, weft::pool_options{.threads = 2}};
    auto body = [&](weft::scope& s) -> task<> {
      s.go([&] { weft::await(never.wait()); });
      co_return;
    };
    weft::start(p->executor(), weft::with_scope(body), [](result<void>) {});
    p.reset();
  };
  EXPECT_DEATH(with_a_fiber(), says);
  const auto by_a_task_of_its_own = [] {
    weft::event never;
    std::optional<weft::pool> p{std::in_place, weft::pool_options{.threads = 2}};
    weft::start(p->executor(), wait_for_it(never), [](result<void>) {});
    auto destroys = [&]() -> task<> {
      p.reset();
      co_return;
    };
    weft::start(p->executor(), destroys(), [](result<void>) {});
    test::until([] { return false; });  // until its last thread ends the program
  };
  EXPECT_DEATH(by_a_task_of_its_own(), says);
}
#endif

TEST_F(misuse, a_strand_destroyed_while_a_task_waits) {
  const char* const says = "weft: a task was woken whose strand had been destroyed while it waited";
  const auto with_a_task = [] {
    weft::event late;
    weft::manual_executor loop;
    std::optional<weft::strand> on{std::in_place, loop};
    weft::start(*on, wait_for_it(late), [](result<void>) {});
    loop.run_all();
    on.reset();
    late.set();
  };
  EXPECT_DEATH(with_a_task(), says);
  const auto with_a_fiber = [] {
    weft::event late;
    weft::manual_executor loop;
    std::optional<weft::strand> on{std::in_place, loop};
    auto body = [&](weft::scope& s) -> task<> {
      s.go([&] { weft::await(late.wait()); });
      co_return;
    };
    weft::start(*on, weft::with_scope(body), [](result<void>) {});
    loop.run_all();
    on.reset();
    late.set();
  };
  EXPECT_DEATH(with_a_fiber(), says);
}

struct throws {
  void operator()() const { throw std::runtime_error{"oh no"}; }
};

TEST_F(misuse, a_stop_callback_that_throws) {
  const auto throws_later = [] {
    stop_source source;
    const weft::stop_callback<throws> callback{source.token(), throws{}};
    source.request_stop();
  };
  const auto throws_at_once = [] {
    stop_source source;
    source.request_stop();
    const weft::stop_callback<throws> callback{source.token(), throws{}};
  };
  const auto throws_a_number = [] {
    stop_source source;
    const weft::stop_callback callback{source.token(), [] { throw 7; }};
    source.request_stop();
  };
  EXPECT_DEATH(throws_later(), "weft: the function of a stop_callback threw, where nobody could catch it: oh no");
  EXPECT_DEATH(throws_at_once(), "weft: the function of a stop_callback threw, where nobody could catch it: oh no");
  EXPECT_DEATH(throws_a_number(), "weft: the function of a stop_callback threw, .*, and no std::exception");
}

TEST_F(misuse, callbacks_that_throw) {
  const auto of_start = [] { weft::start(number(1), [](result<int>) { throw std::runtime_error{"oh no"}; }); };
  EXPECT_DEATH(of_start(), "weft: the callback of a start.. threw, where nobody could catch it: oh no");
  const auto of_cancel = [] {
    stop_source source;
    auto never = [](weft::callback<int>) {};
    auto cancel = [] { throw std::runtime_error{"oh no"}; };
    auto waits = [&]() -> task<int> { co_return co_await weft::from_callback<int>(never, cancel); };
    weft::start(waits(), [](result<int>) noexcept {}, source.token());
    source.request_stop();
  };
  EXPECT_DEATH(of_cancel(), "weft: the cancel function of a from_callback threw, .*: oh no");
}

// ---- waits that nobody could end ------------------------------------------------------------------------------------------

// Forks whose views the others have, once all are there.
task<> await_in_a_ring(int count) {
  weft::event all_there;
  std::vector<weft::fork_view<int>> views;
  auto awaits = [&](std::size_t which) -> task<int> {
    co_await all_there.wait();
    co_return co_await views[which];
  };
  auto body = [&](weft::scope& s) -> task<> {
    std::vector<weft::fork<int>> forks;
    for (int i = 0; i != count; ++i) {
      forks.push_back(s.fork(awaits, static_cast<std::size_t>((i + 1) % count)));
      views.push_back(forks.back().view());
    }
    all_there.set();
    co_return;
  };
  co_await weft::with_scope(body);
}

TEST_F(misuse, forks_that_wait_for_themselves) {
  EXPECT_DEATH(sync_wait(await_in_a_ring(1)), "weft: a fork awaited itself, by its own handle or view");
  EXPECT_DEATH(sync_wait(await_in_a_ring(2)), "weft: a fork awaited another one that waits for its end");
  EXPECT_DEATH(sync_wait(await_in_a_ring(5)), "weft: a fork awaited another one that waits for its end");
}

// Each in a scope of its own, so that none of these can see all.
task<> await_in_a_ring_of_scopes(std::size_t count, bool in_fibers) {
  weft::event all_there;
  std::vector<weft::fork_view<int>> views(count);
  std::size_t there = 0;
  auto one = [&](std::size_t which) -> task<> {
    auto awaits = [&]() -> task<int> {
      co_await all_there.wait();
      co_return co_await views[(which + 1) % count];
    };
    auto awaits_in_a_fiber = [&] {
      weft::await(all_there.wait());
      return int{weft::await(views[(which + 1) % count])};
    };
    auto body = [&](weft::scope& s) -> task<> {
      views[which] = (in_fibers ? s.go(awaits_in_a_fiber) : s.fork(awaits)).view();
      if (++there == count) all_there.set();
      co_return;
    };
    co_await weft::with_scope(body);
  };
  auto all = [&](weft::scope& s) -> task<> {
    for (std::size_t i = 0; i != count; ++i) s.fork(one, i);
    co_return;
  };
  co_await weft::with_scope(all);
}

TEST_F(misuse, forks_of_several_scopes_that_wait_for_each_other) {
  const char* const says = "weft: a fork awaited another one that waits for its end";
  for (const bool in_fibers : {false, true}) {
    EXPECT_DEATH(sync_wait(await_in_a_ring_of_scopes(2, in_fibers)), says);
    EXPECT_DEATH(sync_wait(await_in_a_ring_of_scopes(5, in_fibers)), says);
  }
}

// Rows from scope to scope, on threads that look at each other's.
TEST_F(misuse, rows_of_waits_over_scopes_are_no_ring) {
  const weft::pool p{{.threads = 3}};
  auto whole = []() -> task<int> {
    auto outer = [](weft::scope& far) -> task<int> {
      auto inner = [&](weft::scope& near) -> task<int> {
        auto first = []() -> task<int> {
          co_await weft::yield();
          co_return 1;
        };
        auto next = [](weft::fork_view<int> before) -> task<int> { co_return 1 + co_await before; };
        auto row = far.fork(first).view();
        for (int i = 0; i != 50; ++i) row = (i % 2 == 0 ? near : far).fork(next, row).view();
        co_return co_await row;
      };
      co_return co_await weft::with_scope(inner);
    };
    co_return co_await weft::with_scope(outer);
  };
  for (int round = 0; round != test::rounds(500); ++round)
    EXPECT_EQ(sync_wait(weft::start_on(p.executor(), whole())), 51);
}

// Who was woken by the stop of a scope awaits one of its forks that awaits him, and that this stop has not reached yet.
TEST_F(misuse, a_ring_that_a_stop_is_about_to_break_is_none) {
  weft::inline_executor here;
  weft::fork_view<int> first, second;
  weft::stop_token told;
  weft::event there;
  auto waits = [&]() -> task<int> {
    told = weft::current_env().stop;
    co_await there.wait();
    auto other = std::move(second);
    co_return co_await other;
  };
  auto waits_for_the_stop = [&]() -> task<int> {
    co_await there.wait();
    co_await weft::select(weft::on_stop(told));
    auto other = std::move(first);
    co_return co_await other;
  };
  auto body = [&](weft::scope& s) -> task<int> {
    first = s.fork(waits).view();
    second = s.fork(waits_for_the_stop).view();
    there.set();
    co_await weft::yield();  // they wait now
    std::thread{[&] { s.request_stop(); }}.join();
    co_return 1;
  };
  EXPECT_EQ(sync_wait(weft::with_scope({.executor = &here}, body)), 1);
}

// The first of a long row waits once more, when all others wait for it: who looks for a ring does not follow the whole row.
TEST_F(misuse, a_long_row_of_waits_is_no_ring) {
  weft::event all_there, at_last;
  auto waits = [](weft::event& for_it) -> task<int> {
    co_await for_it.wait();
    co_return 1;
  };
  auto first = [&](weft::fork_view<int> last) -> task<int> {
    co_await all_there.wait();
    co_return co_await last;
  };
  auto next = [](weft::fork_view<int> before) -> task<int> { co_return 1 + co_await before; };
  auto body = [&](weft::scope& s) -> task<int> {
    auto last = s.fork(waits, std::ref(at_last)).view();
    auto row = s.fork(first, last).view();
    for (int i = 0; i != 400'000; ++i) row = s.fork(next, row).view();
    auto sets = [&]() -> task<> {
      all_there.set();
      co_await weft::yield();
      at_last.set();
    };
    auto setting = s.fork(sets());
    co_return co_await row;
  };
  EXPECT_EQ(sync_wait(weft::with_scope(body)), 400'001);
}

TEST_F(misuse, a_shared_task_that_awaits_itself) {
  const auto run = [] {
    weft::shared_task<int>* self = nullptr;
    auto awaits = [&]() -> weft::shared_task<int> { co_return co_await *self; };
    weft::shared_task<int> one = awaits();
    self = &one;
    sync_wait(one);
  };
  EXPECT_DEATH(run(), "weft: a shared_task awaited itself, by a copy of its own handle");
}

TEST_F(misuse, a_future_that_a_task_blocks_for) {
  auto blocks = []() -> task<int> {
    weft::promise<int> never;
    co_return never.get_future().get();
  };
  EXPECT_DEATH(sync_wait(blocks()),
               "weft: get.. or wait.. of a future was called inside a task, .*: co_await the future");
}

// ---- functions that must not throw, and threads that must not end -----------------------------------------------------------

TEST_F(misuse, a_handler_that_throws) {
  const auto of_scope = [] {
    auto fails = []() -> task<> {
      throw std::runtime_error{"first"};
      co_return;
    };
    auto body = [&](weft::scope& s) -> task<> {
      s.fork(fails);
      co_return;
    };
    auto throws = [](std::exception_ptr) { throw std::runtime_error{"oh no"}; };
    sync_wait(weft::with_scope({.on_error = throws}, body));
  };
  EXPECT_DEATH(of_scope(), "weft: the .on_error handler of a scope threw, where nobody could catch it: oh no");
  const auto of_overdue_scope = [] {
    weft::new_thread_executor threads;
    std::atomic<bool> runs{false};
    auto body = [&](weft::scope& s) -> task<> {
      s.fork_on(threads, [&]() -> task<> {
        for (runs = true;;) std::this_thread::yield();
        co_return;
      });
      while (!runs) std::this_thread::yield();
      s.request_stop();
      co_return;
    };
    auto throws = [](const weft::overdue_scope&) { throw std::runtime_error{"too late"}; };
    sync_wait(weft::with_scope({.stop_within = std::chrono::milliseconds{1}, .on_overdue = throws}, body));
  };
  EXPECT_DEATH(of_overdue_scope(), "weft: the .on_overdue handler of a scope threw, .* catch it: too late");
  const auto of_pool = [] {
    const weft::pool p{{.threads = 1, .on_start = [](unsigned, void*) { throw std::runtime_error{"oh no"}; }}};
  };
  EXPECT_DEATH(of_pool(), "weft: a function of pool_options .* threw, where nobody could catch it: oh no");
}

TEST_F(misuse, a_thread_that_ends_in_a_task_or_fiber) {
  const char* const says = "weft: a thread was to end .pthread_exit, pthread_cancel. in the middle of a task or fiber";
  const auto in_task = [] {
    auto ends = []() -> task<> {
      ::pthread_exit(nullptr);
      co_return;
    };
    const weft::pool p{{.threads = 1}};
    sync_wait(weft::start_on(p.executor(), ends()));
  };
  EXPECT_DEATH(in_task(), says);
  const auto in_fiber = [] {
    auto ends = [] { ::pthread_exit(nullptr); };
    auto body = [&](weft::scope& s) -> task<> {
      s.go(ends);
      co_return;
    };
    const weft::pool p{{.threads = 1}};
    sync_wait(weft::with_scope({.executor = &p.executor()}, body));
  };
  EXPECT_DEATH(in_fiber(), says);
  const auto in_coroutine = [] {
    weft::coroutine<void()> one{[](auto&) { ::pthread_exit(nullptr); }};
    one.resume();
  };
  EXPECT_DEATH(in_coroutine(), says);
}

TEST_F(misuse, is_said_once_by_whom) {
  const auto twice = [] {
    auto numbers = []() -> weft::generator<int> { co_yield 1; };
    auto one = numbers();
    auto other = std::move(one);
    static_cast<void>(one.begin());  // NOLINT(bugprone-use-after-move): that is the misuse
  };
  EXPECT_DEATH(twice(), "^weft: begin.. of a generator that was moved from");
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
