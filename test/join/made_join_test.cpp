// when_all(n, make): children that are made as they begin, by the thread that runs them.
#include <weft/combine.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <iterator>
#include <memory>
#include <memory_resource>
#include <new>
#include <numeric>
#include <ranges>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
#include <weft/future.hpp>
#include <weft/observe.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/with.hpp>

#include "support/tasks.hpp"
#include "support/weft_test.hpp"

namespace {

using test::give;
using weft::as_result;
using weft::pool;
using weft::result;
using weft::start_on;
using weft::sync_wait;
using weft::task;
using weft::when_all;

// ---- on one thread ------------------------------------------------------------------------------------------------------

WEFT_TEST("made: gives the values in order, in a vector, where they are wanted, or nowhere") {
  const auto child = [](std::size_t i) { return give(static_cast<int>(i)); };
  for (std::size_t count = 0; count != 40; ++count) {
    std::vector<int> expected(count), values(count, -1), appended;
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(co_await when_all(count, child), expected);
    EXPECT_TRUE(co_await when_all(count, child, values.begin()) == values.end());
    EXPECT_EQ(values, expected);
    co_await when_all(count, child, std::back_inserter(appended));
    EXPECT_EQ(appended, expected);
    std::size_t ran = 0;
    const auto silent = [&](std::size_t i) -> task<> {
      EXPECT_EQ(i, ran++);
      co_return;
    };
    co_await when_all(count, silent, std::ignore);
    EXPECT_EQ(ran, count);
  }
}

WEFT_TEST("made: references, what only moves, and what is no task") {
  std::array<int, 3> numbers{1, 2, 3};
  const auto refer = [&](std::size_t i) -> task<int&> { co_return numbers[i]; };
  for (int& one : co_await when_all(numbers.size(), refer)) ++one;
  EXPECT_EQ(numbers, (std::array{2, 3, 4}));
  const auto owned = [](std::size_t i) -> task<std::unique_ptr<std::size_t>> {
    co_return std::make_unique<std::size_t>(i);
  };
  EXPECT_EQ(*(co_await when_all(3, owned)).back(), 2);
  std::array<test::gate, 2> doors;
  for (auto& one : doors) one.open();
  const auto door = [&](std::size_t i) { return doors[i].pass(); };
  co_await when_all(doors.size(), door, std::ignore);
}

// Counts those that exist.
class counted {
 public:
  counted(int& alive, std::size_t number) noexcept : number{number}, alive_{&alive} { ++alive; }
  counted(counted&& other) noexcept : number{other.number}, alive_{other.alive_} { ++*alive_; }
  counted& operator=(counted&&) = delete;
  ~counted() { --*alive_; }

  std::size_t number;

