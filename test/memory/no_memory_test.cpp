#include <gtest/gtest.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <weft/test.hpp>
#include <weft/weft.hpp>

#include "support/weft_test.hpp"

// Destructors and noexcept functions do without memory: each kind of object is destroyed, closed or stopped where every
// operator new of the thread fails. One that asks for memory ends the program here.

namespace {

namespace w = weft;
using namespace std::chrono_literals;
using w::test::no_memory;

/// Calls it without memory.
template <class F>
void starved(F f) {
  const no_memory none;
  f();
}

/// Destroys what is in `one` without memory.
template <class T>
void destroy_starved(std::optional<T>& one) {
  starved([&] { one.reset(); });
}

/// How something started ended: filled in by its callback, with memory or without.
enum class end { none, value, bad_alloc, other, stopped };
template <class T>
end end_of(const w::result<T>& how) {
  if (how.is_stopped()) return end::stopped;
  if (how.has_value()) return end::value;
  try {
    std::rethrow_exception(how.exception());
  } catch (const std::bad_alloc&) {
    return end::bad_alloc;
  } catch (...) {
    return end::other;
  }
}
template <class T>
auto notes_end(end& into) {
  return [&into](const w::result<T>& how) { into = end_of(how); };
}

bool is_replaced() {  // whether there is something to see here
  const no_memory none;
  return ::operator new(1, std::nothrow) == nullptr;
}
#define SKIP_WITH_FOREIGN_NEW() \
  if (!is_replaced()) GTEST_SKIP() << "another operator new"

// ---- promise and future ---------------------------------------------------------------------------------------------

template <class T>
void expect_broken_promise_is_bad_alloc() {
  std::optional<w::promise<T>> one{std::in_place};
  auto outcome = one->get_future();
  destroy_starved(one);
  EXPECT_THROW((void)std::move(outcome).get(), std::bad_alloc);
}

TEST(no_memory, a_promise_that_is_destroyed_unset) {
  SKIP_WITH_FOREIGN_NEW();
  expect_broken_promise_is_bad_alloc<int>();
  expect_broken_promise_is_bad_alloc<void>();
  expect_broken_promise_is_bad_alloc<int&>();
  expect_broken_promise_is_bad_alloc<std::string>();
}

TEST(no_memory, a_promise_that_somebody_waits_for) {
  SKIP_WITH_FOREIGN_NEW();
  std::optional<w::promise<int>> one{std::in_place};
  end how = end::none;
  w::start([](w::future<int> of) -> w::task<int> { co_return co_await std::move(of); }(one->get_future()),
           notes_end<int>(how));
  destroy_starved(one);
  EXPECT_EQ(how, end::bad_alloc);
}

TEST(no_memory, a_promise_is_set) {
  SKIP_WITH_FOREIGN_NEW();
  w::promise<int> value, failure, stop;
  auto first = value.get_future();
  auto second = failure.get_future();
  auto third = stop.get_future();
  const auto thrown = std::make_exception_ptr(std::runtime_error{"thrown"});
  starved([&] {
    value.set_value(1);
    failure.set_exception(thrown);
    stop.set_stopped();
  });
  EXPECT_EQ(std::move(first).get(), 1);
  EXPECT_THROW((void)std::move(second).get(), std::runtime_error);
  EXPECT_THROW((void)std::move(third).get(), w::stopped);
}

TEST(no_memory, a_future_is_dropped_before_and_after) {
  SKIP_WITH_FOREIGN_NEW();
  w::promise<std::string> one, two;
  std::optional<w::future<std::string>> first{one.get_future()}, second{two.get_future()};
  two.set_value("set");
  destroy_starved(first);
  destroy_starved(second);
}

TEST(no_memory, as_future_throws_bad_alloc) {
  SKIP_WITH_FOREIGN_NEW();
  auto one = []() -> w::task<int> { co_return 1; };
  auto work = one();
  bool thrown = false;
  starved([&] {
    try {
      static_cast<void>(w::as_future(std::move(work)));
    } catch (const std::bad_alloc&) {
      thrown = true;
    }
  });
  EXPECT_TRUE(thrown);
}

// ---- channels -------------------------------------------------------------------------------------------------------

TEST(no_memory, a_channel_is_closed_with_receivers_and_senders_in_line) {
  SKIP_WITH_FOREIGN_NEW();
  w::channel<int> empty{1}, full{1};
  ASSERT_TRUE(full.try_send(0));
  end received = end::none, sent = end::none;
  w::start([](w::channel<int>& from) -> w::task<bool> { co_return !(co_await from.receive()); }(empty),
           notes_end<bool>(received));
  w::start([](w::channel<int>& to) -> w::task<bool> { co_return (co_await to.send(1), true); }(full),
           notes_end<bool>(sent));
  starved([&] {
    empty.close();
    full.close();
  });
  EXPECT_EQ(received, end::value);
  EXPECT_TRUE(sent == end::other || sent == end::bad_alloc);  // channel_closed, whose text wants memory
}

TEST(no_memory, a_channel_with_values_is_destroyed) {
  SKIP_WITH_FOREIGN_NEW();
  std::optional<w::channel<std::unique_ptr<int>>> bounded{std::in_place, 4}, all{std::in_place, w::unbounded};
  for (int i = 0; i != 3; ++i) {
    ASSERT_TRUE(bounded->try_send(std::make_unique<int>(i)));
    ASSERT_TRUE(all->try_send(std::make_unique<int>(i)));
  }
  destroy_starved(bounded);
  destroy_starved(all);
}

TEST(no_memory, a_broadcast_and_a_watch_are_closed_and_destroyed) {
  SKIP_WITH_FOREIGN_NEW();
  std::optional<w::broadcast<int>> all{std::in_place};
  std::optional<w::watch<int>> last{std::in_place, 1};
  end of_all = end::none;
  {
    auto receives = [](w::broadcast<int>& from) -> w::task<bool> {
      auto mine = from.subscribe();
      co_return !(co_await mine.receive());
    };
    w::start(receives(*all), notes_end<bool>(of_all));
  }
  starved([&] {
    all->close();
    last->close();
    all.reset();
    last.reset();
  });
  EXPECT_EQ(of_all, end::value);
}

TEST(no_memory, a_batcher_is_destroyed_with_calls_in_line) {
  SKIP_WITH_FOREIGN_NEW();
  auto all = []() -> w::task<> {
    auto body = [](w::scope& s) -> w::task<> {
      auto call = [](std::vector<int> in) -> w::task<std::vector<int>> { co_return in; };
      std::optional<w::batcher<int, int>> some{std::in_place, s, call};
      auto asked = s.fork((*some)(7));
      starved([&] { some.reset(); });
      EXPECT_EQ(co_await std::move(asked), 7);
    };
    co_await w::with_scope(body);
  };
  w::sync_wait(all());
}

// ---- what stops -----------------------------------------------------------------------------------------------------

TEST(no_memory, a_stop_of_whatever_waits) {
  SKIP_WITH_FOREIGN_NEW();
  w::stop_source source;
  w::mutex mutex;
  w::semaphore none{0};
  w::event shut;
  w::channel<int> empty{1};
  w::promise<int> unset;
  auto later = unset.get_future();
  auto held = mutex.try_lock();
  ASSERT_TRUE(held);
  std::vector<end> ends(9, end::none);
  const auto start = [&](std::size_t i, w::task<> work) {
    w::start(std::move(work), notes_end<void>(ends[i]), source.token());
  };
  auto in_scope = [](w::event& shut) -> w::task<> {
    auto body = [&](w::scope& s) -> w::task<> {
      for (int i = 0; i != 3; ++i) s.fork([](w::event& shut) -> w::task<> { co_await shut.wait(); }, std::ref(shut));
      co_await shut.wait();
    };
    co_await w::with_scope({.stop_within = 1h}, body);
  };
  auto shared = [](w::event& shut) -> w::shared_task<> { co_await shut.wait(); };
  start(0, [](w::mutex& m) -> w::task<> { (void)co_await m.lock(); }(mutex));
  start(1, [](w::semaphore& s) -> w::task<> { (void)co_await s.acquire(); }(none));
  start(2, [](w::event& e) -> w::task<> { co_await e.wait(); }(shut));
  start(3, [](w::channel<int>& c) -> w::task<> { (void)co_await c.receive(); }(empty));
  start(4, [](w::future<int> f) -> w::task<> { (void)co_await std::move(f); }(std::move(later)));
  start(5, []() -> w::task<> { co_await w::sleep_for(1h); }());
  start(6, in_scope(shut));
  start(7, [](w::shared_task<> s) -> w::task<> { co_await s; }(shared(shut)));
  start(8, [](w::event& e) -> w::task<> { (void)co_await w::when_any(e.wait(), w::sleep_for(1h)); }(shut));
  starved([&] {
    static_cast<void>(source.request_stop());
    held.unlock();
  });
  for (const end how : ends) EXPECT_EQ(how, end::stopped);
}

TEST(no_memory, a_scope_whose_forks_fail_ends) {
  SKIP_WITH_FOREIGN_NEW();
  end how = end::none;
  w::event go;
  auto fails = [](w::event& go, const std::exception_ptr& with) -> w::task<> {
    co_await go.wait();
    std::rethrow_exception(with);
  };
  const auto failure = std::make_exception_ptr(std::runtime_error{"failed"});
  auto all = [&](w::scope& s) -> w::task<> {
    for (int i = 0; i != 3; ++i) s.fork(fails, std::ref(go), std::cref(failure));
    co_await go.wait();
  };
  const auto before = w::set_lost_error_handler([](const char*, const std::exception_ptr&) noexcept {});
  w::start(w::with_scope(all), notes_end<void>(how));
  starved([&] { go.set(); });
  w::set_lost_error_handler(before);
  EXPECT_EQ(how, end::other);
}

TEST(no_memory, an_error_that_nobody_takes_is_told) {
  SKIP_WITH_FOREIGN_NEW();
  const auto failure = std::make_exception_ptr(std::runtime_error{"lost"});
  testing::internal::CaptureStderr();
  starved([&] { w::detail::lose_error("a test", failure); });
  EXPECT_NE(testing::internal::GetCapturedStderr().find("a test: a failure came too late to be thrown: lost"),
            std::string::npos);
}

TEST(no_memory, a_scope_that_is_overdue_is_told) {
  SKIP_WITH_FOREIGN_NEW();
  w::stop_source source;
  static_cast<void>(source.request_stop());
  const w::overdue_scope late{.where = std::source_location::current(),
                              .cause = *source.cause(),
                              .waited = 1s,
                              .ignoring = 1,
                              .children = std::vector<w::overdue_child>(1)};
  const w::overdue_handler prints;
  testing::internal::CaptureStderr();
  starved([&] { prints(late); });
  EXPECT_NE(testing::internal::GetCapturedStderr().find("there is no memory to say more"), std::string::npos);
}

// ---- what is destroyed where it stands ------------------------------------------------------------------------------

TEST(no_memory, tasks_generators_and_coroutines_are_destroyed) {
  SKIP_WITH_FOREIGN_NEW();
  auto counts = []() -> w::generator<int> {
    const std::string local(100, 'x');
    for (int i = 0;; ++i) co_yield i;
  };
  auto nests = [](auto& counts) -> w::generator<int> { co_yield w::elements_of(counts()); };
  auto waits = []() -> w::async_generator<std::string> {
    for (;;) co_yield std::string(100, 'x');
  };
  std::optional<w::generator<int>> flat{counts()}, nested{nests(counts)};
  flat->begin();
  nested->begin();
  std::optional<w::async_generator<std::string>> stream{waits()};
  w::sync_wait([](w::async_generator<std::string>& from) -> w::task<> { (void)co_await from.next(); }(*stream));
  std::optional<w::coroutine<int()>> on_stack{[](auto& yield) {
    const std::string local(100, 'x');
    yield(1);
    return 2;
  }};
  EXPECT_EQ(on_stack->resume(), 1);
  std::optional<w::task<int>> unawaited{
      [](std::string s) -> w::task<int> { co_return s.size(); }(std::string(99, 'x'))};
  std::optional<w::shared_task<int>> shared{w::shared_task<int>{[]() -> w::task<int> { co_return 1; }()}};
  destroy_starved(flat);
  destroy_starved(nested);
  destroy_starved(stream);
  destroy_starved(on_stack);
  destroy_starved(unawaited);
  destroy_starved(shared);
}

TEST(no_memory, executors_and_pools_are_destroyed) {
  SKIP_WITH_FOREIGN_NEW();
  std::optional<w::pool> pool{std::in_place, w::pool_options{.threads = 2}};
  std::optional<w::strand> strand{std::in_place, pool->executor()};
  std::optional<w::worker_group> group{std::in_place, 2U};
  std::optional<w::blocking_pool> blocks{std::in_place};
  std::optional<w::manual_executor> loop{std::in_place};
  std::optional<w::registry> jobs{std::in_place};
  std::optional<w::stack_pool> stacks{std::in_place, w::stack_pool_options{}};
  std::optional<w::new_thread_executor> threads{std::in_place};
  EXPECT_EQ(w::sync_wait(blocks->run([] { return 1; })), 1);
  end on_pool = end::none, on_strand = end::none;
  auto number = []() -> w::task<int> { co_return 1; };
  w::event done;
  w::sync_wait(w::start_on(pool->executor(), number()));
  w::start(*strand, number(), [&](const w::result<int>& how) {
    on_strand = end_of(how);
    done.set();
  });
  w::sync_wait(done.wait());
  w::start(*loop, number(), notes_end<int>(on_pool));
  starved([&] {
    loop->run_all();
    loop.reset();
    jobs.reset();
    stacks.reset();
    threads.reset();
    blocks.reset();
    group.reset();
    strand.reset();
    pool.reset();
  });
  EXPECT_EQ(on_pool, end::value);
  EXPECT_EQ(on_strand, end::value);
}

TEST(no_memory, work_in_a_registry_is_stopped_and_ends) {
  SKIP_WITH_FOREIGN_NEW();
  w::registry jobs;
  w::event shut;
  auto all = [&](w::scope& s) -> w::task<> {
    auto waits = [](w::event& shut) -> w::task<> { co_await shut.wait(); };
    const auto one = jobs.fork({.limit = 1h}, s, waits, std::ref(shut)).id;
    starved([&] { EXPECT_TRUE(jobs.request_stop(one)); });
    EXPECT_EQ(co_await jobs.wait(one), w::work_end::stopped);
  };
  w::sync_wait(w::with_scope(all));
}

// ---- a thread -------------------------------------------------------------------------------------------------------

TEST(no_memory_death, a_thread_that_uses_weft_for_the_first_time_says_what_is_missing) {
  SKIP_WITH_FOREIGN_NEW();
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process in which no thread has ended, and left what it needed
  EXPECT_DEATH(std::thread([] { starved([] { static_cast<void>(w::current_env()); }); }).join(),
               "uses weft for the first time has no memory");
}

}  // namespace
