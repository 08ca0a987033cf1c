// Operations of Asio as tasks, and weft's pool as an executor of Asio. Included by boost_asio_test.cpp and
// standalone_asio_test.cpp, each with its `asio` and its `asio_adapter`.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <weft/combine.hpp>
#include <weft/env.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/timed.hpp>

#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::sync_wait;
using weft::task;
using weft::use_task;

// An io_context with a thread of its own.
class loop {
 public:
  loop() = default;
  loop(const loop&) = delete;
  ~loop() {
    work_.reset();
    thread_.join();
  }
  asio::io_context& operator*() noexcept { return context_; }
  std::thread::id thread() const noexcept { return thread_.get_id(); }

 private:
  asio::io_context context_;
  asio::executor_work_guard<asio::io_context::executor_type> work_ = asio::make_work_guard(context_);
  std::thread thread_{[this] { context_.run(); }};
};

// An operation of one's own: `acts` gets the handler.
template <class Signature, class F>
auto operation(F acts) {
  return asio::async_initiate<const weft::use_task_t, Signature>(std::move(acts), use_task);
}

// ---- operations as tasks ------------------------------------------------------------------------------------------------------

TEST(use_task, gives_what_the_operation_completes_with) {
  loop there;
  const auto body = [&]() -> task<> {
    asio::steady_timer timer{*there, 1ms};
    static_assert(std::is_same_v<decltype(timer.async_wait(use_task)), task<void>>);
    co_await timer.async_wait(use_task);
    const auto both = co_await operation<void(int, std::string)>([](auto handler) { handler(3, "three"); });
    EXPECT_EQ(both, std::tuple(3, std::string{"three"}));
    const auto owned =
        co_await operation<void(std::unique_ptr<int>)>([](auto handler) { handler(std::make_unique<int>(4)); });
    EXPECT_EQ(*owned, 4);
  };
  sync_wait(body());
}

TEST(use_task, nothing_happens_before_the_await) {
  bool has_begun = false;
  {
    [[maybe_unused]] auto never = operation<void()>([&](auto handler) {
      has_begun = true;
      handler();
    });
  }
  EXPECT_FALSE(has_begun);
}

TEST(use_task, bytes_over_a_connection) {
  loop there;
  using asio::ip::tcp;
  const auto body = [&]() -> task<> {
    tcp::acceptor listener{*there, {asio::ip::address_v4::loopback(), 0}};
    const auto serves = [&]() -> task<> {
      tcp::socket from = co_await listener.async_accept(use_task);
      std::string text(4, '\0');
      EXPECT_EQ(co_await asio::async_read(from, asio::buffer(text), use_task), 4U);
      co_await asio::async_write(from, asio::buffer(text + text), use_task);
    };
    const auto asks = [&]() -> task<> {
      tcp::socket to{*there};
      co_await to.async_connect(listener.local_endpoint(), use_task);
      co_await asio::async_write(to, asio::buffer("ping", 4), use_task);
      std::string text(8, '\0');
      co_await asio::async_read(to, asio::buffer(text), use_task);
      EXPECT_EQ(text, "pingping");
      const auto end = co_await weft::as_result(asio::async_read(to, asio::buffer(text), use_task));
      EXPECT_EQ(end.error(), std::error_code{asio::error::make_error_code(asio::error::eof)});
    };
    co_await when_all(serves(), asks());
  };
  sync_wait(body());
}

TEST(use_task, throws_what_the_operation_fails_with) {
  loop there;
  const auto body = [&]() -> task<> {
    asio::ip::tcp::socket to{*there};
    const auto refused = co_await weft::as_result(to.async_connect({asio::ip::address_v4::loopback(), 1}, use_task));
    EXPECT_EQ(refused.error(), std::errc::connection_refused);
    const auto throws = []() -> asio::awaitable<int> {
      throw std::out_of_range{"far"};
      co_return 1;
    };
    EXPECT_THROW(co_await asio::co_spawn(*there, throws(), use_task), std::out_of_range);
  };
  sync_wait(body());
}

TEST(use_task, awaits_an_awaitable) {
  loop there;
  weft::pool workers{{.threads = 2}};
  const auto body = [&]() -> task<> {
    const auto computes = [&]() -> asio::awaitable<std::string> {
      asio::steady_timer timer{co_await asio::this_coro::executor, 1ms};
      co_await timer.async_wait(asio::use_awaitable);
      EXPECT_EQ(std::this_thread::get_id(), there.thread());
      co_return "done";
    };
    EXPECT_EQ(co_await asio::co_spawn(*there, computes(), use_task), "done");
    EXPECT_EQ(weft::current_env().executor, &workers) << "the task goes on at home";
    EXPECT_NE(std::this_thread::get_id(), there.thread());
  };
  workers.run(body());
}

// Stopped before the wait, in it, and beside its end.
TEST(use_task, a_stop_cancels_the_operation) {
  loop there;
  for (int i = 0; i != test::rounds(300); ++i) {
    weft::stop_source stop;
    asio::steady_timer timer{*there, i % 3 == 0 ? 1h : std::chrono::nanoseconds{20us}};
    std::atomic<bool> begun{false};
    std::thread stops{[&] {
      if (i % 2 == 0) test::until([&] { return begun.load(); });
      stop.request_stop();
    }};
    bool went_on = false;
    const auto body = [&]() -> task<> {
      begun = true;
      co_await timer.async_wait(use_task);
      went_on = true;
    };
    bool was_stopped = false;
    try {
      sync_wait(body(), stop.token());
    } catch (weft::stopped) {
      was_stopped = true;
    }
    stops.join();
    EXPECT_NE(went_on, was_stopped);
    if (i % 3 == 0) {
      EXPECT_TRUE(was_stopped);
    }
  }
}

