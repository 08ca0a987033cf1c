#include <weft/executor_set.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <weft/combine.hpp>
#include <weft/pool.hpp>
#include <weft/with.hpp>

#include "support/weft_test.hpp"

namespace {

using weft::executor_of;
using weft::executor_set;
using weft::find_executor;
using weft::task;
using weft::with_executors;

struct disk_pool : weft::pool {
  using pool::pool;
};

WEFT_TEST("executor_set: finds each by its type, also an executor of the program's own") {
  const weft::pool compute{{.threads = 1}};
  weft::strand account{compute.executor()};
  weft::manual_executor loop;
  const executor_set places{compute, account, loop};
  EXPECT_EQ(&places.get<weft::pool>(), &compute.executor());
  EXPECT_EQ(&places.get<weft::strand>(), &account);
  EXPECT_EQ(&places.get<weft::manual_executor>(), &loop);
  co_return;
}

WEFT_TEST("executor_set: what is bound is found by all below, on whatever thread, and by nobody behind it") {
  weft::pool compute{{.threads = 2}};
  disk_pool disk{{.threads = 1}};
  const executor_set places{compute, disk};
  const auto leaf = [&]() -> task<bool> {
    co_await weft::resume_on(executor_of<disk_pool>());
    const bool on_disk = disk.is_inside();
    co_await weft::resume_on(executor_of<weft::pool>());
    co_return on_disk&& compute.is_inside();
  };
  const auto serve = [&](int n) -> task<int> {
    EXPECT_FALSE(compute.is_inside()) << "where it runs does not change";
    const auto [a, b] = co_await weft::when_all(leaf(), weft::start_on(executor_of<weft::pool>(), leaf()));
    co_return a&& b ? n : 0;
  };
  EXPECT_EQ(co_await with_executors(places, serve, 7), 7);
  EXPECT_EQ(find_executor<weft::pool>(), nullptr);
}

WEFT_TEST("executor_set: one further in hides those of its types, and no others") {
  weft::manual_executor outer, inner;
  weft::inline_executor here;
  const executor_set both{outer, here};
  const executor_set one{inner};
  const weft::local<int> number{1};
  const auto innermost = [&]() -> task<> {
    EXPECT_EQ(&executor_of<weft::manual_executor>(), &inner);
    EXPECT_EQ(&executor_of<weft::inline_executor>(), &here);
    EXPECT_EQ(*number, 5) << "locals are bound beside them";
    co_return;
  };
  const auto middle = [&]() -> task<> {
    const auto in_one = [&]() { return with_executors(one, innermost); };
    co_await weft::with_local(number, 5, in_one);
    EXPECT_EQ(&executor_of<weft::manual_executor>(), &outer);
  };
  co_await with_executors(both, middle);
}

class executor_set_misuse : public testing::Test {
 protected:
  executor_set_misuse() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(executor_set_misuse, none_is_bound) {
  EXPECT_DEATH(static_cast<void>(executor_of<weft::pool>()), "weft: executor_of was asked for a type");
}

}  // namespace
