#include <weft/combine.hpp>
#include <weft/generator.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/timed_root.hpp"
#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using test::run_timed;
using test::virtual_clock;
using weft::async_generator;
using weft::for_each;
using weft::merge;
using weft::result;
using weft::task;

// `count` values from `first` on, each after `d`.
async_generator<int> every(std::chrono::milliseconds d, int first, int count) {
  for (int i = 0; i != count; ++i) {
    co_await weft::sleep_for(d);
    co_yield first + i;
  }
}
async_generator<int> fail_after(std::chrono::milliseconds d) {
  co_await weft::sleep_for(d);
  throw std::runtime_error{"source"};
  co_yield 0;
}

TEST(merge, gives_values_as_they_come) {
  virtual_clock time;
  auto all = []() -> task<> {
    const auto values = co_await (merge(every(3ms, 10, 2), every(2ms, 20, 4)) | weft::collect());
    EXPECT_EQ(values.size(), 6U);
    EXPECT_EQ((std::vector<int>{values.begin(), values.begin() + 3}), (std::vector<int>{20, 10, 21}));
    EXPECT_EQ(values.back(), 23);
  };
  EXPECT_TRUE(run_timed(time, all()));
  EXPECT_EQ(time.elapsed(), 8ms);
}

WEFT_TEST("merge: of a vector of sources, of none, and of what moves only") {
  auto owners = [](int count) -> async_generator<std::unique_ptr<int>> {
    for (int i = 0; i != count; ++i) co_yield std::make_unique<int>(i);
  };
  std::vector<async_generator<std::unique_ptr<int>>> sources;
  for (int i = 0; i != 4; ++i) sources.push_back(owners(i));
  EXPECT_EQ((co_await (merge(std::move(sources)) | weft::collect())).size(), 6U);
  EXPECT_TRUE((co_await (merge(std::vector<async_generator<int>>{}) | weft::collect())).empty());
  int object = 0;
  auto refer = [&]() -> async_generator<int&> { co_yield object; };
  auto set = [](int& one) { ++one; };
  co_await (merge(refer(), refer()) | for_each(set));
  EXPECT_EQ(object, 2);
}

TEST(merge, calls_of_the_function_never_overlap_and_sources_wait_for_it) {
  virtual_clock time;
  int inside = 0, sum = 0;
  auto slow = [&](int value) -> task<> {
    EXPECT_EQ(++inside, 1);
    co_await weft::sleep_for(10ms);
    --inside;
    sum += value;
  };
  auto all = [&]() -> task<> {
    co_await (merge(every(1ms, 1, 3), every(1ms, 10, 3), every(1ms, 100, 3)) | for_each(slow));
  };
  EXPECT_TRUE(run_timed(time, all()));
  EXPECT_EQ(sum, 6 + 33 + 303);
  EXPECT_EQ(time.elapsed(), 91ms);
}

TEST(merge, ends_when_the_function_wants_no_more) {
  virtual_clock time;
  std::vector<int> seen;
  auto two = [&](int value) {
    seen.push_back(value);
    return seen.size() < 2;
  };
  auto all = [&]() -> task<> {
    co_await (merge(every(2ms, 10, 100), every(3ms, 20, 100), every(1h, 0, 1)) | for_each(two));
  };
  EXPECT_TRUE(run_timed(time, all()));
  EXPECT_EQ(seen, (std::vector<int>{10, 20}));
  EXPECT_EQ(time.elapsed(), 3ms);
  EXPECT_EQ(time.armed(), 0U);

  // One that waits for its turn meanwhile does not get it.
  seen.clear();
  auto slow = [&](int value) -> task<bool> {
    seen.push_back(value);
    co_await weft::sleep_for(10ms);
    co_return false;
  };
  auto crowd = [&]() -> task<> {
    co_await (merge(every(1ms, 1, 2), every(2ms, 2, 2), every(3ms, 3, 2)) | for_each(slow));
  };
  EXPECT_TRUE(run_timed(time, crowd()));
  EXPECT_EQ(seen, (std::vector<int>{1}));
}

