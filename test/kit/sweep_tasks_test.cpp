// Every await of tasks, futures, callbacks, generators and pipes, with a stop at each place, and without memory.
#include <weft/future.hpp>
#include <weft/generator.hpp>
#include <weft/task.hpp>
#include <weft/time.hpp>

#include <chrono>
#include <coroutine>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/from_callback.hpp>
#include <weft/nothrow.hpp>
#include <weft/on_scope_exit.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>
#include <weft/shared_task.hpp>
#include <weft/with.hpp>

#include "support/sweep.hpp"

namespace {

using namespace test::in_sweeps;
using weft::sleep_for;
using weft::when_all;

// ---- tasks ------------------------------------------------------------------------------------------------------------

task<int> deeper(counts_values& of, int depth) {
  const counted held = of.value();
  if (depth == 0) co_return co_await nap(1);
  const int below = co_await deeper(of, depth - 1);
  co_await rest(1);
  co_return below + 1;
}

template <class By>
struct tasks : counts_values {
  part<By> run() {
    require(co_await deeper(*this, 3) == 4, "a value was lost");
    auto named = make(*this, 1);
    const counted got = co_await std::move(named);
    co_await weft::sleep_until(weft::current_clock().now() + 1ms);
    co_await sleep_for(0ms);
  }
};
TEST(sweep, task) { sweep_both<tasks>("task, sleep_for, sleep_until"); }

// A tick that a stop has not let come is the next one's.
template <class By>
struct takes_ticks {
  weft::interval every{3ms, weft::missed_ticks::burst};
  int taken = 0;
  part<By> run() {
    for (int i = 0; i != 3; ++i) {
      const auto due = co_await every.next();
      ++taken;
      require(due == weft::test::virtual_clock::begin() + taken * 3ms, "a tick was lost, or came twice");
      co_await rest(i == 1 ? 5 : 1);
    }
  }
};
TEST(sweep, interval) { sweep_both<takes_ticks>("interval::next"); }

template <class By>
struct fails : counts_values {
  task<> body() {
    const counted held = value();
    co_await rest(1);
    co_await fail(1);
  }
  part<By> run() {
    bool caught = false;
    try {
      co_await body();
    } catch (const std::runtime_error&) {
      caught = true;
    }
    require(caught, "an exception was lost");
    co_await rest(1);
  }
};
TEST(sweep, failing_task) { sweep_both<fails>("task"); }

template <class By>
struct results : counts_values {
  part<By> run() {
    auto kept = co_await as_result(make(*this, 1));
    if (kept.has_value()) co_await rest(1);
    auto failed = co_await as_result(fail(1));
    require(failed.is_stopped() || failed.exception() != nullptr, "a failure was lost");
    co_await rest(1);
  }
};
TEST(sweep, as_result) { sweep_both<results>("as_result"); }

template <class By>
struct shared : counts_values {
  part<By> reads(weft::shared_task<counted> from, int after) {
    co_await rest(after);
    const counted& got = co_await from;
    static_cast<void>(got);
    co_await rest(1);
  }
  part<By> run() {
    weft::shared_task<counted> one{make(*this, 3)};
    co_await together(reads(one, 1), reads(one, 2), reads(one, 5));
  }
};
TEST(sweep, shared_task) { sweep_both<shared>("shared_task"); }

// In a fiber, where a failure is thrown, the tasks that it awaits hand it on so.
template <class By>
struct hands_on : counts_values {
  task<int> refuses() {
    const counted held = value();
    co_await rest(1);
    const std::runtime_error why{"as planned"};
    co_await weft::fail_with(why);
    co_return 0;
  }
  task<int> passes() {
    const counted held = value();
    const counted before = co_await weft::nothrow(make(*this, 1));
    co_return co_await weft::nothrow(refuses());
  }
  part<By> run() {
    auto failed = co_await as_result(passes());
    require(failed.is_stopped() || failed.exception() != nullptr, "a failure was lost");
    auto again = [&failed]() -> task<> { co_await weft::fail_with(failed.exception()); };
    if (!failed.is_stopped()) {
      const auto same = co_await as_result(again());
      require(same.is_stopped() || same.exception() != nullptr, "a failure was lost");
    }
    co_await rest(1);
  }
};
TEST(sweep, nothrow) { sweep_both<hands_on>("nothrow, fail_with, fail_with(failure)"); }

template <class By>
struct cleans_up {
  int registered = 0, cleaned = 0;
  task<> clean() {
    co_await sleep_for(2ms);  // not rest(): a cleanup must not fail, so it allocates nothing but its frame
    ++cleaned;
  }
  task<> body() {
    ++registered;
    try {
      co_await weft::on_scope_exit(clean());
    } catch (...) {
      --registered;
      throw;
    }
    co_await rest(1);
  }
  part<By> run() {
    co_await body();
    co_await rest(1);
  }
  void check() const { require(registered == cleaned, "a cleanup was lost, or came twice"); }
};
// The same by a function, with an argument.
template <class By>
struct cleans_up_by_a_function : counts_values {
  int registered = 0, cleaned = 0;
  task<> body() {
    auto clean = [this](const counted&) {  // no coroutine, whose frame might lack memory
      ++cleaned;
      return sleep_for(2ms);
    };
    ++registered;
    try {
      co_await weft::on_scope_exit(clean, value());
    } catch (...) {
      --registered;
      throw;
    }
    co_await rest(1);
  }
  part<By> run() {
    co_await body();
    co_await rest(1);
  }
  void check() const {
    counts_values::check();
    require(registered == cleaned, "a cleanup was lost, or came twice");
  }
};
TEST(sweep, on_scope_exit_by_a_function) { sweep_both<cleans_up_by_a_function>("on_scope_exit(args)"); }

TEST(sweep, on_scope_exit) { sweep_both<cleans_up>("on_scope_exit"); }

template <class By>
struct yields : counts_values {
  part<By> run() {
    const counted held = value();
    co_await weft::yield();
    co_await weft::check_stop();
    co_await together(other(), other());
    co_await weft::check_stop();
  }
  part<By> other() {
    const counted held = value();
    for (int i = 0; i != 3; ++i) co_await weft::yield();
  }
};
TEST(sweep, yield) { sweep_both<yields>("yield, check_stop"); }

// ---- elsewhere ----------------------------------------------------------------------------------------------------------

struct hops : counts_values {
  weft::inline_executor elsewhere;
  task<int> leg() {
    const counted held = value();
    co_await weft::resume_on(elsewhere);
    co_await rest(1);
    co_return 1;
  }
  task<> run() {
    require(co_await leg() == 1, "a value was lost");
    auto there = nap(1) | weft::start_on(elsewhere);
    co_await std::move(there);
    co_await weft::start_on(elsewhere, hold(*this, 1));
    auto on = nap(1) | weft::continue_on(elsewhere);
    co_await std::move(on);
    co_await rest(1);
  }
};
TEST(sweep, hops) { sweep<hops>("resume_on, start_on, start_on(ex), continue_on"); }

// The same over real threads: what the sweeps see is another run each time.
template <class By>
struct hops_to_threads : counts_values {
  weft::new_thread_executor elsewhere;
  task<int> leg() {
    const counted held = value();
    co_await weft::resume_on(elsewhere);
    co_await weft::yield();
    co_return 1;
  }
  part<By> run() {
    require(co_await leg() == 1, "a value was lost");
    co_await weft::start_on(elsewhere, leg());
    co_await rest(1);
  }
};
TEST(sweep, hops_to_threads) { sweep_both<hops_to_threads>("start_on", {.inline_completion = false}); }

// ---- futures and callbacks ------------------------------------------------------------------------------------------------

template <class By>
struct futures : counts_values {
  task<> sets(weft::promise<counted> one, weft::promise<> two) {
    // Arguments live as long as their frame, in when_all until the siblings have ended; who waits for these is one.
    auto first = std::move(one);
    auto second = std::move(two);
    co_await rest(2);
    first.set_value(value());
    co_await rest(2);
    second.set_value();
  }
  task<> takes(weft::future<counted> one, weft::future<> two) {
    co_await std::move(one);
    co_await std::move(two);
    co_await weft::make_ready_future(1);
    auto failed = weft::make_exceptional_future<int>(std::runtime_error{"as planned"});
    const auto how = co_await as_result(std::move(failed));
    require(how.exception() != nullptr, "a failure was lost");
    co_await weft::make_ready_future();
  }
  part<By> run() {
    weft::promise<counted> first;
    weft::promise<> second;
    auto one = first.get_future();
    auto two = second.get_future();
    auto setter = sets(std::move(first), std::move(second));
    auto taker = takes(std::move(one), std::move(two));
    co_await when_all(std::move(setter), std::move(taker));
  }
  void check(const weft::result<void>& how) {
    counts_values::check();
    require(!how.exception() || how.error() == weft::errc::broken_promise || test::lacked_memory(how),
            "it failed otherwise");
  }
};
TEST(sweep, future) {
  sweep_both<futures>("future, promise::get_future, make_ready_future, make_ready_future(), make_exceptional_future");
}

template <class By>
struct shared_futures : counts_values {
  task<> reads(weft::shared_task<counted> from, int after) {
    co_await rest(after);
    const counted& got = co_await from;
    static_cast<void>(got);
    co_await rest(1);
  }
  task<> sets(weft::promise<counted> from) {
    auto one = std::move(from);  // as above
    co_await rest(3);
    one.set_value(value());
  }
  part<By> run() {
    weft::promise<counted> promise;
    const auto all = promise.get_future().share();
    auto setter = sets(std::move(promise));
    auto early = reads(all, 1);
    auto late = reads(all, 5);
    co_await when_all(std::move(setter), std::move(early), std::move(late));
    const counted& again = co_await all;
    static_cast<void>(again);
  }
  void check(const weft::result<void>& how) {
    counts_values::check();
    require(!how.exception() || how.error() == weft::errc::broken_promise || test::lacked_memory(how),
            "it failed otherwise");
  }
};
TEST(sweep, shared_future) { sweep_both<shared_futures>("future::share"); }

// Who drops a future stops nothing: what it is of goes on, by itself.
template <class By>
struct goes_on : counts_values {
  weft::inline_executor there;
  task<int> slow() {
    const counted held = value();
    co_await weft::resume_on(there);
    co_await weft::yield();
    co_return 1;
  }
  part<By> run() {
    auto twice = [](int n) { return 2 * n; };
    auto later = [](int n) { return nap(0, n); };
    auto one = weft::as_future(slow()).then(twice).then(later);
    co_await rest(1);
    require(co_await std::move(one) == 2, "a value was lost");
  }
};
TEST(sweep, as_future) { sweep_both<goes_on>("as_future, future::then"); }

// Who has asked gets an answer whatever becomes of the task that gives it, which is no fiber: one may lack memory to begin.
struct asked : counts_values {
  std::optional<weft::callback<counted>> pending;
  struct answers_at_end {
    asked& of;
    ~answers_at_end() {
      if (of.pending) std::exchange(of.pending, std::nullopt)->operator()(of.value());
    }
  };
};

template <class By>
struct calls_back : asked {
  task<> answers() {
    const answers_at_end always{*this};
    co_await weft::shielded(rest(2));
  }
  part<By> asks() {
    auto begin = [this](weft::callback<counted> done) { pending = done; };
    co_await weft::from_callback<counted>(begin);
    co_await rest(1);
  }
  part<By> run() { co_await together(asks(), answers()); }
};
TEST(sweep, from_callback) { sweep_both<calls_back>("from_callback", {.each_alone = false}); }

template <class By>
struct calls_back_on_cancel : asked {
  task<> answers() {
    const answers_at_end always{*this};
    co_await rest(2);
  }
  part<By> asks() {
    auto begin = [this](weft::callback<counted> done) { pending = done; };
    auto cancel = [this] {
      if (pending) std::exchange(pending, std::nullopt)->set_stopped();
    };
    co_await weft::from_callback<counted>(begin, cancel);
    co_await rest(1);
  }
  part<By> run() { co_await together(asks(), answers()); }
};
TEST(sweep, from_callback_with_cancel) {
  sweep_both<calls_back_on_cancel>("from_callback(cancel)", {.other_thread = false, .each_alone = false});
}

// ---- awaitables of others ---------------------------------------------------------------------------------------------------

// Resumes at a virtual time, and knows nothing of weft.
struct foreign_timer : weft::timer {
  explicit foreign_timer(weft::clock& by)
      : timer{[](timer& self) noexcept { static_cast<foreign_timer&>(self).who.resume(); }}, by{by} {}
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> caller) {
    who = caller;
    by.arm(*this, by.now() + 1ms);
  }
  void await_resume() const noexcept {}

