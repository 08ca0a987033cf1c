// What a runtime is besides its sockets, which net_test.cpp has. See weft/runtime.hpp.
#include "support/weft_test.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <weft/blocking.hpp>
#include <weft/channel.hpp>
#include <weft/fiber.hpp>
#include <weft/net.hpp>
#include <weft/runtime.hpp>
#include <weft/scope.hpp>
#include <weft/with.hpp>

namespace {

using weft::task;

task<int> answer() { co_return 42; }
task<> fail() {
  throw std::runtime_error{"out of luck"};
  co_return;
}

TEST(runtime, runs_a_task_on_its_own_workers) {
  weft::runtime rt{{.threads = 2, .name = "server"}};
  EXPECT_EQ(rt.run(answer()), 42);
  const auto where = [](weft::runtime& mine) -> task<bool> { co_return mine.workers().is_inside(); };
  EXPECT_TRUE(rt.run(where(rt)));
  EXPECT_FALSE(rt.workers().is_inside());
  EXPECT_EQ(rt.workers().size(), 2u);
  EXPECT_THROW(rt.run(fail()), std::runtime_error);
}

TEST(runtime, is_an_executor) {
  weft::runtime rt{{.threads = 1}};
  EXPECT_EQ(weft::sync_wait(weft::start_on(rt, answer())), 42);
  EXPECT_EQ(&static_cast<weft::executor&>(rt), &rt.executor());
}

TEST(runtime, a_stop_reaches_its_task) {
  weft::runtime rt{{.threads = 1}};
  weft::stop_source source;
  source.request_stop();
  EXPECT_THROW(rt.run(weft::sleep_for(std::chrono::hours{1}), source.token()), weft::stopped);
}

TEST(runtime, free_run_makes_one) { EXPECT_EQ(weft::run(answer()), 42); }

// ---- the calling thread as a worker -------------------------------------------------------------------------------------------

constexpr std::array backends{weft::io_backend::epoll, weft::io_backend::automatic};

// It sleeps, is woken by another thread, and waits for a socket, all on one thread.
task<> stays_on(std::thread::id here) {
  const auto is_here = [here] { return std::this_thread::get_id() == here; };
  EXPECT_TRUE(is_here());
  co_await weft::sleep_for(std::chrono::milliseconds{1});
  EXPECT_TRUE(is_here());
  EXPECT_EQ(co_await weft::blocking([] { return 7; }), 7);
  EXPECT_TRUE(is_here());
  weft::net::listener at = co_await weft::net::listen({"127.0.0.1", 0});
  const auto body = [&](weft::scope& inside) -> task<> {
    const auto served = [](weft::net::listener& from, auto is_here) -> task<> {
      weft::net::stream one = co_await from.accept();
      std::array<std::byte, 8> buffer;
      EXPECT_EQ(co_await one.read(buffer), 3u);
      EXPECT_TRUE(is_here());
    };
    auto server = inside.fork(served(at, is_here));
    weft::net::stream to = co_await weft::net::connect(at.local());
    co_await to.write("abc");
    co_await std::move(server);
  };
  co_await weft::with_scope(body);
  EXPECT_TRUE(is_here());
}

TEST(runtime, the_caller_of_run_is_its_only_worker) {
  for (const weft::io_backend io : backends) {
    weft::run({.threads = 1, .io = io}, stays_on(std::this_thread::get_id()));
    EXPECT_EQ(weft::run_main({.threads = 1, .io = io}, stays_on(std::this_thread::get_id())), 0);
  }
}

std::ptrdiff_t threads_of_process() {
  const std::filesystem::directory_iterator all{"/proc/self/task"};
  return std::distance(begin(all), end(all));
}

// It waits for a socket and is woken by it, and no thread is made for that. In a process of its own, which has none yet.
TEST(runtime, a_program_of_one_thread_stays_so) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto waits = []() -> task<bool> {
    const std::ptrdiff_t before = threads_of_process();
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const auto body = [&](weft::scope& inside) -> task<> {
      auto ready = inside.fork(weft::net::ready(ends[0], weft::net::readiness::readable));
      co_await weft::yield();
      EXPECT_EQ(::write(ends[1], "x", 1), 1);
      EXPECT_EQ(co_await std::move(ready), weft::net::readiness::readable);
    };
    co_await weft::with_scope(body);
    for (const int one : ends) ::close(one);
    co_return threads_of_process() == before;
  };
  for (const weft::io_backend io : backends)
    EXPECT_EXIT(std::exit(weft::run({.threads = 1, .io = io}, waits()) ? 0 : 1), testing::ExitedWithCode(0), "");
}