 private:
  int* alive_;
};

WEFT_TEST("made: a function gets each value, in order, when all have ended and none has failed") {
  std::vector<std::size_t> children(5);
  std::iota(children.begin(), children.end(), std::size_t{0});
  int alive = 0;
  for (std::size_t failing = 0; failing != 6; ++failing) {  // 5: none
    std::size_t ran = 0;
    std::vector<std::size_t> got;
    const auto child = [&](std::size_t i) -> task<counted> {
      ++ran;
      if (i == failing) throw std::runtime_error{"this one"};
      co_return counted{alive, i};
    };
    const auto put = [&](counted&& one) {
      EXPECT_EQ(ran, 5u);
      got.push_back(one.number);
    };
    const auto made = [&]() -> task<> { co_await when_all(5, child, put); };
    const auto ranged = [&]() -> task<> { co_await when_all(children | std::views::transform(child), put); };
    const result<void> how = co_await as_result(made());
    EXPECT_EQ(how.exception() != nullptr, failing != 5);
    EXPECT_EQ(ran, 5u);
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(got, failing == 5 ? children : std::vector<std::size_t>{});
    ran = 0;
    got.clear();
    EXPECT_EQ((co_await as_result(ranged())).exception() != nullptr, failing != 5);
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(got, failing == 5 ? children : std::vector<std::size_t>{});
  }

  const auto nothing = [](std::size_t) -> task<> { co_return; };
  int calls = 0;
  co_await when_all(3, nothing, [&](auto) { ++calls; });
  EXPECT_EQ(calls, 3);
  const auto throws_at_second = [&]() -> task<> {
    const auto child = [&](std::size_t i) -> task<counted> { co_return counted{alive, i}; };
    co_await when_all(5, child, [](counted&& one) {
      if (one.number == 1) throw std::runtime_error{"put"};
    });
  };
  EXPECT_TRUE((co_await as_result(throws_at_second())).exception() != nullptr);
  EXPECT_EQ(alive, 0);
}

WEFT_TEST("made: one of them exists at a time, as long as none waits") {
  std::atomic<int> alive{0};
  int most = 0;
  const auto holds = [&](test::counted) -> task<> {
    most = std::max(most, alive.load());
    co_return;
  };
  co_await when_all(100, [&](std::size_t) { return holds(test::counted{alive}); }, std::ignore);
  EXPECT_EQ(most, 1);
  EXPECT_EQ(alive, 0);
}

WEFT_TEST("made: all run in their parent's root, and are made there") {
  weft::detail::root* const mine = weft::detail::current_root();
  const auto child = [&](std::size_t) -> task<weft::detail::root*> {
    EXPECT_EQ(weft::detail::current_root(), mine);
    return []() -> task<weft::detail::root*> { co_return weft::detail::current_root(); }();
  };
  for (weft::detail::root* const its : co_await when_all(3, child)) EXPECT_EQ(its, mine);
}

WEFT_TEST("made: after one that waits the others are made, each in a root of its own") {
  for (const std::size_t at : {std::size_t{0}, std::size_t{2}, std::size_t{4}}) {
    test::gate door;
    std::vector<std::size_t> order;
    const auto child = [&](std::size_t i) -> task<std::size_t> {
      order.push_back(i);
      return [](std::size_t n, test::gate* waits_for) -> task<std::size_t> {
        if (waits_for != nullptr) co_await *waits_for;
        co_return n;
      }(i, i == at ? &door : nullptr);
    };
    const auto opens = [&]() -> task<> {
      EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
      door.open();
      co_return;
    };
    const auto all = [&]() -> task<std::vector<std::size_t>> { co_return co_await when_all(5, child); };
    const auto [values, _] = co_await when_all(all(), opens());
    EXPECT_EQ(values, (std::vector<std::size_t>{0, 1, 2, 3, 4}));
  }
}

WEFT_TEST("made: a failure to make one is that one's, the others are made, and the first in order is thrown") {
  for (const unsigned threads : {0u, 1u, 3u}) {
    std::unique_ptr<pool> there;
    if (threads != 0) there = std::make_unique<pool>(weft::pool_options{.threads = threads});
    // Bit i: child i can't be made; bit i + 3: it fails.
    for (unsigned which = 1; which != 64; ++which) {
      std::atomic<unsigned> ran{0};
      const auto child = [&](std::size_t i) -> task<std::size_t> {
        if ((which >> i & 1U) != 0) throw std::runtime_error{std::to_string(i)};
        return [](std::size_t n, bool fails, std::atomic<unsigned>& count) -> task<std::size_t> {
          ++count;
          if (fails) throw std::runtime_error{std::to_string(n)};
          co_return n;
        }(i, (which >> (i + 3) & 1U) != 0, ran);
      };
      std::vector<std::size_t> values;
      const auto all = [&]() -> task<> { co_await when_all(3, child, std::back_inserter(values)); };
      const auto somewhere = [&]() -> task<> {
        if (there != nullptr)
          co_await start_on(there->executor(), all());
        else
          co_await all();
      };
      const result<void> how = co_await as_result(somewhere());
      std::string expected;
      unsigned made = 0;
      for (unsigned i = 3; i-- != 0;) {
        if (((which | which >> 3) >> i & 1U) != 0) expected = std::to_string(i);
        if ((which >> i & 1U) == 0) ++made;
      }
      EXPECT_EQ(ran, made);
      EXPECT_TRUE(values.empty());
      EXPECT_TRUE(how.exception() != nullptr);
      if (how.exception() == nullptr) continue;
      try {
        std::rethrow_exception(how.exception());
      } catch (const std::runtime_error& e) {
        EXPECT_EQ(e.what(), expected);
      }
    }
  }
}

WEFT_TEST("made: nothing is made where it is not awaited, nor where there are too many") {
  bool made = false;
  const auto child = [&](std::size_t) {
    made = true;
    return give(1);
  };
  {
    auto never = when_all(20, child);
    [[maybe_unused]] auto moved = std::move(never);
  }
  EXPECT_THROW(static_cast<void>(when_all(~std::size_t{0}, child)), std::bad_alloc);
  EXPECT_FALSE(made);
  auto later = when_all(3, child);
  auto moved = std::move(later);
  const std::vector<int> expected(3, 1);
  EXPECT_EQ(co_await std::move(moved), expected);
}

WEFT_TEST("made: a stop reaches those that wait, and those that are made later") {
  weft::stop_source source;
  test::gate never;
  int ended = 0;
  const auto child = [&](std::size_t i) -> task<> {
    return [](std::size_t n, test::gate& door, weft::stop_source& stop, int& count) -> task<> {
      const auto waits = [&]() -> task<> { co_await door; };
      if (n == 1) stop.request_stop();
      EXPECT_TRUE((co_await as_result(waits())).is_stopped());
      ++count;
      co_await weft::check_stop();
    }(i, never, source, ended);
  };
  const auto all = [&]() -> task<> { co_await when_all(4, child, std::ignore); };
  EXPECT_TRUE((co_await as_result(weft::with_stop(source.token(), all))).is_stopped());
  EXPECT_EQ(ended, 4);
}

// What makes a child is its parent's code: also where it asks for a root of its own, which its parent has lent so far.
WEFT_TEST("made: what makes them may need a root for the parent") {
  const auto inner = [](int base) -> task<int> {
    weft::detail::root* const first = weft::detail::current_root();
    const bool borrows =
        (first->before_wait & weft::detail::root::is_lent) != 0;  // the second one does not, for the first has waited
    const auto child = [&](std::size_t i) {
      const weft::detail::root* const mine = i == 1 ? &weft::detail::own_root() : weft::detail::current_root();
      EXPECT_EQ(mine == first, i == 0 || !borrows);
      return give(base + static_cast<int>(i));
    };
    const std::vector<int> values = co_await when_all(3, child);
    EXPECT_EQ(weft::detail::current_root() == first, !borrows);
    co_await weft::yield();
    co_return values[0] + values[1] + values[2];
  };
  const auto [a, b] = co_await when_all(inner(1), inner(10));
  EXPECT_EQ(a + b, 39);
  const std::vector<int> nested =
      co_await when_all(2, [&](std::size_t i) { return inner(static_cast<int>(10 * i) + 1); });
  EXPECT_EQ(nested[0] + nested[1], 42);
}

WEFT_TEST("made: an async stack passes through it, from a child, and from what makes one") {
  const std::size_t here = weft::async_stack().size();
  test::gate door;
  std::array<std::size_t, 3> making{}, running{};
  const auto child = [&](std::size_t i) -> task<> {
    making[i] = weft::async_stack().size();
    return [](std::size_t& depth, test::gate* opens, test::gate* waits) -> task<> {
      if (opens != nullptr) opens->open();
      if (waits != nullptr) co_await *waits;
      depth = weft::async_stack().size();
    }(running[i], i == 2 ? &door : nullptr, i == 1 ? &door : nullptr);
  };
  co_await when_all(3, child, std::ignore);
  EXPECT_EQ(running, (std::array{here + 1, here + 1, here + 1}));
  for (const std::size_t depth : making) EXPECT_GE(depth, here);
}

// ---- memory ---------------------------------------------------------------------------------------------------------------

// Gives nothing while it is told so.
class refusing final : public std::pmr::memory_resource {
 public:
  std::atomic<bool> refuses{false};
  std::atomic<int> blocks{0};

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    if (refuses) throw std::bad_alloc{};
    ++blocks;
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    --blocks;
    std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

WEFT_TEST("made: where there is no memory for a child, it fails by that; one that waits needs none") {
  refusing memory;
  const auto in_there = [&](weft::scope&) -> task<> {
    test::gate door;
    int ran = 0;
    const auto child = [&](std::size_t i) -> task<int> {
      return [](std::size_t n, test::gate& waits, int& count, refusing& from) -> task<int> {
        ++count;
        if (n == 2) {
          from.refuses = true;
          co_await waits;
        }
        co_return 1;
      }(i, door, ran, memory);
    };
    const auto all = [&]() -> task<> { co_await when_all(10, child, std::ignore); };
    const auto opens = [&]() -> task<> {
      memory.refuses = false;
      door.open();
      co_return;
    };
    const auto [how, _] = co_await when_all(as_result(all()), opens());
    EXPECT_THROW(how.value(), std::bad_alloc);
    EXPECT_EQ(ran, 3);
    memory.refuses = true;
    EXPECT_THROW(static_cast<void>(when_all(3, child)), std::bad_alloc);
    memory.refuses = false;
  };
  co_await weft::with_scope({.memory = &memory, .memory_is_shared = true}, in_there);  // so that no block is kept
  EXPECT_EQ(memory.blocks, 0);
}

task<std::size_t> tree(std::size_t depth) {
  if (depth == 0) co_return 1;
  const auto below = [depth](std::size_t i) { return tree(i == 0 ? depth - 1 : 0); };
  const std::vector<std::size_t> leaves = co_await when_all(3, below);
  co_return leaves[0] + leaves[1] + leaves[2];
}

TEST(made, recursion_of_a_hundred_thousand_levels_needs_no_stack) {
  test::on_small_stack([] {
    EXPECT_EQ(sync_wait(tree(100'000)), 200'001);
    const pool p{{.threads = 1}};
    EXPECT_EQ(sync_wait(start_on(p.executor(), tree(100'000))), 200'001);
  });
}

// ---- on a pool ----------------------------------------------------------------------------------------------------------------

WEFT_TEST("made: they are made and run by all threads, in pieces") {
  for (const unsigned threads : {1u, 2u, 4u}) {
    const pool p{{.threads = threads}};
    const std::size_t count = static_cast<std::size_t>(test::rounds(5000));
    const auto spins = [](std::size_t n) -> task<std::size_t> {
      const std::atomic<int> some{200};
      for (int i = 0; i != some; ++i) {
      }
      co_return n;
    };
    const auto all = [&]() -> task<std::vector<std::size_t>> { co_return co_await when_all(count, spins); };
    std::vector<std::size_t> expected(count);
    std::iota(expected.begin(), expected.end(), std::size_t{0});
    EXPECT_EQ(co_await start_on(p.executor(), all()), expected);
    EXPECT_EQ(co_await start_on(p.executor(), when_all(count, spins)), expected);
  }
}

// Each meets the other, so they run at once: one of them was stolen, and made there.
TEST(made, one_that_cannot_be_made_is_a_task_that_has_ended) {
  pool p{{.threads = 3}};
  const auto make = [](std::size_t i) -> task<> {
    if (i % 2 != 0) throw std::runtime_error{"odd"};
    return []() -> task<> { co_await weft::yield(); }();
  };
  const auto all = [&]() -> task<> { co_await when_all(64, make, std::ignore); };
  for (int round = 0; round != test::rounds(100); ++round) {
    EXPECT_THROW(sync_wait(start_on(p.executor(), all())), std::runtime_error);
    EXPECT_EQ(p.stats().live, 0);
  }
}

WEFT_TEST("made: a thread that takes one makes it") {
  const pool p{{.threads = 2}};
  std::atomic<int> there{0};
  const auto meets = [&](std::size_t) -> task<bool> {
    const unsigned maker = p.worker_id();
    ++there;
    test::until([&] { return there == 2; });
    return [](unsigned by, const pool& of) -> task<bool> { co_return of.worker_id() == by; }(maker, p);
  };
  const auto both = [&]() -> task<std::vector<bool>> { co_return co_await when_all(2, meets); };
  const std::vector<bool> expected(2, true);
  EXPECT_EQ(co_await start_on(p.executor(), both()), expected);
}

// Leaves wait, fail, can't be made, or are stopped, in trees whose children are stolen meanwhile.
task<int> wild(int depth, unsigned seed, test::gate* never, std::atomic<int>& leaves) {
  if (depth == 0) {
    ++leaves;
    if (seed % 7 == 0) co_await weft::yield();
    if (seed % 7 == 2 && never != nullptr) co_await *never;
    if (seed % 7 == 3) throw std::runtime_error{"leaf"};
    co_return 1;
  }
  const auto below = [&, depth, seed](std::size_t i) {
    const unsigned its = seed * 5 + 1 + static_cast<unsigned>(i);
    if (depth == 1 && its % 7 == 4) throw std::runtime_error{"not made"};
    return as_result(wild(depth - 1, its, never, leaves));
  };
  int all = 0;
  const auto sum = [&]() -> task<> {
    for (auto& one : co_await when_all(3, below)) all += std::move(one).value_or(0);
  };
  static_cast<void>(co_await as_result(sum()));
  co_return all;
}

TEST(made, trees_of_leaves_that_wait_and_fail) {
  for (const unsigned threads : {1u, 2u, 8u}) {
    const pool p{{.threads = threads}};
    int expected = -1;
    for (int round = 0; round != test::rounds(30); ++round) {
      std::atomic<int> leaves{0};
      const int sum = sync_wait(start_on(p.executor(), wild(6, 1, nullptr, leaves)));
      if (expected < 0) expected = sum;
      EXPECT_EQ(sum, expected);
      EXPECT_GT(leaves, sum);
    }
  }
}

TEST(made, trees_that_are_stopped_end) {
  for (const unsigned threads : {1u, 2u, 8u}) {
    const pool p{{.threads = threads}};
    for (int round = 0; round != test::rounds(30); ++round) {
      std::atomic<int> leaves{0};
      test::gate never;
      weft::stop_source source;
      const auto all = [&]() -> task<int> { co_return co_await wild(6, 1, &never, leaves); };
      const auto stops = [&]() -> task<> {
        co_await weft::yield();
        source.request_stop();
      };
      const auto both = [&]() -> task<> {
        static_cast<void>(co_await when_all(as_result(weft::with_stop(source.token(), all)), stops()));
      };
      sync_wait(start_on(p.executor(), both()));
      EXPECT_GT(leaves, 0);
    }
  }
}

}  // namespace
