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

// ---- what stands between a merge and its function -------------------------------------------------------------------

TEST(merge, goes_through_transform_filter_and_take_as_one_source_does) {
  virtual_clock time;
  auto all = []() -> task<> {
    auto even = [](int n) { return n % 2 == 0; };
    auto slowly_doubled = [](int n) -> task<int> {
      co_await weft::yield();
      co_return 2 * n;
    };
    auto text = [](int n) { return std::to_string(n); };
    const auto values =
        co_await (merge(every(3ms, 10, 9), every(2ms, 20, 9)) | weft::filter(even) | weft::transform(slowly_doubled) |
                  weft::transform(text) | weft::take(4) | weft::collect());
    EXPECT_EQ(values, (std::vector<std::string>{"40", "20", "44", "24"}));
  };
  EXPECT_TRUE(run_timed(time, all()));
  EXPECT_EQ(time.elapsed(), 9ms) << "the sources are stopped behind the last that is taken";
}

TEST(merge, of_which_none_is_taken_runs_no_source) {
  virtual_clock time;
  auto all = []() -> task<> {
    const auto none = co_await (merge(every(3ms, 10, 9), fail_after(0ms)) | weft::take(0) | weft::collect());
    EXPECT_TRUE(none.empty());
  };
  EXPECT_TRUE(run_timed(time, all()));
  EXPECT_EQ(time.elapsed(), 0ms);
}

TEST(merge, functions_between_are_called_in_turn) {
  virtual_clock time;
  auto all = []() -> task<> {
    int inside = 0;
    auto alone = [&](int n) -> task<int> {
      EXPECT_EQ(++inside, 1);
      co_await weft::sleep_for(5ms);
      --inside;
      co_return n;
    };
    auto seen = [&](int) { EXPECT_EQ(inside, 0); };
    co_await (merge(every(1ms, 0, 3), every(1ms, 10, 3)) | weft::transform(alone) | for_each(seen));
  };
  EXPECT_TRUE(run_timed(time, all()));
}

TEST(merge, is_accumulated_and_ended_by_its_function) {
  virtual_clock time;
  auto all = []() -> task<> {
    auto sum = [](int so_far, int n) -> task<int> { co_return so_far + n; };
    const auto both = co_await (merge(every(1ms, 1, 3), every(1ms, 10, 2)) | weft::accumulate(0, sum));
    EXPECT_EQ(both, 6 + 21);
    auto two = [n = 0](int) mutable { return ++n < 2; };
    co_await (merge(every(1ms, 1, 3), every(1ms, 10, 2)) | weft::take(3) | for_each(two));
  };
  EXPECT_TRUE(run_timed(time, all()));
  EXPECT_EQ(time.elapsed(), 3ms + 1ms);
}

TEST(merge, what_a_function_between_throws_is_thrown) {
  virtual_clock time;
  auto all = []() -> task<> {
    auto fails = [](int n) { return n == 11 ? throw std::runtime_error{"between"} : n; };
    const auto how =
        co_await as_result(merge(every(1ms, 1, 9), every(1ms, 10, 9)) | weft::transform(fails) | weft::collect());
    EXPECT_THROW((void)how.value(), std::runtime_error);
  };
  EXPECT_TRUE(run_timed(time, all()));
  EXPECT_EQ(time.elapsed(), 2ms);
}

// Every adaptor, in both forms, behind an async_generator and a merge, of a value, references and what only moves.
template <class T, class Make>
task<std::size_t> through_all(Make make) {
  std::size_t seen = 0;
  auto same = [](T&& one) -> T { return static_cast<T&&>(one); };
  auto all = [](const auto&) { return true; };
  auto count = [](std::size_t n, T&&) { return n + 1; };
  auto note = [&](T&&) { ++seen; };
  co_await (make() | weft::transform(same) | weft::filter(all) | weft::take(9) | for_each(note));
  seen += co_await (make() | weft::accumulate(std::size_t{0}, count));
  seen += co_await weft::accumulate(make(), std::size_t{0}, count);
  co_await for_each(weft::take(weft::filter(weft::transform(make(), same), all), 9), note);
  if constexpr (!std::is_reference_v<T>) {
    const auto values = co_await weft::collect(make());
    const auto some = co_await (make() | weft::take(9) | weft::collect());
    seen += values.size() + some.size();
  }
  co_return seen;
}

WEFT_TEST("merge: all adaptors take all streams") {
  int object = 3;
  auto values = []() -> async_generator<int> { co_yield 1; };
  auto references = [&]() -> async_generator<int&> { co_yield object; };
  auto constants = [&]() -> async_generator<const int&> { co_yield object; };
  auto owners = []() -> async_generator<std::unique_ptr<int>> { co_yield std::make_unique<int>(1); };
  auto both_values = [&] { return merge(values(), values()); };
  auto both_references = [&] { return merge(references(), references()); };
  auto both_constants = [&] { return merge(constants(), constants()); };
  auto both_owners = [&] { return merge(owners(), owners()); };
  EXPECT_EQ(co_await through_all<int>(values), 6U);
  EXPECT_EQ(co_await through_all<int&>(references), 4U);
  EXPECT_EQ(co_await through_all<const int&>(constants), 4U);
  EXPECT_EQ(co_await through_all<std::unique_ptr<int>>(owners), 6U);
  EXPECT_EQ(co_await through_all<int>(both_values), 12U);
  EXPECT_EQ(co_await through_all<int&>(both_references), 8U);
  EXPECT_EQ(co_await through_all<const int&>(both_constants), 8U);
  EXPECT_EQ(co_await through_all<std::unique_ptr<int>>(both_owners), 12U);
  EXPECT_EQ(co_await weft::accumulate(merge(values(), values()), 0), 2);
}

}  // namespace