TEST(runtime, run_takes_its_options_also_last) {
  weft::run(stays_on(std::this_thread::get_id()), {.threads = 1});
  weft::run(stays_on(std::this_thread::get_id()), {.threads = 1}, weft::stop_token{});
  EXPECT_EQ(weft::run_main(stays_on(std::this_thread::get_id()), {.threads = 1}), 0);
}

// Every worker is held until all are there, one of which is the caller.
TEST(runtime, the_caller_of_run_is_one_of_its_workers) {
  for (const weft::io_backend io : backends) {
    std::atomic<int> came{0}, on_caller{0};
    const std::thread::id here = std::this_thread::get_id();
    const auto holds = [&]() -> task<> {
      if (std::this_thread::get_id() == here) on_caller.fetch_add(1);
      came.fetch_add(1);
      while (came.load() != 2) std::this_thread::yield();
      co_return;
    };
    const auto both = [&]() -> task<> {
      co_await weft::with_scope([&](weft::scope& inside) -> task<> {
        inside.fork(holds());
        inside.fork(holds());
        co_return;
      });
    };
    weft::run({.threads = 2, .io = io}, both());
    EXPECT_EQ(on_caller.load(), 1);
  }
}

// What fails, what is stopped, and what goes on when the task has ended.
TEST(runtime, run_by_the_caller_ends_as_others_do) {
  EXPECT_THROW(weft::run({.threads = 1}, fail()), std::runtime_error);
  weft::stop_source source;
  const auto stops = [&]() -> task<> {
    source.request_stop();
    co_await weft::sleep_for(std::chrono::hours{1});
  };
  EXPECT_THROW(weft::run({.threads = 1}, stops(), source.token()), weft::stopped);
  std::atomic<bool> ran{false};
  const auto leaves_one = [&]() -> task<> {
    weft::start(
        *weft::current_env().executor,
        [](std::atomic<bool>& did) -> task<> {
          co_await weft::yield();
          did = true;
        }(ran),
        [](weft::result<void>) {});
    co_return;
  };
  weft::run({.threads = 1}, leaves_one());
  EXPECT_TRUE(ran) << "it was ready, so it ran before the runtime went";
}

TEST(runtime, fibers_run_on_the_caller) {
  const std::thread::id here = std::this_thread::get_id();
  const auto in_fiber = [&]() -> task<bool> {
    bool is_here = false;
    const auto body = [&](weft::scope& inside) -> task<> {
      auto fiber = inside.go([&] {
        weft::await(weft::yield());
        return std::this_thread::get_id() == here;
      });
      is_here = co_await std::move(fiber);
    };
    co_await weft::with_scope(body);
    co_return is_here;
  };
  EXPECT_TRUE(weft::run({.threads = 1}, in_fiber()));
}

// A task that writes where nobody reads gets an error on each worker alike; the caller's mask is as it was then.
TEST(runtime, no_worker_is_ended_by_sigpipe) {
  const auto writes = []() -> task<int> {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    ::close(ends[0]);
    const int refused = ::write(ends[1], "x", 1) < 0 ? errno : 0;
    ::close(ends[1]);
    co_return refused;
  };
  EXPECT_EQ(weft::run({.threads = 1}, writes()), EPIPE);
  sigset_t now;
  EXPECT_EQ(::pthread_sigmask(SIG_BLOCK, nullptr, &now), 0);
  EXPECT_EQ(::sigismember(&now, SIGPIPE), 0);
}