  weft::clock& by;
  std::coroutine_handle<> who;
};

template <class By>
struct foreigners : counts_values {
  part<By> run() {
    const counted held = value();
    foreign_timer one{weft::current_clock()};
    co_await one;
    co_await rest(1);
  }
};
TEST(sweep, foreign_awaitable) { sweep_both<foreigners>("task"); }

// ---- generators -----------------------------------------------------------------------------------------------------------

weft::async_generator<int> numbers(counts_values& of, int count) {
  const counted held = of.value();
  for (int i = 1; i <= count; ++i) {
    co_await rest(1);
    co_yield i;
  }
}

template <class By>
struct generates : counts_values {
  part<By> run() {
    int sum = 0;
    auto source = numbers(*this, 3);
    while (const int* one = co_await source.next()) sum += *one;
    require(sum == 6, "a value was lost");
    co_await rest(1);
  }
};
TEST(sweep, async_generator) { sweep_both<generates>("async_generator, async_generator::next"); }

template <class By>
struct adapts : counts_values {
  part<By> run() {
    auto plus = [](int n) { return nap(1, n + 1); };
    auto even = [](int n) { return n % 2 == 0; };
    auto all = weft::concat(numbers(*this, 3), numbers(*this, 2)) | weft::transform(plus) | weft::filter(even) |
               weft::take(2) | weft::collect();
    const std::vector<int> got = co_await std::move(all);
    require(got == std::vector{2, 4}, "a value was lost");
    require(co_await weft::accumulate(numbers(*this, 2), 0) == 3, "a value was lost");
    int seen = 0;
    auto count = [&seen](int) { ++seen; };
    auto each = numbers(*this, 2) | weft::for_each(count);
    co_await std::move(each);
    require(seen == 2, "a value was lost");
  }
};
TEST(sweep, adaptors_of_generators) {
  sweep_both<adapts>("concat, transform, filter, take, collect(), accumulate, for_each");
}

