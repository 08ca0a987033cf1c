// Barriers and sequencers: numbers are claimed once, are published without holes, and nobody overwrites what is not read.
#include <weft/sequence.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>
#include <weft/channel.hpp>
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>
#include <weft/test.hpp>

#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::as_result;
using weft::await;
using weft::has_reached;
using weft::multi_producer_sequencer;
using weft::nothing_yet;
using weft::on;
using weft::scope;
using weft::select;
using weft::sequence_barrier;
using weft::sequence_number;
using weft::sequence_range;
using weft::single_producer_sequencer;
using weft::sync_wait;
using weft::task;
using weft::when_all;
using weft::with_scope;

// ---- numbers ----------------------------------------------------------------------------------------------------------------

TEST(sequence, which_is_later_is_said_by_the_difference) {
  EXPECT_TRUE(has_reached(5, 5) && has_reached(6, 5) && !has_reached(4, 5));
  EXPECT_TRUE(has_reached(0, nothing_yet) && !has_reached(nothing_yet, 0));
  EXPECT_TRUE(has_reached(3, sequence_number(-3)) && !has_reached(sequence_number(-3), 3));
}

TEST(sequence, a_range_is_walked_also_where_it_wraps) {
  const sequence_range range{sequence_number(-2), 4};
  std::vector<sequence_number> seen(range.begin(), range.end());
  EXPECT_EQ(seen, (std::vector<sequence_number>{sequence_number(-2), sequence_number(-1), 0, 1}));
  EXPECT_EQ(range.front(), sequence_number(-2));
  EXPECT_EQ(range.back(), 1u);
  EXPECT_EQ(range[2], 0u);
  EXPECT_EQ(range.size(), 4u);
  EXPECT_TRUE(sequence_range{}.empty());
}

// ---- barrier ----------------------------------------------------------------------------------------------------------------

WEFT_TEST("sequence_barrier: who waits goes on when its number is published, and no sooner") {
  sequence_barrier b;
  std::vector<int> order;
  auto waits = [&](sequence_number target, int name) -> task<> {
    EXPECT_TRUE(has_reached(co_await b.wait_until_published(target), target));
    order.push_back(name);
  };
  auto publishes = [&]() -> task<> {
    EXPECT_EQ(b.last_published(), nothing_yet);
    EXPECT_EQ(b.stats().waiting, 4u);
    b.publish(1);
    EXPECT_EQ(b.stats().waiting, 2u);
    co_await weft::yield();
    EXPECT_EQ(order, (std::vector{2, 3}));
    b.publish(2);
    EXPECT_EQ(b.stats().waiting, 1u);
    b.publish(7);
    co_return;
  };
  co_await when_all(waits(5, 1), waits(0, 2), waits(1, 3), waits(2, 4), publishes());
  EXPECT_EQ(order.size(), 4u);
  EXPECT_EQ(co_await b.wait_until_published(3), 7u) << "all that is there";
}

WEFT_TEST("sequence_barrier: one that is stopped leaves, and as a case it has no effect") {
  sequence_barrier b;
  auto body = [&](scope& s) -> task<> {
    auto waits = [&]() -> task<> { static_cast<void>(co_await b.wait_until_published(0)); };
    auto one = s.fork(waits());
    co_await weft::yield();
    EXPECT_EQ(b.stats().waiting, 1u);
    one.request_stop();
    const weft::result<void> how = co_await as_result(std::move(one));  // g++ can't tell it in a template
    EXPECT_TRUE(how.is_stopped());
    EXPECT_EQ(b.stats().waiting, 0u);
    weft::channel<int> c{1};
    EXPECT_TRUE(c.try_send(1));
    auto choice = select(on(b.wait_until_published(0)), on_receive(c));
    EXPECT_EQ((co_await std::move(choice)).index, 1u);
    b.publish(0);
    auto again = select(on(b.wait_until_published(0)), on_receive(c));
    EXPECT_EQ((co_await std::move(again)).index, 0u);
  };
  co_await with_scope(body);
}

TEST(sequence, misuse_ends_the_program) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        sequence_barrier b;
        b.publish(3);
        b.publish(2);
      },
      "weft: a sequence was published that lies before");
  EXPECT_DEATH(
      {
        sequence_barrier b;
        single_producer_sequencer s(b, 3);
      },
      "weft: the size of a buffer that a sequencer numbers is a power of two");
  EXPECT_DEATH(
      {
        sequence_barrier b{4};
        multi_producer_sequencer s(b, 4);
      },
      "weft: a sequencer begins at another number");
}

