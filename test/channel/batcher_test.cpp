// What a batcher makes of many calls: who is in which, and what becomes of them. sweep_sync_test stops it everywhere.
#include <weft/batcher.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include <weft/blocking.hpp>
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/test.hpp>

#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::as_result;
using weft::batcher;
using weft::errc;
using weft::scope;
using weft::sleep_for;
using weft::sync_wait;
using weft::task;
using weft::when_all;
using weft::with_scope;

// Says how many inputs each call had.
struct calls {
  std::vector<std::size_t> sizes;
  task<std::vector<int>> operator()(std::vector<int> inputs) {
    sizes.push_back(inputs.size());
    co_await sleep_for(1ms);
    for (int& one : inputs) one *= 2;
    co_return inputs;
  }
};

TEST(batcher, what_comes_at_a_time_is_one_call_and_what_comes_meanwhile_the_next_one) {
  weft::test::run([]() -> task<> {
    calls made;
    auto body = [&](scope& s) -> task<> {
      batcher<int, int> all{s, std::ref(made)};
      auto late = [&]() -> task<int> {
        co_await sleep_for(500us);
        co_return co_await all(10);
      };
      auto [a, b, c, d] = co_await when_all(all(1), all(2), late(), late());
      EXPECT_EQ(a + b, 6);
      EXPECT_EQ(c + d, 40);
      EXPECT_EQ(co_await all(5), 10);
    };
    co_await with_scope(body);
    EXPECT_EQ(made.sizes, (std::vector<std::size_t>{2, 2, 1}));
  });
}

TEST(batcher, tells_what_waits_what_runs_and_what_it_saved) {
  weft::test::run([]() -> task<> {
    calls made;
    auto body = [&](scope& s) -> task<> {
      batcher<int, int> all{{.most = 2}, s, std::ref(made)};
      EXPECT_EQ(all.stats().calls, 0u);
      auto looks = [&]() -> task<> {
        co_await sleep_for(500us);  // two of three are in the first call
        const weft::batcher_stats now = all.stats();
        EXPECT_EQ(now.waiting, 1u);
        EXPECT_EQ(now.running, 1u);
        EXPECT_EQ(now.calls, 1u);
        EXPECT_EQ(now.inputs, 2u);
      };
      co_await when_all(all(1), all(2), all(3), looks());
      const weft::batcher_stats then = all.stats();
      EXPECT_EQ(then.waiting, 0u);
      EXPECT_EQ(then.running, 0u);
      EXPECT_EQ(then.calls, 2u);
      EXPECT_EQ(then.inputs, 3u);
      EXPECT_EQ(then.largest, 2u);
    };
    co_await with_scope(body);
  });
}

// Also one that fails.
TEST(batcher, a_call_that_fails_is_over) {
  weft::test::run([]() -> task<> {
    auto fails = [](std::vector<int>) -> task<std::vector<int>> {
      co_await sleep_for(1ms);
      throw std::runtime_error{"no"};
    };
    auto body = [&](scope& s) -> task<> {
      batcher<int, int> all{s, fails};
      const auto how = co_await as_result(all(1));
      EXPECT_TRUE(how.exception());
      EXPECT_EQ(all.stats().running, 0u);
      EXPECT_EQ(all.stats().calls, 1u);
    };
    co_await with_scope(body);
  });
}

TEST(batcher, no_call_has_more_than_the_most_and_as_many_run_as_may) {
  weft::test::run([]() -> task<> {
    calls made;
    auto body = [&](scope& s) -> task<> {
      batcher<int, int> all{{.most = 3, .calls = 2}, s, std::ref(made)};
      std::vector<task<int>> asked;
      for (int i = 0; i != 8; ++i) asked.push_back(all(i));
      const std::vector<int> answers = co_await when_all(std::move(asked));
      for (int i = 0; i != 8; ++i) EXPECT_EQ(answers[static_cast<std::size_t>(i)], 2 * i);
    };
    co_await with_scope(body);
    EXPECT_EQ(std::accumulate(made.sizes.begin(), made.sizes.end(), std::size_t{0}), 8u);
    for (const std::size_t size : made.sizes) EXPECT_LE(size, 3u);
    EXPECT_EQ(weft::test::elapsed(), 2ms);  // two calls, then one
  });
}

TEST(batcher, leaves_out_who_has_left_before_its_call) {
  weft::test::run([]() -> task<> {
    calls made;
    auto body = [&](scope& s) -> task<> {
      batcher<int, int> all{s, std::ref(made)};
      auto impatient = [&]() -> task<> {
        co_await sleep_for(100us);
        const auto how = co_await as_result(timeout(100us, all(2)));  // gathers behind the first call
        EXPECT_EQ(how.error(), errc::timed_out);
      };
      auto leaves_a_call = [&]() -> task<> {
        const auto how = co_await as_result(timeout(100us, all(3)));
        EXPECT_EQ(how.error(), errc::timed_out);
      };
      auto [one, nothing, none] = co_await when_all(all(1), leaves_a_call(), impatient());
      EXPECT_EQ(one, 2);
      EXPECT_EQ(co_await all(4), 8);
    };
    co_await with_scope(body);
    EXPECT_EQ(made.sizes, (std::vector<std::size_t>{2, 1}));
  });
}

