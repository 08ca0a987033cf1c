// when_all as fork and join: children that borrow their parent's root, and the ways in which they get one of their own.
#include <weft/combine.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <numeric>
#include <ranges>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <weft/future.hpp>
#include <weft/observe.hpp>
#include <weft/on_scope_exit.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/with.hpp>

#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::as_result;
using weft::pool;
using weft::result;
using weft::start_on;
using weft::sync_wait;
using weft::task;
using weft::when_all;

task<long> fib(int n) {
  if (n < 2) co_return n;
  auto [a, b] = co_await when_all(fib(n - 1), fib(n - 2));
  co_return a + b;
}

// ---- on one thread ------------------------------------------------------------------------------------------------------

WEFT_TEST("join: children that never wait run in their parent's root, in turn") {
  weft::detail::root* const mine = weft::detail::current_root();
  std::vector<int> order;
  const auto child = [&](int n) -> task<weft::detail::root*> {
    order.push_back(n);
    co_return weft::detail::current_root();
  };
  const auto [a, b, c] = co_await when_all(child(1), child(2), child(3));
  EXPECT_EQ(a, mine);
  EXPECT_EQ(b, mine);
  EXPECT_EQ(c, mine);
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
}

WEFT_TEST("join: one that waits gets a root of its own, and those after it start") {
  test::gate door;
  weft::detail::root* const mine = weft::detail::current_root();
  int begun = 0;
  const auto waits = [&]() -> task<bool> {
    ++begun;
    co_await door;
    co_return weft::detail::current_root() != mine&& weft::detail::current_root() -> parent == mine;
  };
  const auto opens = [&]() -> task<int> {
    const int seen = begun;
    door.open();
    co_return seen;
  };
  const auto [a, b, seen] = co_await when_all(waits(), waits(), opens());
  EXPECT_TRUE(a);
  EXPECT_TRUE(b);
  EXPECT_EQ(seen, 2);
  EXPECT_EQ(weft::detail::current_root(), mine);
}

// Joins in joins, of which the innermost child waits: all that borrow get roots, each part of the next.
task<int> waits_at_the_bottom(int depth, test::gate& door) {
  if (depth == 0) {
    co_await door;
    int levels = 0;
    for (auto* one = weft::detail::current_root(); one != nullptr; one = one->parent) ++levels;
    co_return levels;
  }
  const auto zero = []() -> task<int> { co_return 0; };
  if (depth % 2 == 0) {
    auto [a, b] = co_await when_all(waits_at_the_bottom(depth - 1, door), zero());
    co_return a + b;
  }
  auto [a, b] = co_await when_all(zero(), waits_at_the_bottom(depth - 1, door));
  co_return a + b;
}

WEFT_TEST("join: a child that waits deep inside gives all their roots") {
  for (const int depth : {1, 2, 3, 10, 1000}) {
    test::gate door;
    auto opens = [&]() -> task<> {
      door.open();
      co_return;
    };
    const auto [levels, _] = co_await when_all(waits_at_the_bottom(depth, door), opens());
    EXPECT_EQ(levels, depth + 2);
  }
}