TEST(use_task, a_stop_reaches_composed_operations_and_coroutines) {
  loop there;
  const auto body = [&]() -> task<> {
    asio::ip::tcp::acceptor listener{*there, {asio::ip::address_v4::loopback(), 0}};
    asio::ip::tcp::socket to{*there};
    const auto connects = [&]() -> task<> { co_await to.async_connect(listener.local_endpoint(), use_task); };
    auto [from, nothing] = co_await when_all(listener.async_accept(use_task), connects());
    std::string text(100, '\0');
    const auto late =
        co_await weft::as_result(weft::timeout(2ms, asio::async_read(from, asio::buffer(text), use_task)));
    EXPECT_EQ(late.error(), weft::errc::timed_out);
    const auto waits = [&]() -> asio::awaitable<void> {
      asio::steady_timer timer{co_await asio::this_coro::executor, 1h};
      co_await timer.async_wait(asio::use_awaitable);
    };
    const auto too_late = co_await weft::as_result(weft::timeout(2ms, asio::co_spawn(*there, waits(), use_task)));
    EXPECT_EQ(too_late.error(), weft::errc::timed_out);
    // The socket is whole, and goes on.
    co_await asio::async_write(to, asio::buffer("x", 1), use_task);
    EXPECT_EQ(co_await from.async_read_some(asio::buffer(text), use_task), 1U);
  };
  sync_wait(body());
}

TEST(use_task, an_abort_by_someone_else_is_a_failure) {
  loop there;
  const auto body = [&]() -> task<> {
    asio::steady_timer timer{*there, 1h}, soon{*there, 1ms};
    const auto cancels = [&]() -> task<> {
      co_await soon.async_wait(use_task);
      timer.cancel();
    };
    const auto [got, nothing] = co_await when_all(weft::as_result(timer.async_wait(use_task)), cancels());
    EXPECT_EQ(got.error(), std::errc::operation_canceled);
  };
  sync_wait(body());
}

TEST(use_task, a_handler_that_is_never_called_ends_the_task_stopped) {
  bool was_stopped = false;
  const auto waits = [](asio::steady_timer& timer) -> task<> { co_await timer.async_wait(use_task); };
  {
    std::optional<asio::io_context> context{std::in_place};
    std::optional<asio::steady_timer> timer{std::in_place, *context, 1h};
    weft::start(waits(*timer), [&](weft::result<void> outcome) { was_stopped = outcome.is_stopped(); });
    EXPECT_FALSE(was_stopped);
    timer.reset();  // aborts it, and nobody runs the handler
    context.reset();
  }
  EXPECT_TRUE(was_stopped);
  // One that is dropped at once.
  const auto drops = []() -> task<> { co_await operation<void()>([](auto) {}); };
  EXPECT_THROW(sync_wait(drops()), weft::stopped);
  // One whose beginning throws: that is what the task gets.
  const auto throws = []() -> task<> { co_await operation<void()>([](auto) { throw std::out_of_range{"far"}; }); };
  EXPECT_THROW(sync_wait(throws()), std::out_of_range);
}

// ---- a pool as an executor of Asio ----------------------------------------------------------------------------------------------

TEST(asio_execution_context, runs_handlers_on_a_pool) {
  weft::pool workers{{.threads = 2}};
  asio_adapter::execution_context on_pool{workers};
  const auto main = std::this_thread::get_id();
  std::atomic<int> ran{0};
  for (int i = 0; i != 100; ++i)
    asio::post(on_pool.get_executor(), [&, owned = std::make_unique<int>(1)] {
      EXPECT_NE(std::this_thread::get_id(), main);
      ran += *owned;
    });
  test::until([&] { return ran == 100; });
  EXPECT_EQ(on_pool.get_executor(), on_pool.get_executor());
  const asio::any_io_executor any = on_pool.get_executor();
  asio::post(any, [&] { ++ran; });
  test::until([&] { return ran == 101; });
}

TEST(asio_execution_context, runs_coroutines_and_timers_of_asio) {
  weft::pool workers{{.threads = 2}};
  asio_adapter::execution_context on_pool{workers};
  const auto body = [&]() -> task<> {
    const auto computes = [&]() -> asio::awaitable<int> {
      asio::steady_timer timer{co_await asio::this_coro::executor, 1ms};
      co_await timer.async_wait(asio::use_awaitable);
      co_return 5;
    };
    const auto both = [&]() -> task<int> { return asio::co_spawn(on_pool.get_executor(), computes(), use_task); };
    auto [a, b] = co_await when_all(both(), both());
    EXPECT_EQ(a + b, 10);
  };
  workers.run(body());
}

TEST(asio_execution_context, a_strand_of_it_keeps_the_order) {
  weft::pool workers{{.threads = 3}};
  asio_adapter::execution_context on_pool{workers};
  auto strand = asio::make_strand(on_pool.get_executor());
  int next = 0;  // in the strand
  std::atomic<bool> over{false};
  for (int i = 0; i != 1000; ++i)
    asio::post(strand, [&, i] {
      EXPECT_EQ(next++, i);
      if (i == 999) over = true;
    });
  test::until([&] { return over.load(); });
}

}  // namespace