// ---- sequencers -------------------------------------------------------------------------------------------------------------

template <class Sequencer>
task<> waits_for_room(sequence_number begin) {
  sequence_barrier consumed{begin};
  Sequencer numbers{consumed, 4, begin};
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(co_await numbers.claim_one(), begin + static_cast<sequence_number>(i));
  const auto rest = co_await numbers.claim_up_to(10);
  EXPECT_EQ(rest.size(), 1u) << "no more is free";
  EXPECT_EQ(rest.front(), begin + 4);
  bool claimed = false;
  auto claims = [&]() -> task<> {
    const auto some = co_await numbers.claim_up_to(3);
    EXPECT_EQ(some.size(), 2u);
    EXPECT_EQ(some.front(), begin + 5);
    claimed = true;
  };
  auto reads = [&]() -> task<> {
    co_await weft::yield();
    EXPECT_FALSE(claimed);
    consumed.publish(begin + 2);
    co_return;
  };
  co_await when_all(claims(), reads());
  EXPECT_TRUE(claimed);
  EXPECT_EQ(numbers.last_published(), begin);
}

WEFT_TEST("sequencers: who claims waits for room") {
  for (const sequence_number begin :
       {nothing_yet, sequence_number(-4), sequence_number(41), sequence_number(INT64_MAX)}) {
    co_await waits_for_room<single_producer_sequencer>(begin);
    co_await waits_for_room<multi_producer_sequencer>(begin);
  }
}

template <class Sequencer>
task<> claims_nothing_when_stopped() {
  sequence_barrier consumed;
  Sequencer numbers{consumed, 2};
  static_cast<void>(co_await numbers.claim_up_to(2));
  auto body = [&](scope& s) -> task<> {
    auto claims = [&]() -> task<> { static_cast<void>(co_await numbers.claim_one()); };
    auto one = s.fork(claims());
    co_await weft::yield();
    EXPECT_EQ(consumed.stats().waiting, 1u);
    one.request_stop();
    const weft::result<void> how = co_await as_result(std::move(one));  // g++ can't tell it in a template
    EXPECT_TRUE(how.is_stopped());
  };
  co_await with_scope(body);
  consumed.publish(0);
  EXPECT_EQ(co_await numbers.claim_one(), 2u);
}

WEFT_TEST("sequencers: a claim that is stopped has claimed nothing") {
  co_await claims_nothing_when_stopped<single_producer_sequencer>();
  co_await claims_nothing_when_stopped<multi_producer_sequencer>();
}

WEFT_TEST("multi_producer_sequencer: what is published has no holes") {
  for (const sequence_number begin : {nothing_yet, sequence_number(-3)}) {
    sequence_barrier consumed{begin};
    multi_producer_sequencer numbers{consumed, 8, begin};
    const auto a = co_await numbers.claim_one();
    const auto b = co_await numbers.claim_up_to(3);
    const auto c = co_await numbers.claim_one();
    numbers.publish(b);
    EXPECT_EQ(numbers.last_published(), begin);
    numbers.publish(c);
    EXPECT_EQ(numbers.last_published(), begin);
    numbers.publish(sequence_range{});
    numbers.publish(a);
    EXPECT_EQ(numbers.last_published(), c);
    EXPECT_EQ(c, begin + 5);
  }
}

WEFT_TEST("sequencers: in fibers") {
  sequence_barrier consumed;
  multi_producer_sequencer numbers{consumed, 2};
  std::array<int, 2> buffer{};
  int sum = 0;
  auto body = [&](scope& s) -> task<> {
    auto produces = [&] {
      for (int i = 1; i <= 50; ++i) {
        const auto mine = await(numbers.claim_one());
        buffer.at(mine & 1) = i;
        numbers.publish(mine);
      }
    };
    auto reads = [&] {
      for (sequence_number read = nothing_yet; read != 99;) {
        const auto until = await(numbers.wait_until_published(read + 1));
        while (read != until) sum += buffer.at(++read & 1);
        consumed.publish(read);
      }
    };
    s.go(produces);
    s.go(produces);
    s.go(reads);
    co_return;
  };
  co_await with_scope(body);
  EXPECT_EQ(sum, 2 * 1275);
}

// ---- on threads -------------------------------------------------------------------------------------------------------------

