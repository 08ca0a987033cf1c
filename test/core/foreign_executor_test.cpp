// An executor of the user's own, over threads that another library has: Boost.Asio's pool. What such an executor needs is
// post(), and that it outlives its tasks.
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <stdexcept>
#include <thread>
#include <vector>
#include <weft/combine.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>

#include "support/weft_test.hpp"

namespace {

namespace asio = boost::asio;
using weft::start_on;
using weft::task;

// As the book shows it. Asio allocates what it posts: where there is no memory, noexcept ends the program, which post()
// may not otherwise do.
class over_asio final : public weft::executor {
 public:
  explicit over_asio(asio::thread_pool& threads) noexcept : threads_{&threads} {}

  void post(weft::job& work) noexcept override {
    asio::post(*threads_, [&work] { work.run(work); });  // `work` may be gone after its run
  }
  bool runs_in_parallel() const noexcept override { return true; }

  bool is_inside() const noexcept { return threads_->get_executor().running_in_this_thread(); }

 private:
  asio::thread_pool* threads_;
};

WEFT_TEST("foreign_executor: a task runs on it, comes back to it, and goes home") {
  asio::thread_pool threads{2};
  over_asio theirs{threads};
  const weft::pool ours{{.threads = 1}};
  const auto runs = [&]() -> task<int> {
    int wrong = 0;
    for (int i = 0; i != test::rounds(300); ++i) {
      wrong += !theirs.is_inside();
      co_await weft::yield();
      wrong += !theirs.is_inside();
      co_await weft::resume_on(ours.executor());
      wrong += !ours.is_inside();
      co_await weft::resume_on(theirs);
    }
    co_return wrong;
  };
  EXPECT_EQ(co_await start_on(theirs, runs()), 0);
  EXPECT_FALSE(theirs.is_inside());
}

WEFT_TEST("foreign_executor: forks of a scope run on it side by side, a strand over it one at a time") {
  asio::thread_pool threads{3};
  over_asio theirs{threads};
  weft::strand in_turn{theirs};
  std::atomic<int> side_by_side{0};
  int one_at_a_time = 0;  // plain: the strand's
  const auto counts = [&]() -> task<> {
    for (int i = 0; i != 100; ++i) {
      ++side_by_side;
      co_await weft::yield();
    }
    co_await weft::resume_on(in_turn);
    for (int i = 0; i != 100; ++i) {
      ++one_at_a_time;
      co_await weft::yield();
    }
  };
  auto all = [&](weft::scope& s) -> task<> {
    for (int i = 0; i != 20; ++i) s.fork(counts());
    co_return;
  };
  co_await weft::with_scope({.executor = &theirs}, all);
  EXPECT_EQ(side_by_side, 2000);
  EXPECT_EQ(one_at_a_time, 2000);
}

WEFT_TEST("foreign_executor: children of a when_all on it run in turn, and a failure comes out") {
  asio::thread_pool threads{2};
  over_asio theirs{threads};
  std::vector<int> order;  // plain: one after the other
  const auto child = [&](int n) -> task<> {
    order.push_back(n);
    if (n == 2) throw std::runtime_error{"no"};
    co_return;
  };
  const auto both = [&]() -> task<> { co_await weft::when_all(child(1), child(2), child(3)); };
  const auto ended = co_await weft::as_result(start_on(theirs, both()));
  EXPECT_FALSE(ended.has_value());
  EXPECT_FALSE(ended.is_stopped());
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
}

WEFT_TEST("foreign_executor: a stop reaches what runs there") {
  asio::thread_pool threads{2};
  over_asio theirs{threads};
  const auto never = []() -> task<> {
    for (;;) co_await weft::yield();
  };
  auto stops = [&](weft::scope& s) -> task<> {
    weft::fork<> running = s.fork(never());
    running.request_stop();
    co_return;
  };
  co_await weft::with_scope({.executor = &theirs}, stops);
}

}  // namespace
