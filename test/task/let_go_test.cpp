// Rows: each holds the one before, as its parameter. Letting go of the last takes no machine stack, however long the row.
#include <weft/weft.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "support/weft_test.hpp"

namespace {

using weft::async_generator;
using weft::fork_view;
using weft::shared_task;
using weft::sync_wait;
using weft::task;

constexpr int links = test::rounds(1'000'000), large_links = links / 5;  // a large one takes some 400 bytes

// ---- what is let go of ----------------------------------------------------------------------------------------------

task<int> zero() { co_return 0; }
task<int> next(task<int> before) { co_return 1 + co_await std::move(before); }
task<int> row_of_tasks() {
  task<int> last = zero();
  for (int i = 0; i != links; ++i) last = next(std::move(last));
  return last;
}
task<int> row_of_pipes() {
  task<int> last = zero();
  for (int i = 0; i != links; ++i) last = std::move(last) | weft::then([](int n) { return n + 1; });
  return last;
}

shared_task<int> shared_zero() { co_return 0; }
shared_task<int> shared_next(shared_task<int> before) { co_return 1 + co_await before; }
shared_task<int> row_of_shared_tasks() {
  shared_task<int> last = shared_zero();
  for (int i = 0; i != large_links; ++i) last = shared_next(std::move(last));
  return last;
}

async_generator<int> ones() {
  for (;;) co_yield 1;
}
async_generator<int> row_of_generators() {
  async_generator<int> last = ones();
  for (int i = 0; i != large_links; ++i) last = weft::take(std::move(last), 1);
  return last;
}

task<int> next_of_view(fork_view<int> before) { co_return 1 + co_await before; }
fork_view<int> row_of_views(weft::scope& s) {
  fork_view<int> last = s.fork(zero()).view();
  for (int i = 0; i != large_links; ++i) last = s.fork(next_of_view(std::move(last))).view();
  return last;
}
task<int> views_in_a_scope(weft::scope& s) {
  const fork_view<int> last = row_of_views(s);
  co_return co_await last;
}
// In each other, too: a fork that holds a shared task that holds a task.
task<int> next_of_three(fork_view<int> before, shared_task<int> beside, task<int> other) {
  co_return 1 + co_await before + co_await beside + co_await std::move(other);
}
task<int> mixed_in_a_scope(weft::scope& s) {
  fork_view<int> last = s.fork(zero()).view();
  for (int i = 0; i != large_links / 4; ++i)
    last = s.fork(next_of_three(std::move(last), shared_next(shared_zero()), next(zero()))).view();
  co_return co_await last;
}

void let_go_of_unstarted() {
  static_cast<void>(row_of_tasks());
  static_cast<void>(row_of_pipes());
  static_cast<void>(row_of_shared_tasks());
  static_cast<void>(row_of_generators());
}

// ---- where ----------------------------------------------------------------------------------------------------------

TEST(let_go, rows_that_never_began) {
  test::on_small_stack([] { let_go_of_unstarted(); });
}

TEST(let_go, rows_that_never_began_in_a_fiber) {
  const auto body = [](weft::scope& s) -> task<> {
    auto fiber = s.go([] { let_go_of_unstarted(); });
    co_await std::move(fiber);
  };
  sync_wait(weft::with_scope(body));
}

TEST(let_go, a_row_of_shared_tasks_that_have_ended) {
  test::on_small_stack([] {
    const shared_task<int> last = row_of_shared_tasks();
    EXPECT_EQ(sync_wait(last), large_links);
  });
}

TEST(let_go, rows_of_tasks_that_have_ended) {
  test::on_small_stack([] {
    EXPECT_EQ(sync_wait(row_of_tasks()), links);
    EXPECT_EQ(sync_wait(row_of_pipes()), links);
  });
}

TEST(let_go, a_generator_behind_a_row_of_others) {
  test::on_small_stack([] {
    const auto consumer = []() -> task<int> {
      auto last = row_of_generators();
      co_return *co_await last.next();
    };
    EXPECT_EQ(sync_wait(consumer()), 1);
  });
}

TEST(let_go, a_row_of_forks_that_hold_views) {
  test::on_small_stack([] { EXPECT_EQ(sync_wait(weft::with_scope(views_in_a_scope)), large_links); });
}

TEST(let_go, a_row_of_forks_that_hold_views_in_a_fiber) {
  const auto body = [](weft::scope& s) -> task<> {
    auto fiber = s.go([&] {
      const fork_view<int> last = row_of_views(s);
      EXPECT_EQ(weft::await(last), large_links);
    });
    co_await std::move(fiber);
  };
  sync_wait(weft::with_scope(body));
}

TEST(let_go, a_row_of_forks_that_hold_views_on_a_pool) {
  const weft::pool pool{{.threads = 2}};
  EXPECT_EQ(pool.run(weft::with_scope(views_in_a_scope)), large_links);
}

TEST(let_go, a_row_of_forks_that_hold_several) {
  test::on_small_stack([] { EXPECT_EQ(sync_wait(weft::with_scope(mixed_in_a_scope)), large_links / 4 * 3); });
}

// ---- in which order -------------------------------------------------------------------------------------------------

// Where they are few, as the language says: what a parameter holds goes before the parameter that stands in front of it.
// g++ 12 destroys parameters of coroutines from front to back.
TEST(let_go, a_few_are_destroyed_where_they_stand) {
  struct says {
    std::vector<int>* into;
    int what;
    says(std::vector<int>& list, int n) : into{&list}, what{n} {}
    says(says&& other) noexcept : into{std::exchange(other.into, nullptr)}, what{other.what} {}
    ~says() {
      if (into != nullptr) into->push_back(what);
    }
  };
  const auto holds = [](says, task<> inner) -> task<> { co_await std::move(inner); };
  const auto innermost = [](says) -> task<> { co_return; };
  std::vector<int> order;
  static_cast<void>(holds(says{order, 3}, holds(says{order, 2}, innermost(says{order, 1}))));
#if defined(__clang__)
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
#else
  std::sort(order.begin(), order.end());
  EXPECT_EQ(order, (std::vector{1, 2, 3}));  // each once
#endif
}

// Also where a row is so long that most is put off: all is gone when the outermost is.
TEST(let_go, nothing_is_left_when_the_outermost_is_gone) {
  const auto held = std::make_shared<int>();
  const auto one = [](std::shared_ptr<int>, task<> before) -> task<> { co_await std::move(before); };
  const auto first = []() -> task<> { co_return; };
  task<> last = first();
  for (int i = 0; i != 1000; ++i) last = one(held, std::move(last));
  EXPECT_EQ(held.use_count(), 1001);
  last = task<>{};
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
