// A worker's deque beyond its slots: by itself, on one thread, and below a recursion of forks. What threads do to each
// other in it, the model has.
#include "sched/deque.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <vector>
#include <weft/combine.hpp>
#include <weft/pool.hpp>

#include "support/weft_test.hpp"

namespace {

using weft::pool;
using weft::start_on;
using weft::sync_wait;
using weft::task;
using weft::when_all;
using weft::detail::deque;
using weft::detail::theft;

// ---- by itself ---------------------------------------------------------------------------------------------------------

struct numbered {
  std::size_t number;
};

class deque_alone : public testing::Test {
 protected:
  static constexpr std::size_t slots = 8, count = 1000;

  deque_alone() {
    for (std::size_t i = 0; i != count; ++i) all_.push_back({i});
    for (numbered& one : all_) push(one);
  }
  void push(numbered& one) { EXPECT_TRUE(jobs_.push(one) || jobs_.push_beyond(one)); }
  numbered* newest() {
    numbered* const one = jobs_.pop();
    return one != nullptr ? one : jobs_.pop_stored();
  }
  numbered* oldest() {
    numbered* one = nullptr;
    return jobs_.steal(one) == theft::done ? one : nullptr;
  }

  std::vector<numbered> all_;
  deque<numbered, slots> jobs_;
};

TEST_F(deque_alone, gives_its_owner_the_newest_first) {
  EXPECT_EQ(jobs_.size(), count);
  for (std::size_t i = count; i-- != 0;) {
    const numbered* const one = newest();
    ASSERT_NE(one, nullptr);
    EXPECT_EQ(one->number, i);
  }
  EXPECT_TRUE(jobs_.empty());
  EXPECT_EQ(newest(), nullptr);
}

TEST_F(deque_alone, gives_thieves_the_oldest_first) {
  for (std::size_t i = 0; i != count; ++i) {
    const numbered* const one = oldest();
    ASSERT_NE(one, nullptr);
    EXPECT_EQ(one->number, i);
  }
  EXPECT_TRUE(jobs_.empty());
  EXPECT_EQ(oldest(), nullptr);
}

TEST_F(deque_alone, keeps_the_order_while_both_take_and_more_comes) {
  std::size_t from = 0, to = count;
  for (std::size_t i = 0; to - from > 3; ++i) {
    EXPECT_EQ(newest()->number, --to);
    if (i % 3 == 0) {
      EXPECT_EQ(oldest()->number, from++);
    }
    if (i % 5 == 0) push(all_[to++]);
    EXPECT_EQ(jobs_.size(), to - from);
  }
}

TEST_F(deque_alone, gives_just_the_job_that_is_asked_for) {
  EXPECT_FALSE(jobs_.pop_stored(all_[count - 1])) << "it is in a slot";
  EXPECT_TRUE(jobs_.pop(all_[count - 1]));
  for (std::size_t i = 1; i != slots; ++i) jobs_.pop();
  while (jobs_.pop() != nullptr) {
  }
  const std::size_t left = jobs_.size();
  EXPECT_FALSE(jobs_.pop_stored(all_[left - 2])) << "it is not the newest";
  EXPECT_TRUE(jobs_.pop_stored(all_[left - 1]));
  EXPECT_EQ(newest()->number, left - 2);
}

// ---- below a recursion -------------------------------------------------------------------------------------------------

constexpr int deep = 5000;  // the pool's deques have 1024 slots

// Each level leaves a leaf for others; the innermost goes on when it has seen what it wants.
template <class Leaf, class Innermost>
task<int> nested(int depth, Leaf& leaf, Innermost& innermost) {
  if (depth == 0) co_return co_await innermost();
  auto [below, mine] = co_await when_all(nested(depth - 1, leaf, innermost), leaf());
  co_return below + mine;
}

TEST(deque, all_of_a_deep_recursion_is_for_others_to_take) {
  const pool p{{.threads = 2}};
  std::atomic<int> ran{0};
  auto leaf = [&]() -> task<int> {
    ran.fetch_add(1);
    co_return 1;
  };
  auto innermost = [&]() -> task<int> {
    test::until([&] { return ran == deep; });  // this worker is busy: the other one does them all
    co_return 0;
  };
  EXPECT_EQ(sync_wait(start_on(p.executor(), nested(deep, leaf, innermost))), deep);
}

TEST(deque, what_nobody_takes_runs_in_its_parents_root) {
  const pool p{{.threads = 1}};
  auto root_here = []() -> task<const void*> { co_return weft::detail::current_root(); };
  auto all = [&]() -> task<int> {
    const void* const mine = weft::detail::current_root();
    auto leaf = [&]() -> task<int> { co_return co_await root_here() == mine ? 1 : 0; };
    auto innermost = []() -> task<int> { co_return 0; };
    co_return co_await nested(deep, leaf, innermost);
  };
  EXPECT_EQ(sync_wait(start_on(p.executor(), all())), deep);
}

TEST(deque, what_is_left_by_parents_that_wait_is_run) {
  const pool p{{.threads = 1}};
  auto leaf = []() -> task<int> {
    co_await weft::yield();
    co_return 1;
  };
  auto innermost = []() -> task<int> {
    co_await weft::yield();
    co_return 0;
  };
  EXPECT_EQ(sync_wait(start_on(p.executor(), nested(deep, leaf, innermost))), deep);
}

WEFT_TEST("deque: many recursions at once, with more threads than cores") {
  const pool p{{.threads = 6}};
  std::atomic<int> ran{0};
  auto leaf = [&]() -> task<int> {
    ran.fetch_add(1, std::memory_order_relaxed);
    co_return 1;
  };
  auto innermost = [&]() -> task<int> {
    co_await weft::yield();
    co_return 0;
  };
  const int each = test::rounds(20) + 1;
  for (int i = 0; i != each; ++i) {
    const auto [a, b, c] = co_await when_all(start_on(p.executor(), nested(deep, leaf, innermost)),
                                             start_on(p.executor(), nested(deep, leaf, innermost)),
                                             start_on(p.executor(), nested(deep, leaf, innermost)));
    EXPECT_EQ(a + b + c, 3 * deep);
  }
  EXPECT_EQ(ran, 3 * deep * each);
}

}  // namespace
