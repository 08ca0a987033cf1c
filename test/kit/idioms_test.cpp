// What the book says to those who come from other libraries, as it stands there.
#include <gtest/gtest.h>

#include <chrono>
#include <utility>
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/sync.hpp>

#include "support/weft_test.hpp"

namespace {

using weft::task;

// from-async_simple.md: checkout and checkin. The pool's other thread goes on with the task that it waits for.
WEFT_TEST("idioms: a task of a pool comes back to the thread that it was on") {
  weft::pool workers{{.threads = 3}};
  const auto elsewhere = [&](unsigned mine) -> task<int> {
    co_await weft::resume_on(workers.worker((mine + 1) % 3));
    co_return 1;
  };
  const auto comes_back = [&]() -> task<int> {
    int wrong = 0;
    for (int i = 0; i != 100; ++i) {
      const unsigned mine = workers.worker_id();
      const auto one = [&]() -> task<> {
        co_await elsewhere(mine);
        co_await weft::yield();
        co_await weft::resume_on(workers.worker(mine));
        wrong += workers.worker_id() != mine;
      };
      co_await one();
    }
    co_return wrong;
  };
  EXPECT_EQ(co_await weft::start_on(workers.executor(), comes_back()), 0);
}

// from-libcopp.md: kill(status), and get_ret_code() as often as one likes.
WEFT_TEST("idioms: a kill with a status, and a result that is read again") {
  auto body = [](weft::scope& s) -> task<> {
    auto sleeps = [] {
      weft::this_fiber::sleep_for(std::chrono::hours{1});
      return 0;
    };
    weft::fork<int> job = s.go(sleeps);
    const int status = -7;
    job.request_stop({.reason = "killed"});
    const auto ended = co_await weft::as_result(job);
    EXPECT_TRUE(ended.is_stopped());
    EXPECT_EQ(ended.is_stopped() ? status : ended.value(), -7);
    EXPECT_EQ(job.status(), weft::fork_status::stopped);

    auto seven = [] {
      weft::this_fiber::yield();
      return 7;
    };
    weft::fork<int> has_it = s.go(seven);
    const weft::fork_view<int> view = has_it.view();
    EXPECT_EQ(co_await has_it, 7);
    EXPECT_EQ(co_await has_it, 7);
    EXPECT_EQ(co_await view, 7);
    EXPECT_EQ(co_await view, 7);
  };
  co_await weft::with_scope(body);
}

}  // namespace
