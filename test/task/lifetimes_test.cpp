// All headers, and what makes coroutines of what it is given, where clang watches lifetimes: WEFT_CHECK_LIFETIMES.
#include <weft/weft.hpp>

#include <utility>
#include <vector>

#include "support/weft_test.hpp"

namespace {

using weft::scope;
using weft::task;

task<int> number(int n) { co_return n; }
weft::async_generator<int> numbers(int n) {
  for (int i = 0; i != n; ++i) co_yield i;
}

WEFT_TEST("lifetimes: a registry runs tasks, functions and fibers") {
  weft::registry jobs;
  auto body = [&](scope& s) -> task<int> {
    auto of_function = jobs.fork(s, number, 1);
    auto of_task = jobs.fork(s, number(2));
    auto plain = jobs.fork(s, [](int n) { return n; }, 3);
    auto fiber = jobs.go(s, [] { return weft::await(number(4)); });
    co_return co_await std::move(of_function.work) + co_await std::move(of_task.work) + co_await std::move(plain.work) +
        co_await std::move(fiber.work);
  };
  EXPECT_EQ(co_await weft::with_scope(body), 10);
}

WEFT_TEST("lifetimes: fibers, also those that are started again") {
  auto again = [](const std::exception_ptr&) { return weft::on_failure::restart; };
  auto body = [](scope& s) -> task<int> { co_return co_await s.go([](int n) { return weft::await(number(n)); }, 5); };
  EXPECT_EQ(co_await weft::with_scope({.on_error = weft::supervise(again)}, body), 5);
  EXPECT_EQ(co_await weft::with_scope(body), 5);
}

WEFT_TEST("lifetimes: sequences that are merged") {
  int sum = 0;
  auto add = [&](int n) -> task<> {
    sum += n;
    co_return;
  };
  std::vector<weft::async_generator<int>> both;
  both.push_back(numbers(3));
  both.push_back(numbers(4));
  co_await weft::for_each(weft::merge(std::move(both)), add);
  EXPECT_EQ(sum, 9);
}

}  // namespace
