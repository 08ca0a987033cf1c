// What a runtime is besides its sockets, which net_test.cpp has. See weft/runtime.hpp.
#include "support/weft_test.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <weft/channel.hpp>
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
    ASSERT_GE(::poll(&watched, 1, 10'000), 1) << "nothing became ready";
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
