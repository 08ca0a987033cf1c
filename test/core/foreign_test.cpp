// Awaitables of other libraries: whatever they do with the handle that they get, the task comes home.
#include <gtest/gtest.h>

#include <atomic>
#include <coroutine>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <weft/executor.hpp>
#include <weft/task.hpp>

#include "support/weft_test.hpp"

#if __has_include(<boost/asio.hpp>)
#include <boost/version.hpp>
#if BOOST_VERSION >= 108100
#define WEFT_TEST_ASIO 1
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#endif
#endif
#if __has_include(<stdexec/execution.hpp>)  // not among Debian's packages
#define WEFT_TEST_STDEXEC 1
#include <exec/single_thread_context.hpp>
#include <stdexec/execution.hpp>
#endif

namespace {

using weft::as_result;
using weft::stopped;
using weft::sync_wait;
using weft::task;

// Resumes on a thread of its own, which `runner` is then.
struct on_own_thread {
  std::jthread& runner;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting) const {
    runner = std::jthread{[waiting] { waiting.resume(); }};
  }
  int await_resume() const noexcept { return 3; }
};

WEFT_TEST("foreign: a task that is resumed on another thread goes on on its own") {
  std::jthread runner;
  const auto home = std::this_thread::get_id();
  EXPECT_EQ((co_await on_own_thread{runner}), 3);
  EXPECT_EQ(std::this_thread::get_id(), home);
}

TEST(foreign, a_task_comes_home_to_the_executor_that_it_was_started_on) {
  weft::manual_executor loop;
  std::jthread runner;
  std::atomic<bool> ended = false;
  auto work = [](std::jthread& runner) -> task<bool> {
    const auto home = std::this_thread::get_id();
    bool stayed = true;
    for (int i = 0; i < 20; ++i) {
      co_await on_own_thread{runner};
      stayed = stayed && std::this_thread::get_id() == home;
    }
    co_return stayed;
  };
  weft::start(loop, work(runner), [&](weft::result<bool> stayed) {
    EXPECT_TRUE(stayed.value());
    ended = true;
  });
  EXPECT_TRUE(loop.run_one());
  test::until([&] {
    loop.run_all();
    return ended.load();
  });
}

// ---- what await_suspend may return and do -------------------------------------------------------------------------------

enum class how { nothing, resumes_itself, false_, true_after_resuming, own_handle, noop_after_resuming };

struct await_void {
  how what;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting) const { waiting.resume(); }
  void await_resume() const noexcept {}
};
struct await_bool {
  how what;
  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> waiting) const {
    if (what == how::false_) return false;
    waiting.resume();
    return true;
  }
  void await_resume() const noexcept {}
};
struct await_handle {
  how what;
  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiting) const {
    if (what == how::own_handle) return waiting;
    waiting.resume();
    return std::noop_coroutine();
  }
  void await_resume() const noexcept {}
};