constexpr std::size_t size = 16;

// What is read was written before, and is not written again until all have read it: each number once, by each that reads.
struct ring {
  std::array<std::uint64_t, size> buffer{};

  template <class Sequencer>
  void produce(Sequencer& numbers, std::uint64_t from, std::uint64_t count) {
    for (std::uint64_t done = 0; done != count;) {
      const auto mine = sync_wait(numbers.claim_up_to(1 + done % 7 < count - done ? 1 + done % 7 : count - done));
      for (const auto one : mine) buffer.at(one & (size - 1)) = from + ++done;
      numbers.publish(mine);
    }
  }
  template <class Sequencer>
  std::uint64_t consume(Sequencer& numbers, sequence_barrier& consumed, sequence_number begin, std::uint64_t count) {
    std::uint64_t sum = 0;
    for (sequence_number read = begin; read != begin + count;) {
      const auto until = sync_wait(numbers.wait_until_published(read + 1));
      while (read != until) sum += buffer.at(++read & (size - 1));
      consumed.publish(read);
    }
    return sum;
  }
};

constexpr std::uint64_t sum_to(std::uint64_t n) { return n * (n + 1) / 2; }

TEST(sequence, one_produces_and_two_read_one_behind_the_other) {
  const auto count = static_cast<std::uint64_t>(test::rounds(20000));
  const sequence_number begin = 0 - count / 2;  // it wraps around on the way
  ring all;
  sequence_barrier first{begin}, last{begin};
  single_producer_sequencer numbers{last, size, begin};
  std::uint64_t sums[2] = {};
  {
    std::jthread producer{[&] { all.produce(numbers, 0, count); }};
    std::jthread reader{[&] { sums[0] = all.consume(numbers, first, begin, count); }};
    std::jthread behind{[&] { sums[1] = all.consume(first, last, begin, count); }};
  }
  EXPECT_EQ(sums[0], sum_to(count));
  EXPECT_EQ(sums[1], sum_to(count));
}

TEST(sequence, many_produce) {
  const auto count = static_cast<std::uint64_t>(test::rounds(10000));
  const sequence_number begin = 0 - count;
  ring all;
  sequence_barrier consumed{begin};
  multi_producer_sequencer numbers{consumed, size, begin};
  std::uint64_t sum = 0;
  {
    std::vector<std::jthread> producers;
    for (std::uint64_t i = 0; i != 3; ++i) producers.emplace_back([&, i] { all.produce(numbers, i * count, count); });
    sum = all.consume(numbers, consumed, begin, 3 * count);
  }
  EXPECT_EQ(sum, sum_to(3 * count));
}

// Producers that are stopped while others go on: what was claimed was published, and all of that is read.
TEST(sequence, many_produce_on_a_pool_and_some_are_stopped) {
  for (int round = 0; round != test::rounds(200); ++round) {
    weft::pool p{{.threads = 2}};
    auto work = [&]() -> task<> {
      std::array<std::uint64_t, 4> buffer{};
      sequence_barrier consumed;
      multi_producer_sequencer numbers{consumed, 4};
      std::atomic<std::uint64_t> written{0};
      std::atomic<sequence_number> count{0};
      auto produces = [&]() -> task<> {
        for (std::uint64_t i = 1;; ++i) {
          const auto mine = co_await numbers.claim_one();
          buffer.at(mine & 3) = i;
          written += i;
          ++count;
          numbers.publish(mine);
        }
      };
      std::uint64_t read_sum = 0;
      sequence_number read = nothing_yet;
      auto body = [&](scope& s) -> task<> {
        std::vector<weft::fork<>> producers;
        for (int i = 0; i != 3; ++i) producers.push_back(s.fork(produces()));
        for (std::size_t stopped = 0; stopped != 3;) {
          if (read != nothing_yet && read / 20 > stopped) producers[stopped++].request_stop();
          if (stopped == 3) break;
          const auto until = co_await numbers.wait_until_published(read + 1);
          while (read != until) read_sum += buffer.at(++read & 3);
          consumed.publish(read);
        }
      };
      static_cast<void>(co_await as_result(with_scope(body)));
      while (read != numbers.last_published()) read_sum += buffer.at(++read & 3);
      EXPECT_EQ(read + 1, count.load());
      EXPECT_EQ(read_sum, written.load());
    };
    sync_wait(weft::start_on(p.executor(), work()));
  }
}

}  // namespace