// The other forms of some of them.
template <class By>
struct adapts_otherwise : counts_values {
  part<By> run() {
    auto sum = numbers(*this, 2) | weft::accumulate(1, std::plus<>{});
    require(co_await std::move(sum) == 4, "a value was lost");
    std::vector<weft::async_generator<int>> two;
    for (int i = 1; i <= 2; ++i) two.push_back(numbers(*this, i));
    const std::vector<int> both = co_await weft::collect(weft::concat(std::move(two)));
    require(both == std::vector{1, 1, 2}, "a value was lost");
  }
};
TEST(sweep, other_adaptors_of_generators) {
  sweep_both<adapts_otherwise>("concat(sources), collect, accumulate(init)");
}

template <class By>
struct merges : counts_values {
  part<By> run() {
    int seen = 0;
    auto slow = [&seen](int) -> task<> {
      co_await rest(1);
      ++seen;
    };
    auto all = weft::merge(numbers(*this, 2), numbers(*this, 3)) | weft::for_each(slow);
    co_await std::move(all);
    require(seen == 5, "a value was lost");
    auto some = weft::merge(numbers(*this, 1), numbers(*this, 2)) | weft::collect();
    const auto collected = co_await std::move(some);
    require(collected.size() == 3, "a value was lost");
    std::vector<weft::async_generator<int>> two;
    for (int i = 1; i <= 2; ++i) two.push_back(numbers(*this, i));
    const auto of_many = co_await weft::collect(weft::merge(std::move(two)));
    require(of_many.size() == 3, "a value was lost");
  }
};
TEST(sweep, merge) { sweep_both<merges>("merge, merge(sources), collect(sources)"); }

