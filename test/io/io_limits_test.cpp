// Limits of readers and writers, in virtual time, where rates are exact. See weft/io_limits.hpp.
#include <weft/io_limits.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/race.hpp>
#include <weft/scope.hpp>
#include <weft/test.hpp>
#include <weft/timed.hpp>

#include "net/sockets.hpp"
#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::as_result;
using weft::sleep_for;
using weft::task;
using weft::io::at_limit;
using weft::io::limited_reader;
using weft::io::rate_limited_reader;
using weft::io::rate_limited_writer;
using weft::test::elapsed;

std::string_view text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <class Source>
task<std::string> all_of(Source& from, std::size_t piece = 100) {
  std::string all;
  for (std::string room(piece, '\0');;) {
    const std::size_t got = co_await from.read(std::as_writable_bytes(std::span{room}));
    if (got == 0) co_return all;
    all.append(room, 0, got);
  }
}

// The reader of a pipe in which that is, and which has ended.
task<weft::io::pipe_reader> holding(std::string what) {
  auto [from, to] = weft::io::pipe(what.size() + 1);
  co_await to.write(what);
  co_return std::move(from);
}

static_assert(weft::io::reader<limited_reader<weft::net::stream&>>);
static_assert(weft::io::reader<rate_limited_reader<limited_reader<weft::io::buffered_reader<weft::net::stream>>>>);
static_assert(weft::io::writer<rate_limited_writer<weft::io::buffered_writer<weft::net::stream&>>>);
static_assert(weft::io::writer<rate_limited_writer<rate_limited_writer<weft::io::pipe_writer>>>);

TEST(limited_reader, ends_at_its_limit_and_leaves_the_rest) {
  weft::test::run([]() -> task<> {
    for (const std::size_t piece : {1U, 3U, 5U, 64U}) {
      auto from = co_await holding("abcdefgh");
      limited_reader few{from, 5};
      EXPECT_EQ(few.left(), 5U);
      EXPECT_EQ(co_await all_of(few, piece), "abcde");
      EXPECT_EQ(few.left(), 0U);
      EXPECT_EQ(co_await all_of(few, piece), "") << "again";
      EXPECT_EQ(co_await all_of(from, piece), "fgh");
    }
  });
}

TEST(limited_reader, ends_with_its_reader) {
  weft::test::run([]() -> task<> {
    for (const at_limit then : {at_limit::end, at_limit::fail}) {
      limited_reader many{co_await holding("abc"), 5, then};
      EXPECT_EQ(co_await all_of(many), "abc");
      EXPECT_EQ(many.left(), 2U);
    }
  });
}

// As long as it may be, is not too long.
TEST(limited_reader, fails_where_there_is_more) {
  weft::test::run([]() -> task<> {
    limited_reader exact{co_await holding("abcde"), 5, at_limit::fail};
    EXPECT_EQ(co_await all_of(exact), "abcde");
    EXPECT_EQ(co_await all_of(exact), "");

    limited_reader more{co_await holding("abcdefgh"), 5, at_limit::fail};
    std::array<std::byte, 16> room;
    EXPECT_EQ(co_await more.read(room), 5U);
    for (int i = 0; i != 2; ++i) {  // for good
      const auto how = co_await as_result(more.read(room));
      EXPECT_EQ(how.error(), std::errc::message_size);
    }
    EXPECT_EQ(co_await more.read({}), 0U) << "nothing is always right";
    limited_reader none{co_await holding("a"), 0, at_limit::fail};
    const auto how = co_await as_result(none.read(room));
    EXPECT_EQ(how.error(), std::errc::message_size);
  });
}

TEST(limited_reader, serves_a_buffered_reader) {
  weft::test::run([]() -> task<> {
    auto from = co_await holding("one\ntwo\nthree");
    weft::io::buffered_reader in{limited_reader{from, 6}};
    EXPECT_EQ(co_await in.read_line(), "one");
    EXPECT_EQ(co_await in.read_line(), "tw");
    EXPECT_EQ(co_await in.read_line(), std::nullopt);
    EXPECT_EQ(co_await all_of(from), "o\nthree");
  });
}