WEFT_TEST("batcher: what a call throws, all that are in it get, and the next call is made") {
  auto call = [](std::vector<int> inputs) -> task<std::vector<std::string>> {
    if (inputs[0] < 0) throw std::out_of_range{"negative"};
    co_return std::vector<std::string>(inputs.size(), "good");
  };
  auto body = [&](scope& s) -> task<> {
    batcher<int, std::string> all{s, call};
    auto [a, b] = co_await when_all(as_result(all(-1)), as_result(all(1)));
    for (const auto* one : {&a, &b}) EXPECT_THROW(std::rethrow_exception(one->exception()), std::out_of_range);
    EXPECT_EQ(co_await all(1), "good");
  };
  co_await with_scope(body);
}

WEFT_TEST("batcher: its function may only move") {
  auto call = [plus = std::make_unique<int>(1)](std::vector<int> inputs) -> task<std::vector<int>> {
    for (int& one : inputs) one += *plus;
    co_return inputs;
  };
  auto body = [&](scope& s) -> task<> {
    batcher<int, int> all{s, std::move(call)};
    EXPECT_EQ(co_await all(1), 2);
  };
  co_await with_scope(body);
}

TEST(batcher_death, one_that_was_moved_from_is_not_called) {
  const auto misuse = [] {
    auto body = [](scope& s) -> task<> {
      batcher<int, int> first{s, calls{}};
      auto second = std::move(first);
      co_await first(1);  // NOLINT(bugprone-use-after-move): that is the misuse
    };
    sync_wait(with_scope(body));
  };
  EXPECT_DEATH(misuse(), "a batcher that was moved from was called");
}

TEST(batcher, tells_its_end_to_those_that_come_later_and_to_those_whose_scope_ends_before_their_call) {
  weft::test::run([]() -> task<> {
    calls made;
    std::optional<batcher<int, int>> all;
    auto body = [&](scope& s) -> task<> {
      all.emplace(s, std::ref(made));
      EXPECT_EQ(co_await (*all)(1), 2);
      s.request_stop();
    };
    static_cast<void>(co_await as_result(with_scope(body)));
    const auto late = co_await as_result((*all)(1));
    EXPECT_EQ(late.error(), errc::closed);

    auto gathers = [&](scope& outer) -> task<> {
      auto inner = [&](scope& s) -> task<> {
        batcher<int, int> of{s, std::ref(made)};
        auto first = outer.fork(of(1));
        co_await sleep_for(500us);
        auto second = outer.fork(of(2));  // waits for the call of the first
        s.request_stop();
        const auto how = co_await as_result(std::move(second));
        EXPECT_TRUE(how.is_stopped() || how.error() == errc::broken_promise);
      };
      static_cast<void>(co_await as_result(with_scope(inner)));
    };
    static_cast<void>(co_await as_result(with_scope(gathers)));
  });
}

WEFT_TEST("batcher: one that can't be made leaves nothing that its scope would wait for") {
  calls made;
  auto body = [&](scope& s) -> task<> {
    co_await s.room();
    auto two = [&] { batcher<int, int> all{{.calls = 2}, s, std::ref(made)}; };  // and there is room for one
    EXPECT_THROW(two(), weft::error);
  };
  co_await with_scope(weft::scope_options{.max_children = 1}, body);
}

TEST(batcher, serves_tasks_fibers_and_threads) {
  weft::pool p{{.threads = 2}};
  const int each = test::rounds(400);
  std::atomic<long> inputs_seen{0}, made{0};
  auto call = [&](std::vector<std::unique_ptr<int>> inputs) -> task<std::vector<std::unique_ptr<int>>> {
    inputs_seen += static_cast<long>(inputs.size());
    ++made;
    co_return inputs;
  };
  auto body = [&](scope& s) -> task<> {
    batcher<std::unique_ptr<int>, std::unique_ptr<int>> all{{.most = 16}, s, call};
    auto in_task = [&](int from) -> task<> {
      for (int i = 0; i != each; ++i) EXPECT_EQ(*co_await all(std::make_unique<int>(from + i)), from + i);
    };
    std::jthread thread{[&] {
      for (int i = 0; i != each; ++i) EXPECT_EQ(*weft::sync_wait(all(std::make_unique<int>(i))), i);
    }};
    auto asks = [&](scope& askers) -> task<> {
      for (int t = 0; t != 4; ++t) askers.fork(in_task, 1000 * t);
      askers.go([&] {
        for (int i = 0; i != each; ++i) EXPECT_EQ(*weft::await(all(std::make_unique<int>(i))), i);
      });
      co_return;
    };
    co_await with_scope(asks);
    co_await weft::blocking([&] { thread.join(); });
  };
  weft::sync_wait(weft::start_on(p.executor(), with_scope(body)));
  EXPECT_EQ(inputs_seen, 6L * each);
  EXPECT_LE(made, inputs_seen);
}

}  // namespace
