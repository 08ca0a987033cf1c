// Forks on a pool, which any of its threads may take: who runs them, what they hold, how they end.
#include <weft/combine.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>

#include <atomic>
#include <chrono>
#include <latch>
#include <memory_resource>
#include <optional>
#include <semaphore>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/weft_test.hpp"

namespace {

using test::gate;
using weft::as_result;
using weft::fork;
using weft::fork_status;
using weft::fork_view;
using weft::pool;
using weft::scope;
using weft::start_on;
using weft::sync_wait;
using weft::task;
using weft::with_scope;

// Keeps one of a pool's threads busy, until it goes.
class held_thread {
 public:
  explicit held_thread(pool& of) {
    auto hold = [](held_thread& mine) -> task<> {
      mine.is_held_.release();
      mine.may_go_.acquire();
      co_return;
    };
    weft::start(of.executor(), hold(*this), [this](weft::result<void>) { has_gone_.release(); });
    is_held_.acquire();
  }
  held_thread(const held_thread&) = delete;
  ~held_thread() {
    may_go_.release();
    has_gone_.acquire();
  }

 private:
  std::binary_semaphore is_held_{0}, may_go_{0}, has_gone_{0};
};

// Of those that may be used by several threads at once, and how much of it is in use.
class shared_memory final : public std::pmr::memory_resource {
 public:
  std::atomic<std::size_t> live{0}, most{0};

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    const std::size_t now = live.fetch_add(1) + 1;
    for (std::size_t seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
    }
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* block, std::size_t bytes, std::size_t alignment) override {
    live.fetch_sub(1);
    std::pmr::new_delete_resource()->deallocate(block, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

// ---- who runs them ------------------------------------------------------------------------------------------------------

// Each blocks its thread until all are there.
task<> meet_on_threads(unsigned count) {
  std::latch all{static_cast<std::ptrdiff_t>(count)};
  auto body = [&](scope& s) -> task<> {
    for (unsigned i = 1; i != count; ++i) s.fork([&] { all.arrive_and_wait(); });
    all.arrive_and_wait();
    co_return;
  };
  co_await with_scope(body);
}

TEST(scope_pool, forks_run_on_all_threads_at_once) {
  pool threads{{.threads = 4}};
  sync_wait(start_on(threads.executor(), meet_on_threads(4)));
}

TEST(scope_pool, so_they_do_on_the_executor_of_a_priority) {
  pool threads{{.threads = 3, .priorities = 3}};
  sync_wait(start_on(threads.executor(2), meet_on_threads(3)));
}

TEST(scope_pool, children_of_when_all_meet_on_the_executor_of_a_priority) {
  pool threads{{.threads = 3, .priorities = 3}};
  std::latch all{3};
  auto meet = [&]() -> task<> {
    all.arrive_and_wait();
    co_return;
  };
  auto parent = [&]() -> task<> { co_await weft::when_all(meet(), meet(), meet()); };
  sync_wait(start_on(threads.executor(0), parent()));
}

TEST(scope_pool, who_awaits_one_that_nobody_took_runs_it) {
  pool threads{{.threads = 2}};
  auto body = [](scope& s) -> task<> {
    bool ran = false;
    fork<std::thread::id> one = s.fork([&] {
      ran = true;
      return std::this_thread::get_id();
    });
    EXPECT_FALSE(ran);
    EXPECT_EQ(one.status(), fork_status::running);
    EXPECT_EQ(s.children(), 1u);
    const auto mine = std::this_thread::get_id();
    EXPECT_EQ(co_await std::move(one), mine);
    EXPECT_EQ(std::this_thread::get_id(), mine);
    EXPECT_EQ(s.children(), 0u);
  };
  auto parent = [&](std::optional<held_thread>& other) -> task<> {
    other.emplace(threads);  // the one that does not run this
    co_await with_scope(body);
  };
  std::optional<held_thread> other;
  sync_wait(start_on(threads.executor(), parent(other)));
}

// Such a one may wait, fail and stop, as any.
TEST(scope_pool, one_that_is_taken_back_may_wait_or_fail) {
  pool threads{{.threads = 2}};
  std::optional<held_thread> other;
  gate door;
  auto waits = [&]() -> task<int> {
    co_await door;
    co_return 3;
  };
  auto opens = [&]() -> task<> {
    door.open();
    co_return;
  };
  auto fails = []() -> task<> {
    throw std::runtime_error{"no"};
    co_return;
  };
  auto body = [&](scope& s) -> task<int> {
    other.emplace(threads);
    s.fork(opens());
    fork<int> three = s.fork(waits());
    EXPECT_EQ(co_await three, 3);  // it waits; then the run loop comes to the other
    fork_view<> failed = s.fork(fails()).view();
    const auto how = co_await as_result(failed);
    EXPECT_TRUE(!how.has_value() && !how.is_stopped());
    EXPECT_EQ(failed.status(), fork_status::failed);
    co_return co_await std::move(three);
  };
  EXPECT_THROW(sync_wait(start_on(threads.executor(), with_scope(body))), std::runtime_error);
}

TEST(scope_pool, a_pool_of_one_thread_runs_them_at_once) {
  pool threads{{.threads = 1}};
  auto body = [](scope& s) -> task<> {
    bool ran = false;
    fork<> one = s.fork([&] { ran = true; });
    EXPECT_TRUE(ran);
    EXPECT_TRUE(one.done());
    co_return;
  };
  sync_wait(start_on(threads.executor(), with_scope(body)));
}

TEST(scope_pool, below_memory_for_one_thread_they_run_at_once) {
  pool threads{{.threads = 2}};
  test::counting_resource memory;
  auto body = [](scope& s) -> task<> {
    bool ran = false;
    s.fork([&] { ran = true; });
    EXPECT_TRUE(ran);
    co_return;
  };
  sync_wait(start_on(threads.executor(), with_scope({.memory = &memory}, body)));
  EXPECT_EQ(memory.live, 0u);
}

// Its scope's executor is the pool, its own is not.
TEST(scope_pool, a_fork_by_who_runs_elsewhere_runs_there_at_once) {
  pool threads{{.threads = 2}};
  weft::strand line{threads.executor()};
  auto body = [&](scope& s) -> task<> {
    auto forks = [&s]() -> task<> {
      bool ran = false;
      s.fork([&] { ran = true; });
      EXPECT_TRUE(ran);
      co_return;
    };
    co_await s.fork_on(line, forks);
  };
  sync_wait(start_on(threads.executor(), with_scope(body)));
}

// In one scope, from several threads at once.
TEST(scope_pool, forks_fork_in_the_scope_that_they_are_in) {
  pool threads{{.threads = 4}};
  std::atomic<int> ran{0};
  struct calls {
    static task<> spread(scope& s, std::atomic<int>& count, int depth) {
      ++count;
      if (depth == 0) co_return;
      s.fork(spread(s, count, depth - 1));
      fork<> other = s.fork(spread(s, count, depth - 1));
      if (depth % 2 == 0) co_await other;
    }
  };
  auto body = [&](scope& s) -> task<> {
    for (int i = 0; i != 4; ++i) s.fork(calls::spread(s, ran, 7));
    co_return;
  };
  sync_wait(start_on(threads.executor(), with_scope(body)));
  EXPECT_EQ(ran, 4 * 255);
}

// Each one forks the next and ends; what was posted to the same thread has its turn all the same.
TEST(scope_pool, forks_that_fork_for_ever_let_others_run) {
  pool threads{{.threads = 2}};
  std::optional<held_thread> other;
  bool over = false;
  struct calls {
    static task<> next(scope& s, const bool& over) {
      if (!over) s.fork(next(s, over));
      co_return;
    }
  };
  auto body = [&](scope& s) -> task<> {
    other.emplace(threads);
    s.fork(calls::next(s, over));
    for (int turn = 0; turn != 10; ++turn) co_await weft::yield();
    over = true;
  };
  sync_wait(start_on(threads.executor(), with_scope(body)));
}

// ---- what they hold -----------------------------------------------------------------------------------------------------

TEST(scope_pool, a_loop_of_forks_that_nobody_takes_holds_few_frames) {
  pool threads{{.threads = 2}};
  std::optional<held_thread> other;
  shared_memory memory;
  constexpr int count = 10'000;
  int ran = 0;
  auto body = [&](scope& s) -> task<> {
    for (int i = 0; i != count; ++i) s.fork([&ran] { ++ran; });
    EXPECT_GT(ran, count - 100);  // most have run here and now
    co_return;
  };
  auto parent = [&]() -> task<> {
    other.emplace(threads);
    co_await with_scope({.memory = &memory, .memory_is_shared = true}, body);
  };
  sync_wait(start_on(threads.executor(), parent()));
  EXPECT_EQ(ran, count);
  EXPECT_LT(memory.most, 200u);
  EXPECT_EQ(memory.live, 0u);
}

TEST(scope_pool, forks_in_forks_in_forks) {
  pool threads{{.threads = 4}};
  struct calls {
    static task<long> fib(int n) {
      if (n < 2) co_return n;
      auto body = [n](scope& s) -> task<long> {
        fork<long> one = s.fork(fib(n - 1));
        const long other = co_await fib(n - 2);
        co_return other + co_await std::move(one);
      };
      co_return co_await with_scope(body);
    }
    static task<long> deep(int n) {
      if (n == 0) co_return 0;
      auto body = [n](scope& s) -> task<long> { co_return 1 + co_await s.fork(deep(n - 1)); };
      co_return co_await with_scope(body);
    }
  };
  EXPECT_EQ(sync_wait(start_on(threads.executor(), calls::fib(9))), 34);
  EXPECT_EQ(sync_wait(start_on(threads.executor(), calls::deep(150))), 150);  // deeper than forks nest
}

// ---- how they end -------------------------------------------------------------------------------------------------------

TEST(scope_pool, a_failure_stops_those_that_have_not_begun) {
  pool threads{{.threads = 2}};
  std::optional<held_thread> other;
  gate never;
  int passed = 0;
  auto waits = [&]() -> task<> {
    co_await never;
    ++passed;
  };
  auto body = [&](scope& s) -> task<> {
    other.emplace(threads);
    std::vector<fork<>> all;
    for (int i = 0; i != 5; ++i) all.push_back(s.fork(waits()));
    all.back().request_stop();  // not begun either
    throw std::runtime_error{"no"};
    co_return;
  };
  EXPECT_THROW(sync_wait(start_on(threads.executor(), with_scope(body))), std::runtime_error);
  EXPECT_EQ(passed, 0);
}

TEST(scope_pool, those_that_wait_to_be_taken_count_as_children) {
  pool threads{{.threads = 2}};
  std::optional<held_thread> other;
  int ran = 0;
  auto body = [&](scope& s) -> task<> {
    other.emplace(threads);
    for (int i = 0; i != 2; ++i) s.fork([&ran] { ++ran; });
    EXPECT_EQ(s.children(), 2u);
    EXPECT_THROW(s.fork([&ran] { ++ran; }), weft::error);
    co_await s.room();
    s.fork([&ran] { ++ran; });
  };
  sync_wait(start_on(threads.executor(), with_scope({.max_children = 2}, body)));
  EXPECT_EQ(ran, 3);
}

// The others have nothing to do, and would take a fork at once.
TEST(scope_pool, one_that_is_forked_here_is_not_for_others_to_take_before_it_waits) {
  pool threads{{.threads = 3}};
  int ended = 0;
  auto body = [&](scope& s) -> task<> {
    for (int i = 0; i != test::rounds(2000); ++i) {
      const auto mine = std::this_thread::get_id();
      bool began = false;  // without a lock
      fork<> one = s.fork_here([&]() -> task<> {
        EXPECT_EQ(std::this_thread::get_id(), mine);
        for (int spins = 0; spins != 50; ++spins) std::atomic_signal_fence(std::memory_order_seq_cst);
        began = true;
        co_await weft::yield();
        ++ended;
      });
      EXPECT_TRUE(began);
      co_await std::move(one);
    }
  };
  sync_wait(start_on(threads, with_scope(body)));
  EXPECT_EQ(ended, test::rounds(2000));
}

TEST(scope_pool, forks_that_were_made_here_may_end_anywhere) {
  pool threads{{.threads = 2}};
  std::atomic<int> sum{0};
  auto leaf = [&](int n) -> task<> {
    co_await weft::yield();
    sum += n;
  };
  auto body = [&](scope& s) -> task<> {
    for (int i = 0; i != 100; ++i) s.fork_here(leaf, i);
    co_return;
  };
  sync_wait(start_on(threads, with_scope(body)));
  EXPECT_EQ(sum, 4950);
}

}  // namespace