template <class By>
struct completes : counts_values {
  part<By> run() {
    int seen = 0;
    auto slow = [&seen](weft::completed<counted>) -> task<> {
      co_await rest(1);
      ++seen;
    };
    std::vector<task<counted>> tasks;
    for (const int after : {3, 1, 2}) tasks.push_back(make(*this, after));
    auto all = weft::as_completed(std::move(tasks)) | weft::for_each(slow);
    co_await std::move(all);
    require(seen == 3, "an outcome was lost");
  }
};
TEST(sweep, as_completed) { sweep_both<completes>("as_completed"); }

// ---- pipes ------------------------------------------------------------------------------------------------------------------

template <class By>
struct pipes : counts_values {
  part<By> run() {
    auto twice = [](int n) { return nap(1, 2 * n); };
    auto instead = [](const std::runtime_error&) { return nap(1, 7); };
    auto stopped_instead = [] { return 8; };
    auto good = hold(*this, 1) | weft::on_value(twice) | weft::then(twice);
    require(co_await std::move(good) == 4, "a value was lost");
    auto bad = fail(1) | weft::on_error(instead);
    require(co_await std::move(bad) == 7, "a failure was lost");
    auto stopped = nap(1, 1) | weft::on_stop(stopped_instead);
    const int how = co_await std::move(stopped);
    require(how == 1 || how == 8, "a value was lost");
    co_await rest(1);
  }
};
TEST(sweep, pipes) { sweep_both<pipes>("on_value, then, on_error, on_stop"); }

// ---- what goes on without its task ------------------------------------------------------------------------------------------

template <class By>
struct detaches : counts_values {
  part<By> run() {
    co_await weft::detach_on_stop(hold(*this, 5));
    auto called = [](counts_values* of) { return hold(*of, 2); };
    co_await weft::detach_on_stop(called, static_cast<counts_values*>(this));
    co_await rest(1);
  }
};
TEST(sweep, detach_on_stop) { sweep_both<detaches>("detach_on_stop, detach_on_stop(args)"); }

}  // namespace