TEST(runtime_misuse, ends_the_program_where_run_is_called_inside_a_task) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto nested = [](weft::runtime* of) -> task<> {
    if (of != nullptr)
      of->run(answer());
    else
      weft::run({.threads = 1}, answer());
    co_return;
  };
  EXPECT_DEATH(weft::run({.threads = 1}, nested(nullptr)), "weft: run was called inside a task, .*: co_await start_on");
  EXPECT_DEATH(
      {
        weft::runtime rt{{.threads = 1}};
        rt.run(nested(&rt));
      },
      "weft: run was called inside a task, .*: co_await start_on");
}

// Threads that call run() at once block, and each has its task run.
TEST(runtime, two_threads_call_run) {
  weft::runtime rt{{.threads = 1}};
  int got = 0;
  std::thread other{[&] { got = rt.run(answer()); }};
  EXPECT_EQ(rt.run(answer()), 42);
  other.join();
  EXPECT_EQ(got, 42);
}

// -------------------------------------------------------------------------------------------------------------------------------

TEST(runtime, run_main_says_how_it_ended) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(weft::run_main(answer()), 0);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  EXPECT_EQ(weft::run_main(fail()), 1);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "out of luck\n");
  const auto stop_itself = []() -> task<> {
    weft::stop_source source;
    source.request_stop();
    co_await weft::with_stop(source.token(), [] { return weft::sleep_for(std::chrono::hours{1}); });
  };
  testing::internal::CaptureStderr();
  EXPECT_EQ(weft::run_main(stop_itself()), 1);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "stopped\n");
}

TEST(runtime, says_how_it_waits) {
  weft::runtime rt{{.threads = 1, .io = weft::io_backend::epoll}};
  EXPECT_EQ(rt.backend(), weft::io_backend::epoll);
  EXPECT_NE(rt.explain().find("waited for by epoll, as its options ask"), std::string::npos) << rt.explain();
  EXPECT_NE(rt.explain().find("Names are looked up by "), std::string::npos) << rt.explain();
}

// Sets WEFT_IO, and puts it back.
class environment {
 public:
  explicit environment(const char* value) {
    if (const char* const now = std::getenv("WEFT_IO"); now != nullptr) before_ = now;
    set(value);
  }
  environment(const environment&) = delete;
  ~environment() { set(before_ ? before_->c_str() : nullptr); }

 private:
  static void set(const char* value) {
    EXPECT_EQ(value != nullptr ? ::setenv("WEFT_IO", value, 1) : ::unsetenv("WEFT_IO"), 0);
  }
  std::optional<std::string> before_;
};

TEST(runtime, takes_the_best_that_there_is_and_says_why) {
  const environment none{nullptr};
  const weft::runtime rt{{.threads = 1}};
  const std::string how = rt.explain();
  const weft::runtime several{{.threads = 2}};
  EXPECT_EQ(several.backend(), weft::io_backend::epoll);
  EXPECT_NE(several.explain().find("since there are several workers"), std::string::npos) << several.explain();
  EXPECT_NE(how.find(rt.backend() == weft::io_backend::uring ? "by io_uring, which" : "by epoll, not by io_uring: "),
            std::string::npos)
      << how;
}

TEST(runtime, the_environment_chooses) {
  {
    const environment wrong{"carrier pigeons"};
    EXPECT_THROW(weft::runtime{}, weft::error);
  }
  {
    const environment epoll{"epoll"};
    const weft::runtime rt;
    EXPECT_EQ(rt.backend(), weft::io_backend::epoll);
    EXPECT_NE(rt.explain().find("as WEFT_IO asks"), std::string::npos) << rt.explain();
  }
  if (weft::runtime{{.threads = 1}}.backend() == weft::io_backend::uring) {
    const environment ring{"uring"};
    EXPECT_EQ(weft::runtime{}.backend(), weft::io_backend::uring);
    EXPECT_EQ((weft::runtime{{.io = weft::io_backend::epoll}}.backend()), weft::io_backend::epoll);  // over it
  }
}

