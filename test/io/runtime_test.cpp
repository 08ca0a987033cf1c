// What a runtime is besides its sockets, which net_test.cpp has. See weft/runtime.hpp.
#include "support/weft_test.hpp"

#include <sys/socket.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <weft/net.hpp>
#include <weft/runtime.hpp>
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
  if (weft::runtime{}.backend() == weft::io_backend::uring) {
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

}  // namespace