// What is there goes at once up to the burst, and then as time passes.
TEST(rate_limited_reader, gives_a_burst_and_then_its_rate) {
  weft::test::run([]() -> task<> {
    auto from = co_await holding(std::string(11'000, 'x'));
    rate_limited_reader slow{from, 1000, 1000};
    std::string room(5000, '\0');
    const auto into = std::as_writable_bytes(std::span{room});
    EXPECT_EQ(co_await slow.read(into), 1000U);
    EXPECT_EQ(elapsed(), 0s);
    EXPECT_EQ(co_await slow.read(into), 500U);  // half of the burst, and not byte by byte
    EXPECT_EQ(elapsed(), 500ms);
    EXPECT_EQ(co_await slow.read(into.first(100)), 100U);
    EXPECT_EQ(elapsed(), 600ms);
    co_await sleep_for(1h);
    EXPECT_EQ(co_await slow.read(into), 1000U) << "no more than a burst is kept";
    EXPECT_EQ((co_await all_of(slow, 777)).size(), 11'000U - 2600U);
    EXPECT_GE(elapsed(), 1h + 9s);
    EXPECT_LE(elapsed(), 1h + 9s + 500ms);
  });
}

// The greatest burst is one, too, and so is the greatest rate.
TEST(rate_limited_reader, takes_the_greatest_numbers) {
  weft::test::run([]() -> task<> {
    constexpr std::uint64_t most = ~std::uint64_t{0};
    auto from = co_await holding(std::string(9000, 'x'));
    std::string room(4000, '\0');
    const auto into = std::as_writable_bytes(std::span{room});
    rate_limited_reader all_at_once{from, 1, most};
    EXPECT_EQ(co_await all_at_once.read(into), 4000U);
    EXPECT_EQ(co_await all_at_once.read(into), 4000U);
    rate_limited_reader fast{from, most, most};
    EXPECT_EQ(co_await fast.read(into), 1000U);
    EXPECT_EQ(elapsed(), 0s);
  });
}

// In no second is there more than a second's bytes and a burst, whatever is read how.
TEST(rate_limited_reader, keeps_its_rate_in_any_time) {
  weft::test::run([]() -> task<> {
    auto [from, to] = weft::io::pipe(64);
    rate_limited_reader slow{from, 10'000, 700};
    struct event {
      std::chrono::nanoseconds when;
      std::size_t size;
    };
    std::vector<event> all;
    const auto sends = [&]() -> task<> {
      for (int i = 0; i != 3000; ++i) {
        co_await to.write(std::string(static_cast<std::size_t>(1 + i * 7 % 50), 'x'));
        if (i % 500 == 0) co_await sleep_for(300ms);
      }
      to.close();
    };
    const auto gets = [&]() -> task<> {
      std::array<std::byte, 50> room;
      for (std::size_t i = 0;; ++i) {
        const std::size_t got = co_await slow.read(std::span{room}.first(1 + i * 13 % 50));
        if (got == 0) co_return;
        all.push_back({elapsed(), got});
      }
    };
    co_await weft::when_all(sends(), gets());
    for (std::size_t first = 0; first != all.size(); ++first) {
      std::size_t bytes = 0;
      for (std::size_t one = first; one != all.size() && all[one].when - all[first].when < 2s; ++one) {
        bytes += all[one].size;
        const double seconds = std::chrono::duration<double>(all[one].when - all[first].when).count();
        if (static_cast<double>(bytes) > 700 + seconds * 10'000 + 1) {
          ADD_FAILURE() << bytes << " bytes in " << seconds << " s";
          co_return;
        }
      }
    }
  });
}

TEST(rate_limited_reader, has_taken_nothing_where_it_is_stopped) {
  weft::test::run([]() -> task<> {
    auto from = co_await holding("abcdefgh");
    rate_limited_reader slow{from, 1, 4};
    std::array<std::byte, 4> room;
    EXPECT_EQ(co_await slow.read(room), 4U);
    const auto late = co_await as_result(weft::timeout(1s, slow.read(room)));
    EXPECT_EQ(late.error(), weft::errc::timed_out);
    EXPECT_EQ(co_await slow.read(room), 2U);  // one token of before is still there
    EXPECT_EQ(text(std::span{room}.first(2)), "ef");
    EXPECT_EQ(elapsed(), 2s);
  });
}

TEST(rate_limited_writer, writes_a_burst_and_then_its_rate) {
  weft::test::run([]() -> task<> {
    const auto both = test::connected();
    rate_limited_writer slow{both.here, 100'000, 10'000};
    const auto puts = [&]() -> task<> {
      co_await slow.write(std::string(110'000, 'x'));
      EXPECT_EQ(elapsed(), 1s);
      EXPECT_EQ(co_await slow.write_some({}), 0U);
      co_await sleep_for(10s);
      EXPECT_EQ(co_await slow.write_some(test::bytes(std::string(20'000, 'x'))), 10'000U);
      EXPECT_EQ(elapsed(), 11s);
      both.here.shutdown();
    };
    const auto [none, got] = co_await weft::when_all(puts(), test::read_all(both.there));
    EXPECT_EQ(got.size(), 120'000U);
  });
}

// A copy through both: the slower one rules.
TEST(rate_limited_writer, is_what_a_copy_writes_to) {
  weft::test::run([]() -> task<> {
    auto from = co_await holding(std::string(50'000, 'x'));
    auto ends = weft::io::pipe(100'000);
    rate_limited_reader fast{from, 100'000, 10};
    rate_limited_writer slow{ends.to, 10'000, 1000};
    EXPECT_EQ(co_await weft::io::copy(fast, slow), 50'000U);
    EXPECT_GE(elapsed(), 4900ms);
    EXPECT_LE(elapsed(), 5100ms);
  });
}

// Half of it is on its way: nobody may take what comes next for the other half.
TEST(rate_limited_writer, closes_what_it_writes_to_where_it_is_stopped_half_way) {
  weft::test::run([]() -> task<> {
    const auto both = test::connected();
    rate_limited_writer slow{both.here, 10, 10};
    auto late = co_await as_result(weft::timeout(2100ms, slow.write(std::string(100, 'x'))));
    EXPECT_EQ(late.error(), weft::errc::timed_out);
    late = co_await as_result(slow.write("y"));
    EXPECT_EQ(late.error(), weft::errc::closed);
    EXPECT_EQ(co_await test::read_all(both.there), std::string(30, 'x')) << "and then the end";

    auto ends = weft::io::pipe(1000);
    rate_limited_writer into_pipe{std::move(ends.to), 10, 10};
    late = co_await as_result(weft::timeout(2100ms, into_pipe.write(std::string(100, 'x'))));
    EXPECT_EQ(late.error(), weft::errc::timed_out);
    EXPECT_EQ((co_await all_of(ends.from)).size(), 30U);

    // Before its first byte a stop has had no effect.
    const auto again = test::connected();
    rate_limited_writer empty{again.here, 10, 10};
    co_await empty.write(std::string(10, 'x'));
    late = co_await as_result(weft::timeout(10ms, empty.write("y")));
    EXPECT_EQ(late.error(), weft::errc::timed_out);
    co_await empty.write("z");
    again.here.shutdown();
    EXPECT_EQ(co_await test::read_all(again.there), std::string(10, 'x') + "z");
  });
}

// By the real clock, on a plain thread.
TEST(rate_limited_reader, works_on_a_plain_thread) {
  const auto begun = std::chrono::steady_clock::now();
  auto from = weft::sync_wait(holding(std::string(200, 'x')));
  rate_limited_reader slow{from, 10'000, 100};
  EXPECT_EQ(weft::sync_wait(all_of(slow)).size(), 200U);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 10ms);
}

TEST(io_limits_death, of_limits_that_make_no_sense) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const weft::net::stream none;
  EXPECT_DEATH(rate_limited_reader(none, 0, 1), "no byte a second");
  EXPECT_DEATH(rate_limited_writer(none, 1, 0), "a burst of no byte");
  EXPECT_DEATH(weft::test::run([]() -> task<> {
                 const auto both = test::connected();
                 limited_reader one{both.here, 5};
                 std::array<std::byte, 4> room;
                 co_await weft::when_all(one.read(room), one.read(room));
               }),
               "two tasks read from one limited_reader at once");
}

}  // namespace