// 100,000 of each, on a small stack: a resume inside await_suspend must not nest.
template <class Awaiter>
task<int> await_often(how what) {
  int rounds = 0;
  for (; rounds < 100'000; ++rounds) co_await Awaiter{what};
  co_return rounds;
}

template <class Awaiter>
void try_everywhere(how what) {
  test::on_small_stack([what] {
    EXPECT_EQ(sync_wait(await_often<Awaiter>(what)), 100'000);

    int inlined = 0;
    weft::start(await_often<Awaiter>(what), [&](weft::result<int> rounds) { inlined = rounds.value(); });
    EXPECT_EQ(inlined, 100'000) << "without an executor, it goes on inside resume()";

    int pumped = 0;
    weft::manual_executor loop;
    weft::start(loop, await_often<Awaiter>(what), [&](weft::result<int> rounds) { pumped = rounds.value(); });
    loop.run_all();
    EXPECT_EQ(pumped, 100'000);
  });
}

TEST(foreign, an_await_suspend_of_void_may_resume) { try_everywhere<await_void>(how::resumes_itself); }
TEST(foreign, an_await_suspend_of_bool_may_refuse) { try_everywhere<await_bool>(how::false_); }
TEST(foreign, an_await_suspend_of_bool_may_resume) { try_everywhere<await_bool>(how::true_after_resuming); }
TEST(foreign, an_await_suspend_may_transfer_to_its_caller) { try_everywhere<await_handle>(how::own_handle); }
TEST(foreign, an_await_suspend_of_a_handle_may_resume) { try_everywhere<await_handle>(how::noop_after_resuming); }

WEFT_TEST("foreign: an await_suspend that throws fails the await, and the task goes on") {
  struct refuses {
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<>) const { throw std::runtime_error{"no room"}; }
    void await_resume() const noexcept {}
  };
  for (int i = 0; i < 3; ++i) {
    bool thrown = false;
    try {
      co_await refuses{};
    } catch (const std::runtime_error&) {
      thrown = true;
    }
    EXPECT_TRUE(thrown);
  }
}

// A coroutine of another library, which transfers to whom it was handed.
struct other_task {
  struct promise_type {
    std::coroutine_handle<> continuation;
    other_task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct to_continuation {
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> self) noexcept {
          return self.promise().continuation;
        }
        void await_resume() noexcept {}
      };
      return to_continuation{};
    }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  std::coroutine_handle<promise_type> frame;

  auto operator co_await() const noexcept {
    struct awaiter {
      std::coroutine_handle<promise_type> frame;
      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<> caller) noexcept {
        frame.promise().continuation = caller;
        return frame;
      }
      std::string await_resume() {
        frame.destroy();
        return "done";
      }
    };
    return awaiter{frame};
  }
};
other_task another() { co_return; }

TEST(foreign, another_librarys_coroutine_can_be_awaited) {
  auto loop = []() -> task<int> {
    int rounds = 0;
    for (; rounds < 10'000; ++rounds)
      if (std::string said = co_await another(); said != "done") co_return -1;
    co_return rounds;
  };
  test::on_small_stack([&] { EXPECT_EQ(sync_wait(loop()), 10'000); });
}

// ---- what an awaitable may look like ----------------------------------------------------------------------------------

struct by_free_operator {
  int n;
};
struct ready {
  int n;
  bool await_ready() const noexcept { return true; }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  int await_resume() const noexcept { return n; }
};
ready operator co_await(by_free_operator of) { return {of.n}; }
struct by_lvalue_operator {
  int n;
  ready operator co_await() & { return {n}; }
};
struct gives_reference : std::suspend_never {
  int* n;
  explicit gives_reference(int& n) : n{&n} {}
  int& await_resume() const noexcept { return *n; }
};
struct cannot_move : std::suspend_never {
  cannot_move() = default;
  cannot_move(cannot_move&&) = delete;
  int await_resume() const noexcept { return 9; }
};

WEFT_TEST("foreign: an awaitable may be an awaiter, or give one by either operator") {
  EXPECT_EQ(co_await ready{1}, 1);
  EXPECT_EQ(co_await by_free_operator{2}, 2);
  by_lvalue_operator lvalue{3};
  EXPECT_EQ(co_await lvalue, 3);
  EXPECT_EQ(co_await cannot_move{}, 9);
  int n = 0;
  EXPECT_EQ(&co_await gives_reference{n}, &n);
  co_await std::suspend_never{};
}

TEST(foreign, sync_wait_and_as_result_take_any_awaitable) {
  EXPECT_EQ(sync_wait(ready{4}), 4);
  EXPECT_EQ(sync_wait(by_free_operator{5}), 5);
  by_lvalue_operator lvalue{6};
  EXPECT_EQ(sync_wait(lvalue), 6);
  int n = 0;
  EXPECT_EQ(&sync_wait(gives_reference{n}), &n);
  auto caller = []() -> task<int> { co_return (co_await as_result(ready{7})).value(); };
  EXPECT_EQ(sync_wait(caller()), 7);
}

// ---- a library that lets go -------------------------------------------------------------------------------------------

struct destroys {
  std::jthread* runner;  // null: at once
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting) const {
    if (runner == nullptr) return waiting.destroy();
    *runner = std::jthread{[waiting] { waiting.destroy(); }};
  }
  void await_resume() const noexcept { ADD_FAILURE() << "resumed what was destroyed"; }
};

TEST(foreign, a_task_whose_handle_is_destroyed_ends_stopped) {
  std::atomic<int> alive = 0;
  auto work = [](std::jthread* runner, std::atomic<int>& alive) -> task<> {
    const test::counted here{alive};
    co_await destroys{runner};
  };
  auto catches = [](auto work, std::jthread* runner, std::atomic<int>& alive) -> task<bool> {
    const auto how = co_await as_result(work(runner, alive));
    co_return how.is_stopped();
  };
  std::jthread runner;
  for (std::jthread* on : {static_cast<std::jthread*>(nullptr), &runner}) {
    EXPECT_THROW(sync_wait(work(on, alive)), stopped);
    EXPECT_EQ(alive, 0);
    EXPECT_TRUE(sync_wait(catches(work, on, alive)));
    EXPECT_EQ(alive, 0);
  }
}

#if defined(WEFT_TEST_ASIO)
TEST(foreign, a_timer_of_asio_brings_the_task_home) {
  namespace asio = boost::asio;
  // Asio's operations as an awaitable, as any library would wrap them.
  struct expiry {
    asio::steady_timer& timer;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> waiting) {
      timer.async_wait([this, waiting](boost::system::error_code error) {
        failed = error;
        waiting.resume();
      });
    }
    boost::system::error_code await_resume() const noexcept { return failed; }
    boost::system::error_code failed{};
  };
  asio::io_context io;
  auto keep = asio::make_work_guard(io);
  std::jthread loop{[&] { io.run(); }};
  auto sleep = [](asio::io_context& io) -> task<int> {
    const auto home = std::this_thread::get_id();
    int fired = 0;
    for (; fired < 10; ++fired) {
      asio::steady_timer timer{io, std::chrono::microseconds{100}};
      EXPECT_FALSE(co_await expiry{timer});
      EXPECT_EQ(std::this_thread::get_id(), home);
    }
    co_return fired;
  };
  EXPECT_EQ(sync_wait(sleep(io)), 10);
  keep.reset();
}
#endif

#if defined(WEFT_TEST_STDEXEC)
// A sender as an awaitable, as stdexec's own coroutines wrap it: who is stopped has its handle destroyed.
template <class Sender>
class sent {
 public:
  explicit sent(Sender sender) : sender_{std::move(sender)} {}
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiting) {
    operation_.emplace(in_place{*this, waiting});
    stdexec::start(*operation_);
  }
  int await_resume() const { return failed_ ? (std::rethrow_exception(failed_), 0) : value_; }

 private:
  struct receiver {
    using receiver_concept = stdexec::receiver_t;
    sent& of;
    std::coroutine_handle<> waiting;
    void set_value(int value) noexcept {
      of.value_ = value;
      waiting.resume();
    }
    void set_error(std::exception_ptr why) noexcept {
      of.failed_ = std::move(why);
      waiting.resume();
    }
    void set_stopped() noexcept { waiting.destroy(); }
  };
  using operation = stdexec::connect_result_t<Sender, receiver>;
  struct in_place {  // an operation can't be moved
    sent& of;
    std::coroutine_handle<> waiting;
    operator operation() const { return stdexec::connect(std::move(of.sender_), receiver{of, waiting}); }
  };

  Sender sender_;
  std::optional<operation> operation_;
  int value_ = 0;
  std::exception_ptr failed_;
};

TEST(foreign, a_sender_of_stdexec_brings_the_task_home) {
  exec::single_thread_context context;
  auto ask = [](auto sender) -> task<int> {
    const auto home = std::this_thread::get_id();
    const int value = co_await sent{std::move(sender)};
    EXPECT_EQ(std::this_thread::get_id(), home);
    co_return value;
  };
  const auto here = std::this_thread::get_id();
  auto elsewhere = [&](auto fn) { return stdexec::schedule(context.get_scheduler()) | stdexec::then(fn); };
  EXPECT_EQ(sync_wait(ask(stdexec::just(3))), 3);
  EXPECT_EQ(sync_wait(ask(elsewhere([here] { return std::this_thread::get_id() != here ? 5 : 0; }))), 5);
  EXPECT_THROW(sync_wait(ask(elsewhere([]() -> int { throw std::runtime_error{"as planned"}; }))), std::runtime_error);
  auto ends_stopped =
      elsewhere([] {}) | stdexec::let_value([] { return stdexec::just_stopped(); }) | stdexec::then([] { return 7; });
  EXPECT_THROW(sync_wait(ask(ends_stopped)), stopped);
}
#endif

}  // namespace