TEST(join, recursion_of_a_hundred_thousand_levels_needs_no_stack) {
  struct tree {
    static task<long> grow(long depth) {
      if (depth == 0) co_return 0;
      auto [below, one] = co_await when_all(grow(depth - 1), leaf());
      co_return below + one;
    }
    static task<long> leaf() { co_return 1; }
  };
  test::on_small_stack([] {
    EXPECT_EQ(sync_wait(tree::grow(100'000)), 100'000);
    const pool p{{.threads = 1}};
    EXPECT_EQ(sync_wait(start_on(p.executor(), tree::grow(100'000))), 100'000);
  });
}

WEFT_TEST("join: the first failure in order is thrown, also one of a child that borrows") {
  const auto fails = [](const char* what) -> task<int> {
    throw std::runtime_error{what};
    co_return 0;
  };
  const auto value = []() -> task<int> { co_return 1; };
  test::gate door;
  const auto fails_later = [&]() -> task<int> {
    co_await door;
    throw std::runtime_error{"later"};
  };
  const auto opens = [&]() -> task<int> { co_return (door.open(), 1); };
  auto message = [](auto all) -> task<std::string> {
    try {
      co_await std::move(all);
    } catch (const std::runtime_error& failure) {
      co_return failure.what();
    }
    co_return "nothing";
  };
  EXPECT_EQ(co_await message(when_all(value(), fails("b"), fails("c"))), "b");
  EXPECT_EQ(co_await message(when_all(fails_later(), fails("b"), opens())), "later");
}

WEFT_TEST("join: results that only move, references, void") {
  int number = 7;
  const auto moves = []() -> task<std::unique_ptr<int>> { co_return std::make_unique<int>(1); };
  const auto refers = [&]() -> task<int&> { co_return number; };
  const auto nothing = []() -> task<> { co_return; };
  auto [a, b, c] = co_await when_all(moves(), refers(), nothing());
  EXPECT_EQ(*a, 1);
  EXPECT_EQ(&b.get(), &number);
  static_assert(std::is_same_v<decltype(c), std::monostate>);
}

// An argument lives in its child's frame, and goes with it when the parent has nothing left to do but to wait.
struct alignas(128) line {
  explicit line(int n) : number{n} {}
  line(line&& other) noexcept : number{other.number} {
    if (reinterpret_cast<std::uintptr_t>(this) % alignof(line) != 0) number = -1;
  }
  int number;
};

task<line> lined(int n) { co_return line{n}; }
task<int> give(int n) { co_return n; }

WEFT_TEST("join: results of a range may want more than a frame's alignment") {
  for (int count = 0; count != 40; ++count) {
    std::vector<task<line>> lines;
    for (int i = 0; i != count; ++i) lines.push_back(lined(i));
    const std::vector<line> all = co_await when_all(std::move(lines));
    EXPECT_EQ(all.size(), static_cast<std::size_t>(count));
    for (int i = 0; i != count; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)].number, i);
  }
}

WEFT_TEST("join: what a range needs comes from the scope's memory, and goes back there") {
  std::vector<std::byte> room(1 << 20);
  std::pmr::monotonic_buffer_resource mine{room.data(), room.size(), std::pmr::null_memory_resource()};
  auto in_there = [&](weft::scope&) -> task<> {
    std::vector<task<int>> some;
    for (int i = 0; i != 100; ++i) some.push_back(give(i));
    const std::vector<int> all = co_await when_all(std::move(some));
    EXPECT_EQ(all.back(), 99);
  };
  co_await weft::with_scope({.memory = &mine}, in_there);
  bool threw = false;
  std::pmr::monotonic_buffer_resource small{room.data(), 4096, std::pmr::null_memory_resource()};
  auto too_many = [&](weft::scope&) -> task<> {
    try {
      std::vector<task<int>> some;
      for (int i = 0; i != 20; ++i) some.push_back(give(i));
      co_await when_all(std::move(some));
    } catch (const std::bad_alloc&) {
      threw = true;
    }
  };
  co_await weft::with_scope({.memory = &small}, too_many);
  EXPECT_TRUE(threw);
}

WEFT_TEST("join: a sibling may wait for what an argument of one that has ended held") {
  const auto holds = [](weft::promise<int> held, int n) -> task<int> {
    static_cast<void>(held);
    co_return n;
  };
  const auto waits = [](weft::future<int>& here) -> task<std::string> {
    const result<int> broken = co_await as_result(std::move(here));
    co_return broken.has_value() ? "set" : "broken";
  };
  const auto both = [&]() -> task<std::string> {
    weft::promise<int> first, third;
    weft::future<int> a = first.get_future(), b = third.get_future();
    auto [one, broken, three, also] =
        co_await when_all(holds(std::move(first), 1), waits(a), holds(std::move(third), 3), waits(b));
    EXPECT_EQ(one + three, 4) << "what they gave was kept";
    co_return broken + " " + also;
  };
  EXPECT_EQ(co_await both(), "broken broken");
  for (const unsigned threads : {1u, 2u, 3u}) {
    const pool p{{.threads = threads}};
    for (int i = 0; i != test::rounds(100); ++i) EXPECT_EQ(co_await start_on(p.executor(), both()), "broken broken");
  }
}

// A short range keeps its children's frames, a long one gives each back.
WEFT_TEST("join: in a range a sibling may wait for what an argument of one that has ended held") {
  const auto holds = [](weft::promise<int> held) -> task<std::string> {
    static_cast<void>(held);
    co_return "ended";
  };
  const auto waits = [](weft::future<int> here) -> task<std::string> {
    const result<int> broken = co_await as_result(std::move(here));
    co_return broken.has_value() ? "set" : "broken";
  };
  const auto all = [&](std::size_t pairs) -> task<std::size_t> {
    std::vector<task<std::string>> some;
    for (std::size_t i = 0; i != pairs; ++i) {
      weft::promise<int> held;
      some.push_back(waits(held.get_future()));
      some.insert(some.begin() + static_cast<std::ptrdiff_t>(i / 2), holds(std::move(held)));
    }
    const std::vector<std::string> how = co_await when_all(std::move(some));
    co_return static_cast<std::size_t>(std::ranges::count(how, "broken"));
  };
  for (const std::size_t pairs : {1U, 4U, 8U, 9U, 40U}) EXPECT_EQ(co_await all(pairs), pairs);
  for (const unsigned threads : {1u, 3u}) {
    const pool p{{.threads = threads}};
    for (int i = 0; i != test::rounds(100); ++i)
      for (const std::size_t pairs : {4U, 9U}) EXPECT_EQ(co_await start_on(p.executor(), all(pairs)), pairs);
  }
}

// A search whose children are few at each level, and fewer than the range that they are filtered from.
task<long> queens(unsigned row, unsigned columns, unsigned left, unsigned right) {
  constexpr unsigned size = 7;
  if (row == size) co_return 1;
  const auto is_safe = [&](unsigned column) { return ((columns | left | right) >> column & 1U) == 0; };
  const auto below = [&](unsigned column) {
    const unsigned here = 1U << column;
    return queens(row + 1, columns | here, (left | here) << 1, (right | here) >> 1);
  };
  auto places = std::views::iota(0U, size) | std::views::filter(is_safe) | std::views::transform(below);
  std::array<long, size> ways;
  const auto end = co_await when_all(places, ways.begin());
  if (row % 3 == 1) co_await weft::yield();
  co_return std::accumulate(ways.begin(), end, 0L);
}

TEST(join, ranges_of_few_are_stolen_and_wait) {
  for (const unsigned threads : {1u, 2u, 4u}) {
    const pool p{{.threads = threads}};
    for (int i = 0; i != test::rounds(10); ++i) EXPECT_EQ(sync_wait(start_on(p.executor(), queens(0, 0, 0, 0))), 40);
  }
}

WEFT_TEST(
    "join: results that are given back when the parent waits are there once, also where a sibling fails or is "
    "stopped") {
  const auto counted = std::make_shared<int>(7);
  const auto gives = [](std::shared_ptr<int> what) -> task<std::shared_ptr<int>> { co_return what; };
  const auto yields = []() -> task<> { co_await weft::yield(); };
  const auto fails_later = []() -> task<> {
    co_await weft::yield();
    throw std::runtime_error{"later"};
  };
  const auto stops_later = []() -> task<> {
    co_await weft::yield();
    co_await weft::detail::ends_stopped{};
  };
  {
    auto [one, none] = co_await when_all(gives(counted), yields());
    EXPECT_EQ(one, counted);
    EXPECT_EQ(counted.use_count(), 2);
  }
  const auto with = [&](task<> other) -> task<> { co_await when_all(gives(counted), std::move(other)); };
  const result<void> failed = co_await as_result(with(fails_later()));
  EXPECT_TRUE(failed.exception() != nullptr);
  const result<void> stopped = co_await as_result(with(stops_later()));
  EXPECT_TRUE(stopped.is_stopped());
  EXPECT_EQ(counted.use_count(), 1);
}

WEFT_TEST("join: one that is made and never awaited destroys its tasks") {
  std::atomic<int> alive{0};
  {
    const auto holds = [](test::counted) -> task<int> { co_return 1; };
    auto never = when_all(holds(test::counted{alive}), holds(test::counted{alive}));
    EXPECT_EQ(alive, 2);
    [[maybe_unused]] auto moved = std::move(never);
    EXPECT_EQ(alive, 2);
  }
  EXPECT_EQ(alive, 0);
  co_return;
}

// ---- stops ----------------------------------------------------------------------------------------------------------------

// All children are told at once, also those whose root they have got only by waiting: the first goes on cleaning up until
// the second has ended.
WEFT_TEST("join: a stop reaches all children at once") {
  weft::stop_source source;
  test::gate never;
  bool second_ended = false;
  const auto second = [&]() -> task<> {
    struct at_end {
      bool& ended;
      ~at_end() { ended = true; }
    } at_end{second_ended};
    co_await never;
  };
  const auto first = [&]() -> task<> {
    auto wait_for_second = [&]() -> task<> {
      while (!second_ended) co_await weft::yield();
    };
    co_await weft::on_scope_exit(wait_for_second);
    co_await never;
  };
  const auto stops = [&]() -> task<> {
    source.request_stop();
    co_return;
  };
  auto all = [&]() -> task<> { co_await when_all(first(), second(), stops()); };
  const auto ended = co_await as_result(weft::with_stop(source.token(), all));
  EXPECT_TRUE(ended.is_stopped());
  EXPECT_TRUE(second_ended);
}

WEFT_TEST("join: a stop before, while it is begun with, and after") {
  for (const int when : {0, 1, 2, 3}) {
    weft::stop_source source;
    test::gate never;
    int begun = 0;
    const auto child = [&](int which) -> task<> {
      ++begun;
      if (which == when) source.request_stop();
      co_await never;
    };
    auto all = [&]() -> task<> { co_await when_all(child(1), child(2), child(3)); };
    if (when == 0) source.request_stop();
    const auto ended = co_await as_result(weft::with_stop(source.token(), all));
    EXPECT_TRUE(ended.is_stopped()) << when;
    EXPECT_EQ(begun, 3) << "all begin, and end at their first wait";
  }
}

// ---- what belongs to a root -------------------------------------------------------------------------------------------------

weft::local<int> level{0};

WEFT_TEST("join: what a child binds, its siblings do not see") {
  test::gate door;
  const auto reads = [&]() -> task<int> {
    const int before = level.get();
    co_await door;
    co_return before * 100 + level.get();
  };
  const auto binds = [&]() -> task<int> {
    auto inside = [&]() -> task<int> {
      const auto [a, b] = co_await when_all(reads(), reads());
      co_return a == b ? a : -1;
    };
    co_return co_await weft::with_local(level, 7, inside);
  };
  const auto opens = [&]() -> task<> { co_return door.open(); };
  const auto [a, b, c, _] = co_await when_all(binds(), reads(), reads(), opens());
  EXPECT_EQ(a, 707);
  EXPECT_EQ(b, 0);
  EXPECT_EQ(c, 0);
  EXPECT_EQ(level.get(), 0);
}

WEFT_TEST("join: a child's shield is not its siblings'") {
  weft::stop_source source;
  test::gate door;
  bool shielded_went_on = false;
  const auto shielded = [&]() -> task<> {
    auto inside = [&]() -> task<> {
      co_await door;
      shielded_went_on = true;
    };
    co_await weft::shielded(inside());
  };
  const auto polls = [&]() -> task<bool> {
    source.request_stop();
    auto checks = []() -> task<> { co_await weft::check_stop(); };
    const bool stops = (co_await as_result(checks())).is_stopped();
    door.open();
    co_return stops;
  };
  bool polled = false;
  auto all = [&]() -> task<> {
    auto keep = [&]() -> task<> { polled = co_await polls(); };
    co_await when_all(shielded(), keep());
  };
  const auto ended = co_await as_result(weft::with_stop(source.token(), all));
  EXPECT_TRUE(polled);
  EXPECT_TRUE(shielded_went_on);
  EXPECT_TRUE(ended.is_stopped() || ended.has_value());
}

WEFT_TEST("join: a child may open a scope, hop, and clean up") {
  const pool p{{.threads = 2}};
  weft::executor* const home = weft::current_env().executor;
  int cleaned = 0;
  const auto scoped = [&]() -> task<int> {
    auto body = [](weft::scope& s) -> task<int> {
      auto one = s.fork([] { return 20; });
      co_return co_await std::move(one) + 1;
    };
    co_return co_await weft::with_scope(body);
  };
  const auto hops = [&]() -> task<int> {
    co_await weft::resume_on(p.executor());
    auto [a, b] = co_await when_all(fib(5), fib(6));
    co_return static_cast<int>(a + b);
  };
  const auto cleans = [&]() -> task<int> {
    auto note = [&]() -> task<> {
      ++cleaned;
      co_await weft::yield();
      ++cleaned;
    };
    co_await weft::on_scope_exit(note);
    co_return 3;
  };
  const auto continues = [&]() -> task<int> { co_return co_await (fib(7) | weft::continue_on(p.executor())); };
  const auto [a, b, c, d] = co_await when_all(scoped(), hops(), cleans(), continues());
  EXPECT_EQ(a, 21);
  EXPECT_EQ(b, 13);
  EXPECT_EQ(c, 3);
  EXPECT_EQ(d, 13);
  EXPECT_EQ(cleaned, 2);
  EXPECT_EQ(weft::current_env().executor, home);
}

WEFT_TEST("join: an async stack passes through it, from a child that borrows and from one with its own root") {
  const auto depth = []() -> task<std::size_t> { co_return weft::async_stack().size(); };
  const auto nested = [&]() -> task<std::size_t> {
    auto [a, b] = co_await when_all(depth(), depth());
    EXPECT_EQ(a, b);
    co_return a;
  };
  const std::size_t here = weft::async_stack().size();
  test::gate door;
  const auto later = [&]() -> task<std::size_t> {
    co_await door;
    co_return weft::async_stack().size();
  };
  const auto opens = [&]() -> task<> { co_return door.open(); };
  const auto [a, b, _] = co_await when_all(nested(), later(), opens());
  EXPECT_EQ(a, here + 2);
  EXPECT_EQ(b, here + 1);
}

// ---- on a pool ----------------------------------------------------------------------------------------------------------------

// A child that has not waited runs in its parent's root until a cleanup behind it needs a root of its own. By then the task that it
// cleans up behind has ended, and its caller looks at it when the parent's root may be another thread's.
TEST(join, a_cleanup_is_the_first_to_need_a_root) {
  const auto cleans_up = []() -> task<> { co_await weft::yield(); };
  const auto has_cleanup = [&](bool fails) -> task<std::string> {
    co_await weft::on_scope_exit(cleans_up());
    if (fails) throw std::runtime_error{"as told"};
    co_return std::string(100, 'x');
  };
  const auto child = [&](bool fails) -> task<std::size_t> {
    const std::string text = co_await has_cleanup(fails);
    co_await weft::yield();
    co_return text.size();
  };
  const auto all = [&](bool fails) -> task<std::size_t> {
    const auto [a, b, c] = co_await when_all(child(fails), child(false), child(fails));
    co_return a + b + c;
  };
  for (const unsigned threads : {1U, 2U}) {
    pool p{{.threads = threads}};
    for (int i = 0; i != test::rounds(200); ++i) {
      EXPECT_EQ(sync_wait(start_on(p.executor(), all(false))), 300U);
      EXPECT_THROW(sync_wait(start_on(p.executor(), all(true))), std::runtime_error);
    }
  }
}

TEST(join, fib_on_any_number_of_threads) {
  for (const unsigned threads : {1u, 2u, 8u}) {
    const pool p{{.threads = threads}};
    EXPECT_EQ(sync_wait(start_on(p.executor(), fib(16))), 987);
    EXPECT_EQ(sync_wait(start_on(p.executor(), fib(22))), 17711);
  }
}

// Each meets the other, so they run at once: one of them was stolen.
WEFT_TEST("join: children are taken by other workers") {
  const pool p{{.threads = 2}};
  std::atomic<int> there{0};
  const auto meets = [&]() -> task<std::thread::id> {
    ++there;
    test::until([&] { return there == 2; });
    co_return std::this_thread::get_id();
  };
  const auto both = [&]() -> task<bool> {
    const auto [a, b] = co_await when_all(meets(), meets());
    co_return a != b;
  };
  EXPECT_TRUE(co_await start_on(p.executor(), both()));
}

WEFT_TEST("join: a range is taken in pieces") {
  for (const unsigned threads : {1u, 2u, 4u}) {
    const pool p{{.threads = threads}};
    const int count = test::rounds(5000);
    const auto spins = [](int n) -> task<int> {
      const std::atomic<int> some{200};
      for (int i = 0; i != some; ++i) {
      }
      co_return n;
    };
    const auto all = [&]() -> task<long> {
      std::vector<task<int>> tasks;
      for (int i = 0; i != count; ++i) tasks.push_back(spins(i));
      const std::vector<int> values = co_await when_all(std::move(tasks));
      for (int i = 0; i != count; ++i) EXPECT_EQ(values[static_cast<std::size_t>(i)], i);
      co_return std::accumulate(values.begin(), values.end(), 0L);
    };
    EXPECT_EQ(co_await start_on(p.executor(), all()), long{count} * (count - 1) / 2);
  }
}

// Leaves wait, yield, fail or are stopped, in trees whose children are stolen meanwhile.
task<int> tree(int depth, unsigned seed, test::gate* never, std::atomic<int>& leaves) {
  if (depth == 0) {
    ++leaves;
    switch (seed % 7) {
      case 0: co_await weft::yield(); break;
      case 1: co_await weft::yield(), co_await weft::yield(); break;
      case 2:
        if (never != nullptr) co_await *never;
        break;
      case 3: throw std::runtime_error{"leaf"};
      default: break;
    }
    co_return 1;
  }
  auto a = as_result(tree(depth - 1, seed * 5 + 1, never, leaves));
  auto b = tree(depth - 1, seed * 3 + 2, never, leaves);
  auto c = as_result(std::move(b));
  auto [x, y] = co_await when_all(std::move(a), std::move(c));
  co_return std::move(x).value_or(0) + std::move(y).value_or(0);
}

int leaves_that_fail(int depth, unsigned seed) {
  if (depth == 0) return seed % 7 == 3 ? 1 : 0;
  return leaves_that_fail(depth - 1, seed * 5 + 1) + leaves_that_fail(depth - 1, seed * 3 + 2);
}

TEST(join, trees_of_leaves_that_wait_and_fail) {
  constexpr int depth = 9;
  for (const unsigned threads : {1u, 2u, 8u}) {
    const pool p{{.threads = threads}};
    for (int round = 0; round != test::rounds(30); ++round) {
      const auto seed = static_cast<unsigned>(round);
      std::atomic<int> leaves{0};
      EXPECT_EQ(sync_wait(start_on(p.executor(), tree(depth, seed, nullptr, leaves))),
                (1 << depth) - leaves_that_fail(depth, seed));
      EXPECT_EQ(leaves, 1 << depth);
    }
  }
}

TEST(join, trees_that_are_stopped_meanwhile) {
  constexpr int depth = 8;
  const pool p{{.threads = 4}};
  for (int round = 0; round != test::rounds(100); ++round) {
    std::atomic<int> leaves{0};
    weft::stop_source source;
    test::gate never;
    std::jthread stopper{[&] {
      test::until([&] { return leaves > round * 2; });
      source.request_stop();
    }};
    auto grow = [&] { return tree(depth, static_cast<unsigned>(round) * 7 + 2, &never, leaves); };
    auto stoppable = [&]() -> task<int> { co_return co_await weft::with_stop(source.token(), grow); };
    const result<int> ended = sync_wait(as_result(start_on(p.executor(), stoppable())));
    EXPECT_TRUE(ended.has_value() || ended.is_stopped());
    EXPECT_EQ(leaves, 1 << depth) << "none is left out, and none begun twice";
  }
}

class join_misuse : public testing::Test {
 protected:
  join_misuse() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(join_misuse, on_a_pool_below_memory_that_is_not_shared) {
  const auto all = [] {
    const pool p{{.threads = 1}};
    std::pmr::monotonic_buffer_resource memory;
    auto both = []() -> task<long> { co_return co_await fib(5); };
    auto below = [&]() -> task<long> { co_return co_await weft::with_memory(&memory, both); };
    sync_wait(start_on(p.executor(), below()));
  };
  EXPECT_DEATH(all(), "weft: when_all on a pool, below memory that was not declared shared");
}

}  // namespace
