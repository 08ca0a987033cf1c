// What ends first comes first: as_completed.
#include <weft/combine.hpp>

#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <vector>

#include "support/timed_root.hpp"
#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::as_result;
using weft::task;

task<int> number_after(std::chrono::milliseconds d, int value) {
  co_await weft::sleep_for(d);
  if (value < 0) throw std::runtime_error{"refused"};
  co_return value;
}
std::vector<task<int>> several() {
  std::vector<task<int>> all;
  all.push_back(number_after(30ms, 1));
  all.push_back(number_after(10ms, -1));
  all.push_back(number_after(20ms, 3));
  return all;
}

TEST(as_completed, gives_each_as_it_ends_and_a_failure_as_an_outcome) {
  test::virtual_clock time;
  auto all = []() -> task<> {
    std::vector<std::size_t> order;
    int sum = 0;
    auto take = [&](weft::completed<int> one) {
      order.push_back(one.index);
      sum += std::move(one.outcome).value_or(100);
    };
    co_await (weft::as_completed(several()) | weft::for_each(take));
    EXPECT_EQ(order, (std::vector<std::size_t>{1, 2, 0}));
    EXPECT_EQ(sum, 104);
    EXPECT_EQ((co_await (weft::as_completed(several()) | weft::collect())).size(), 3U);
    EXPECT_TRUE((co_await (weft::as_completed(std::vector<task<>>{}) | weft::collect())).empty());
  };
  EXPECT_TRUE(test::run_timed(time, all()));
  EXPECT_EQ(time.elapsed(), 60ms);
}
WEFT_TEST("as_completed: who wants no more, or throws, stops and joins the others") {
  int joined = 0;
  auto waits = [&](std::chrono::milliseconds d) -> task<int> {
    struct counts {
      int& to;
      ~counts() { ++to; }
    } const at_end{joined};
    co_await weft::sleep_for(d);
    co_return 1;
  };
  const auto all = [&] {
    std::vector<task<int>> those;
    for (const auto d : {1ms, 3'600'000ms, 3'600'000ms}) those.push_back(waits(d));
    return those;
  };
  int calls = 0;
  auto once = [&](weft::completed<int>) { return ++calls == 0; };
  co_await (weft::as_completed(all()) | weft::for_each(once));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(joined, 3);
  auto throws = [](weft::completed<int>) { throw std::runtime_error{"enough"}; };
  EXPECT_FALSE(co_await as_result(weft::as_completed(all()) | weft::for_each(throws)));
  EXPECT_EQ(joined, 6);
}

}  // namespace