TEST(merge, a_failure_of_a_source_or_of_the_function_stops_the_others) {
  virtual_clock time;
  std::atomic<int> alive{0};
  auto held = [&]() -> async_generator<int> {
    const test::counted one{alive};
    co_await weft::sleep_for(1h);
    co_yield 1;
  };
  auto ignore = [](int) {};
  auto source_fails = [&]() -> task<> { co_await (merge(held(), fail_after(1ms), held()) | for_each(ignore)); };
  EXPECT_THROW(run_timed(time, source_fails()).value(), std::runtime_error);
  EXPECT_EQ(alive, 0);
  auto breaks = [](int) { throw std::out_of_range{"function"}; };
  auto function_fails = [&]() -> task<> { co_await (merge(held(), every(1ms, 0, 5)) | for_each(breaks)); };
  EXPECT_THROW(run_timed(time, function_fails()).value(), std::out_of_range);
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(time.elapsed(), 2ms);
  EXPECT_EQ(time.armed(), 0U);
}

std::atomic<int> lost{0};

TEST(merge, a_later_failure_is_a_lost_error) {
  virtual_clock time;
  lost = 0;
  const auto before = weft::set_lost_error_handler([](const char* operation, const std::exception_ptr&) noexcept {
    EXPECT_STREQ(operation, "merge");
    ++lost;
  });
  auto fails_when_stopped = []() -> async_generator<int> {
    auto nap = []() -> task<> { co_await weft::sleep_for(1h); };
    const auto how = co_await weft::as_result(nap());
    EXPECT_TRUE(how.is_stopped());
    throw std::runtime_error{"in its cleanup"};
    co_yield 0;
  };
  auto ignore = [](int) {};
  auto all = [&]() -> task<> { co_await (merge(fails_when_stopped(), fail_after(1ms)) | for_each(ignore)); };
  EXPECT_THROW(run_timed(time, all()).value(), std::runtime_error);
  EXPECT_EQ(lost, 1);
  weft::set_lost_error_handler(before);
}

TEST(merge, a_stop_before_and_during) {
  virtual_clock time;
  std::atomic<int> alive{0};
  auto held = [&](std::chrono::milliseconds d) -> async_generator<int> {
    const test::counted one{alive};
    co_await weft::sleep_for(d);
    co_yield 1;
    co_yield 2;
  };
  auto slow = [&](int) -> task<> {
    const test::counted one{alive};
    co_await weft::sleep_for(10ms);
  };
  auto all = [&]() -> task<> { co_await (merge(held(1ms), held(1ms), held(1h)) | for_each(slow)); };
  // Each time that all waits is one more moment at which it is stopped.
  for (int moment = 0; moment != 6; ++moment) {
    int left = moment;
    const auto how = run_timed(time, all(), [&](auto& root) {
      if (left-- == 0) root.request_stop();
    });
    EXPECT_TRUE(how.is_stopped());
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(time.armed(), 0U);
  }
  EXPECT_TRUE(test::run_stopped(time, all()).is_stopped());
  EXPECT_EQ(alive, 0);
}

TEST(merge, sources_on_several_threads_and_a_stop) {
  for (int round = 0; round != test::rounds(300); ++round) {
    weft::new_thread_executor threads;
    weft::stop_source source;
    std::atomic<int> inside{0}, ended{0};
    auto hop = [&]() -> task<int> {
      co_await weft::resume_on(threads);
      co_await weft::yield();
      co_return 1;
    };
    auto from_threads = [&](int count) -> async_generator<int> {
      for (int i = 0; i != count; ++i) co_yield co_await hop();
    };
    int sum = 0;
    auto add = [&](int value) -> task<> {
      EXPECT_EQ(++inside, 1);
      co_await weft::yield();
      sum += value;
      --inside;
    };
    auto all = [&]() -> task<> { co_await (merge(from_threads(3), from_threads(3), from_threads(3)) | for_each(add)); };
    weft::start(
        threads, all(),
        [&](result<void> how) {
          EXPECT_TRUE(how.is_stopped() || sum == 9);
          ++ended;
        },
        source.token());
    if (round % 2 == 0) source.request_stop();
    test::until([&] { return ended == 1; });
  }
}

WEFT_TEST("for_each: consumes one source, too") {
  auto numbers = []() -> async_generator<int> {
    for (int i = 0;; ++i) co_yield i;
  };
  int sum = 0;
  auto until_ten = [&](int value) -> task<bool> {
    sum += value;
    co_return value < 10;
  };
  co_await (numbers() | for_each(until_ten));
  EXPECT_EQ(sum, 55);
  auto add = [&](int value) { sum += value; };
  co_await (numbers() | weft::take(3) | for_each(add));
  EXPECT_EQ(sum, 58);
}

}  // namespace