TEST(runtime_misuse, ends_the_program_where_a_stream_outlives_it) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        weft::net::stream late;
        weft::runtime rt{{.threads = 1}};
        rt.run([](weft::net::stream& into) -> task<> {
          int both[2];
          EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, both), 0);
          into = weft::net::stream::adopt(both[0]);
          co_return;
        }(late));
      },
      "a runtime was destroyed before a stream");
}

TEST(runtime_misuse, ends_the_program_where_it_is_destroyed_on_a_thread_of_its_own) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        auto rt = std::make_unique<weft::runtime>(weft::runtime_options{.threads = 1});
        weft::runtime& same = *rt;
        same.run([](std::unique_ptr<weft::runtime> mine) -> task<> {
          mine.reset();
          co_return;
        }(std::move(rt)));
      },
      "a runtime was destroyed on one of its own threads");
}

// ---- a guest in another loop ------------------------------------------------------------------------------------------------

// What another library's loop does.
template <class Done>
void loop_until(weft::runtime& guest, Done done) {
  pollfd watched{.fd = guest.descriptor(), .events = POLLIN, .revents = 0};
  while (!done()) {
    ASSERT_GE(::poll(&watched, 1, 60'000), 1) << "nothing became ready";
    static_cast<void>(guest.run_ready(8));
  }
}

task<std::string> ask_itself(int questions) {
  const auto body = [questions](weft::scope& inside) -> task<std::string> {
    const weft::net::listener at = co_await weft::net::listen(weft::net::endpoint{"127.0.0.1", 0});
    inside.fork(
        [](const weft::net::listener& from) -> task<> {
          const weft::net::stream peer = co_await from.accept();
          std::array<std::byte, 64> buffer;
          while (const std::size_t size = co_await peer.read(buffer))
            co_await peer.write(std::span<const std::byte>{buffer}.first(size));
        },
        std::cref(at));
    const weft::net::stream to = co_await weft::net::connect(at.local());
    std::string all;
    for (int i = 0; i != questions; ++i) {
      co_await to.write("q");
      all += (co_await to.receive()).text();
    }
    to.shutdown();
    co_return all;
  };
  co_return co_await weft::with_scope(body);
}

TEST(guest_runtime, runs_in_another_loop) {
  weft::runtime rt{{.guest = true}};
  EXPECT_TRUE(rt.is_guest());
  EXPECT_EQ(rt.run_ready(), 0u);
  std::optional<weft::result<std::string>> ended;
  weft::start(rt.executor(), ask_itself(20), [&](weft::result<std::string> how) { ended.emplace(std::move(how)); });
  loop_until(rt, [&] { return ended.has_value(); });
  EXPECT_EQ(ended->value(), std::string(20, 'q'));
  EXPECT_EQ(rt.stats().watched, 0u);
  EXPECT_GT(rt.stats().changes, 0u);
  EXPECT_NE(rt.explain().find("guest"), std::string::npos);
}

TEST(guest_runtime, is_woken_by_other_threads_and_by_timers) {
  weft::runtime rt{{.guest = true}};
  weft::channel<int> numbers{0};
  int sum = 0;
  bool over = false;
  const auto add = [&]() -> task<> {
    while (const auto n = co_await numbers.receive()) {
      sum += *n;
      co_await weft::sleep_for(std::chrono::microseconds{100});
    }
  };
  weft::start(rt.executor(), add(), [&](weft::result<void> how) { over = how.has_value(); });
  std::jthread sends{[&] {
    for (int i = 1; i <= 100; ++i) weft::sync_wait(numbers.send(i));
    numbers.close();
  }};
  loop_until(rt, [&] { return over; });
  EXPECT_EQ(sum, 5050);
}

// What a turn leaves keeps the descriptor readable.
TEST(guest_runtime, runs_no_more_than_it_is_told_to) {
  weft::runtime rt{{.guest = true}};
  int ran = 0;
  const auto yields = [&]() -> task<> {
    for (int i = 0; i != 50; ++i) {
      ++ran;
      co_await weft::yield();
    }
  };
  bool over = false;
  weft::start(rt.executor(), yields(), [&](weft::result<void>) { over = true; });
  pollfd watched{.fd = rt.descriptor(), .events = POLLIN, .revents = 0};
  for (int turns = 0; !over; ++turns) {
    ASSERT_EQ(::poll(&watched, 1, 10'000), 1) << turns;
    EXPECT_LE(rt.run_ready(3), 3u);
    EXPECT_LE(ran, 3 * (turns + 1));
  }
  EXPECT_EQ(ran, 50);
}

TEST(guest_runtime, lets_others_run_beside_a_flood) {
  weft::runtime rt{{.guest = true}};
  int pairs[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pairs), 0);
  bool over = false;
  const auto floods = [&]() -> task<> {
    const weft::net::stream a = weft::net::stream::adopt(pairs[0]), b = weft::net::stream::adopt(pairs[1]);
    for (int i = 0; i != 5000; ++i) {
      co_await a.write("x");
      EXPECT_EQ((co_await b.receive()).size(), 1u);
    }
  };
  weft::start(rt.executor(), floods(), [&](weft::result<void>) { over = true; });
  int turns = 0;
  loop_until(rt, [&] { return (++turns, over); });
  EXPECT_GT(turns, 5);
}

TEST(guest_runtime, runs_a_task_to_its_end) {
  weft::runtime rt{{.guest = true}};
  EXPECT_EQ(rt.run(ask_itself(3)), "qqq");
  const auto fails = []() -> task<int> {
    co_await weft::sleep_for(std::chrono::milliseconds{1});
    throw std::runtime_error{"failed"};
  };
  EXPECT_THROW(rt.run(fails()), std::runtime_error);
  weft::stop_source source;
  const auto waits = []() -> task<> { co_await weft::sleep_for(std::chrono::hours{1}); };
  std::jthread stops{[&] { source.request_stop(); }};
  EXPECT_THROW(rt.run(waits(), source.token()), weft::stopped);
}

TEST(guest_runtime, says_why_a_task_was_stopped) {
  weft::runtime guest{{.guest = true}};
  weft::stop_source source;
  source.request_stop({.reason = "its window was closed"});
  try {
    guest.run(weft::sleep_for(std::chrono::hours{1}), source.token());
    ADD_FAILURE() << "it was not stopped";
  } catch (const weft::stopped& how) {
    ASSERT_EQ(how.causes().size(), 1u);
    EXPECT_STREQ(how.causes()[0].reason, "its window was closed");
  }
}

TEST(guest_runtime, refuses_what_it_has_not) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_THROW((weft::runtime{{.io = weft::io_backend::uring, .guest = true}}), weft::error);
  weft::runtime rt{{.guest = true}};
  EXPECT_DEATH(static_cast<void>(rt.workers()), "a guest runtime was asked for its workers");
  weft::runtime with_threads{{.threads = 1}};
  EXPECT_FALSE(with_threads.is_guest());
  EXPECT_DEATH(static_cast<void>(with_threads.run_ready()), "a runtime that is no guest was used as one");
  static_cast<void>(rt.run_ready());
  EXPECT_DEATH(std::thread{[&] { rt.run_ready(); }}.join(), "a guest runtime was run on a second thread");
  EXPECT_DEATH(rt.run([](weft::runtime& same) -> task<> {
    same.run_ready();
    co_return;
  }(rt)),
               "a guest runtime was run by a task of its own");
}

}  // namespace
