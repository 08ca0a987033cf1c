// Buffers around readers and writers, copies, pipes in memory. See weft/io.hpp.
#include <weft/io.hpp>

#include <array>
#include <chrono>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>
#include <weft/combine.hpp>
#include <weft/fiber.hpp>
#include <weft/net.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/timed.hpp>

#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::task;
using weft::io::buffered_reader;
using weft::io::buffered_writer;
using weft::io::pipe_reader;
using weft::io::pipe_writer;

static_assert(weft::io::reader<weft::net::stream> && weft::io::writer<weft::net::stream>);
static_assert(weft::io::reader<const weft::net::stream&> && weft::io::writer<const weft::net::stream&>);
static_assert(weft::io::reader<pipe_reader> && !weft::io::writer<pipe_reader>);
static_assert(weft::io::writer<pipe_writer> && !weft::io::reader<pipe_writer>);
static_assert(weft::io::reader<buffered_reader<pipe_reader&>> && weft::io::writer<buffered_writer<pipe_writer&>>);
static_assert(!std::is_copy_constructible_v<pipe_reader> && !std::is_copy_constructible_v<pipe_writer>);

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span{text}); }
std::string_view text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Gives piece after piece, as a socket would, then its end or an error.
class pieces {
 public:
  pieces(std::initializer_list<std::string_view> those) : left_{those.begin(), those.end()} {}

  task<std::size_t> read(std::span<std::byte> into) {
    ++reads;
    if (at_ == left_.size()) {
      if (failure) throw weft::error{failure, "read"};
      co_return std::size_t{0};
    }
    std::string& next = left_[at_];
    const std::size_t size = std::min(next.size(), into.size());
    std::memcpy(into.data(), next.data(), size);
    next.erase(0, size);
    if (next.empty()) ++at_;
    co_return size;
  }
  void add(std::string_view piece) { left_.emplace_back(piece); }

  std::error_code failure;
  int reads = 0;

 private:
  std::vector<std::string> left_;
  std::size_t at_ = 0;
};

// A reader whose operations are no tasks.
struct zeros {
  struct reading {
    std::span<std::byte> into;
    bool await_ready() const noexcept { return true; }
    void await_suspend(std::coroutine_handle<>) const noexcept {}
    std::size_t await_resume() const noexcept {
      std::memset(into.data(), 0, into.size());
      return into.size();
    }
  };
  reading read(std::span<std::byte> into) const { return {into}; }
};
static_assert(weft::io::reader<zeros>);

// Takes at most so many bytes at once, and fails after so many in all.
class slow_sink {
 public:
  explicit slow_sink(std::size_t at_once, std::size_t until_failure = std::size_t(-1))
      : at_once_{at_once}, until_failure_{until_failure} {}

  task<std::size_t> write_some(std::span<const std::byte> data) {
    ++writes;
    if (got.size() >= until_failure_) throw weft::error{std::make_error_code(std::errc::connection_reset), "write"};
    data = data.first(std::min({data.size(), at_once_, until_failure_ - got.size()}));
    got += text(data);
    co_return data.size();
  }
  task<> write(std::span<const std::byte> data) {
    while (!data.empty()) {
      const std::size_t size = co_await write_some(data);
      data = data.subspan(size);
    }
  }
  void heal() { until_failure_ = std::size_t(-1); }

  std::string got;
  int writes = 0;

 private:
  std::size_t at_once_, until_failure_;
};

task<std::string> read_all(pipe_reader& from) {
  std::string all;
  std::array<std::byte, 64> buffer;
  for (;;) {
    const std::size_t got = co_await from.read(buffer);
    if (got == 0) co_return all;
    all += text(std::span{buffer}.first(got));
  }
}

std::string pattern(std::size_t size) {
  std::string all(size, '\0');
  for (std::size_t i = 0; i != size; ++i) all[i] = static_cast<char>(i * 31 >> 3);
  return all;
}

// ---- buffered_reader ------------------------------------------------------------------------------------------------------

WEFT_TEST("buffered_reader: gives what has come, and asks once for more") {
  pieces from{"abcdef", "gh"};
  buffered_reader in{from};
  std::array<std::byte, 4> four;
  EXPECT_EQ(co_await in.read(four), 4u);
  EXPECT_EQ(text(four), "abcd");
  EXPECT_EQ(co_await in.read(four), 2u);
  EXPECT_EQ(from.reads, 1);
  EXPECT_EQ(co_await in.read({}), 0u);
  EXPECT_EQ(co_await in.read(four), 2u);
  EXPECT_EQ(co_await in.read(four), 0u);
  EXPECT_EQ(co_await in.read(four), 0u);
}

WEFT_TEST("buffered_reader: reads into what is large without its buffer") {
  pieces from{"ab", "cdefgh"};
  buffered_reader in{from, 4};
  EXPECT_EQ(text(co_await in.peek()), "ab");
  std::array<std::byte, 6> six;
  EXPECT_EQ(co_await in.read(six), 2u);  // what is buffered comes first
  EXPECT_EQ(co_await in.read(six), 6u);
  EXPECT_EQ(text(six), "cdefgh");
  EXPECT_EQ(in.buffered().size(), 0u);
}

WEFT_TEST("buffered_reader: reads exactly so many, also more than its capacity") {
  pieces from{"a", "bc", "defg", "hijklm"};
  buffered_reader in{from, 2};
  std::array<std::byte, 5> five;
  co_await in.read_exactly(five);
  EXPECT_EQ(text(five), "abcde");
  co_await in.read_exactly({});
  co_await in.read_exactly(five);
  EXPECT_EQ(text(five), "fghij");
}

WEFT_TEST("buffered_reader: an early end says how many bytes are missing, and what has come stays") {
  pieces from{"abc"};
  buffered_reader in{from};
  std::array<std::byte, 8> eight;
  try {
    co_await in.read_exactly(eight);
    ADD_FAILURE() << "there were not so many";
  } catch (const weft::io::ended_early& end) {
    EXPECT_EQ(end.missing(), 5u);
    EXPECT_EQ(end.code(), weft::errc::closed);
    EXPECT_NE(std::string_view{end.what()}.find("read exactly 8 bytes (at least 5 missing)"), std::string_view::npos)
        << end.what();
  }
  EXPECT_EQ(co_await in.read(eight), 3u);
  EXPECT_EQ(text(std::span{eight}.first(3)), "abc");
}

WEFT_TEST("buffered_reader: an error of its source consumes nothing") {
  pieces from{"ab"};
  from.failure = std::make_error_code(std::errc::connection_reset);
  buffered_reader in{from};
  std::array<std::byte, 4> four;
  const auto failed = co_await weft::as_result(in.read_exactly(four));
  EXPECT_EQ(failed.error(), std::errc::connection_reset);
  EXPECT_EQ((co_await weft::as_result(in.read_line())).error(), std::errc::connection_reset);
  EXPECT_EQ((co_await weft::as_result(in.read_until("x"))).error(), std::errc::connection_reset);
  from.add("cd");
  co_await in.read_exactly(four);
  EXPECT_EQ(text(four), "abcd");
}

WEFT_TEST("buffered_reader: reads until a delimiter, wherever it is cut") {
  pieces from{"GET / HTTP/1.1\r", "\n", "\r", "\nbody\r\n\r", "\n"};
  buffered_reader in{from, 4};
  EXPECT_EQ(co_await in.read_until("\r\n\r\n"), "GET / HTTP/1.1");
  EXPECT_EQ(co_await in.read_until("\r\n\r\n"), "body");
  EXPECT_EQ(co_await in.read_until("\r\n\r\n"), std::nullopt);
}

WEFT_TEST("buffered_reader: a delimiter that does not come is an error, and what came stays") {
  pieces from{"half a requ"};
  buffered_reader in{from};
  EXPECT_EQ((co_await weft::as_result(in.read_until("\r\n"))).error(), weft::errc::closed);
  EXPECT_EQ(text(in.buffered()), "half a requ");
}

WEFT_TEST("buffered_reader: keeps to the limit of a piece, to the byte") {
  pieces from{"12345", ";1234", "56;", "123456;"};
  buffered_reader in{from, 2};
  EXPECT_EQ(co_await in.read_until(";", 5), "12345");
  const auto too_long = co_await weft::as_result(in.read_until(";", 5));
  EXPECT_EQ(too_long.error(), std::errc::message_size);
  EXPECT_EQ(co_await in.read_until(";", 6), "123456");  // nothing was consumed
  EXPECT_EQ(co_await in.read_until(";", std::numeric_limits<std::size_t>::max()), "123456");
}

WEFT_TEST("buffered_reader: a limit is exceeded as soon as that is sure") {
  pieces from{"123456"};
  from.failure = std::make_error_code(std::errc::io_error);  // of who asks for more
  buffered_reader in{from};
  EXPECT_EQ((co_await weft::as_result(in.read_until(";", 5))).error(), std::errc::message_size);
  EXPECT_EQ((co_await weft::as_result(in.read_line(5))).error(), std::errc::message_size);
  EXPECT_EQ((co_await weft::as_result(in.read_line(6))).error(), std::errc::io_error);
}

WEFT_TEST("buffered_reader: lines end with a line feed, or with a carriage return before it") {
  pieces from{"one\ntw", "o\r", "\n", "\n\r\nfi\rve\r\r\n", "last\r"};
  buffered_reader in{from, 3};
  std::vector<std::string> all;
  auto lines = in.lines();
  for (;;) {
    std::string* const line = co_await lines.next();
    if (line == nullptr) break;
    all.push_back(std::move(*line));
  }
  EXPECT_EQ(all, (std::vector<std::string>{"one", "two", "", "", "fi\rve\r", "last\r"}));
  EXPECT_EQ(co_await in.read_line(), std::nullopt);
}

WEFT_TEST("buffered_reader: keeps to the limit of a line, whatever it ends with") {
  pieces from{"12345\n", "12345\r", "\n12345", "6\nrest\n12345\r"};
  buffered_reader in{from};
  EXPECT_EQ(co_await in.read_line(5), "12345");
  EXPECT_EQ(co_await in.read_line(5), "12345");
  EXPECT_EQ((co_await weft::as_result(in.read_line(5))).error(), std::errc::message_size);
  EXPECT_TRUE(co_await in.skip_until("\n"));
  EXPECT_EQ(co_await in.read_line(5), "rest");
  EXPECT_EQ((co_await weft::as_result(in.read_line(5))).error(), std::errc::message_size);  // no line feed after it
  EXPECT_EQ(co_await in.read_line(6), "12345\r");
}

WEFT_TEST("buffered_reader: skips until a delimiter without keeping what it skips") {
  pieces from{"aaaaaaaa", "aaa=", "=", "b", "=", "x"};
  buffered_reader in{from, 4};
  EXPECT_TRUE(co_await in.skip_until("=="));
  EXPECT_EQ(text(co_await in.peek(2)), "b=");
  EXPECT_FALSE(co_await in.skip_until("=="));
  EXPECT_EQ(in.buffered().size(), 0u);
}

WEFT_TEST("buffered_reader: a parser looks at what has come, and takes a part of it") {
  pieces from{
      "\x05"
      "he",
      "llo\x01!"};
  buffered_reader in{from};
  std::vector<std::string> messages;
  for (;;) {
    const auto head = co_await in.peek();
    if (head.empty()) break;
    const auto size = std::to_integer<std::size_t>(head[0]);
    const auto whole = co_await in.peek(1 + size);
    messages.emplace_back(text(whole.subspan(1, size)));
    in.consume(1 + size);
  }
  EXPECT_EQ(messages, (std::vector<std::string>{"hello", "!"}));
  EXPECT_EQ((co_await in.peek(7)).size(), 0u);
}

WEFT_TEST("buffered_reader: a stop in the middle loses no byte") {
  auto [from, to] = weft::io::pipe(16);
  buffered_reader in{from, 4};
  std::array<std::byte, 6> six;
  co_await to.write("abc");
  EXPECT_EQ((co_await weft::as_result(weft::timeout(1ms, in.read_exactly(six)))).error(), weft::errc::timed_out);
  co_await to.write("d");
  EXPECT_EQ((co_await weft::as_result(weft::timeout(1ms, in.read_line()))).error(), weft::errc::timed_out);
  EXPECT_EQ((co_await weft::as_result(weft::timeout(1ms, in.peek(5)))).error(), weft::errc::timed_out);
  EXPECT_EQ((co_await weft::as_result(weft::timeout(1ms, in.read_until("\r\n")))).error(), weft::errc::timed_out);
  {
    auto lines = in.lines();
    EXPECT_EQ((co_await weft::as_result(weft::timeout(1ms, lines.next()))).error(), weft::errc::timed_out);
    EXPECT_EQ(co_await lines.next(), nullptr);  // it has ended; the reader has not
  }
  co_await to.write("ef\n");
  EXPECT_EQ(co_await in.read_line(), "abcdef");
}

WEFT_TEST("buffered_reader: owns what moves in, and moves with it") {
  buffered_reader in{pieces{"one\ntwo\n"}};
  static_assert(std::is_same_v<decltype(in), buffered_reader<pieces>>);
  EXPECT_EQ(co_await in.read_line(), "one");
  buffered_reader moved{std::move(in), 16};
  static_assert(std::is_same_v<decltype(moved), buffered_reader<buffered_reader<pieces>>>);
  EXPECT_EQ(co_await moved.read_line(), "two");
  buffered_reader<pieces> first{pieces{"one\ntwo\n"}};
  EXPECT_EQ(co_await first.read_line(), "one");
  buffered_reader<pieces> second = std::move(first);
  EXPECT_EQ(co_await second.read_line(), "two");
  EXPECT_EQ(second.source().reads, 1);
}

WEFT_TEST("buffered_reader: its source need not give tasks") {
  buffered_reader in{zeros{}};
  std::array<std::byte, 100> hundred;
  hundred.fill(std::byte{1});
  co_await in.read_exactly(hundred);
  for (const std::byte one : hundred) EXPECT_EQ(one, std::byte{0});
}

TEST(buffered_reader_in_a_fiber, reads_lines) {
  const auto body = [](weft::scope& inside) -> task<> {
    co_await inside.go([] {
      pieces from{"a\nb", "\n"};
      buffered_reader in{from};
      EXPECT_EQ(weft::await(in.read_line()), "a");
      EXPECT_EQ(weft::await(in.read_line()), "b");
      EXPECT_EQ(weft::await(in.read_line()), std::nullopt);
    });
  };
  weft::sync_wait(weft::with_scope(body));
}

TEST(buffered_reader_misuse, two_readers_end_the_program) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(weft::sync_wait([]() -> task<> {
                 auto ends = weft::io::pipe();
                 buffered_reader in{ends.from};
                 co_await weft::when_all(in.read_line(), in.read_line());
               }()),
               "two tasks read from one buffered_reader at once");
}
TEST(buffered_reader_misuse, consumes_no_more_than_it_holds) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  pieces from{"abc"};
  buffered_reader in{from};
  EXPECT_DEATH(in.consume(1), "consume more than it holds");
}
TEST(buffered_reader_misuse, a_reader_that_gives_more_than_it_may_ends_the_program) {
  struct liar {
    task<std::size_t> read(std::span<std::byte> into) const { co_return into.size() + 1; }
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  buffered_reader in{liar{}};
  EXPECT_DEATH(weft::sync_wait(in.read_line()), "gave more bytes than it was given room for");
}
TEST(buffered_reader_misuse, a_delimiter_has_a_byte_at_least) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  buffered_reader in{pieces{"abc"}};
  EXPECT_DEATH(static_cast<void>(weft::sync_wait(in.read_until(""))), "a delimiter of a byte at least");
}

// ---- buffered_writer ------------------------------------------------------------------------------------------------------

WEFT_TEST("buffered_writer: puts small writes together, and flushes where it has no room") {
  slow_sink to{100};
  buffered_writer out{to, 8};
  co_await out.write("abc");
  co_await out.write("def");
  EXPECT_EQ(to.got, "");
  EXPECT_EQ(out.buffered(), 6u);
  co_await out.write("ghi");
  EXPECT_EQ(to.got, "abcdef");
  co_await out.flush();
  EXPECT_EQ(to.got, "abcdefghi");
  EXPECT_EQ(to.writes, 2);
  co_await out.flush();
  EXPECT_EQ(to.writes, 2);
}

WEFT_TEST("buffered_writer: writes what is as large as its buffer behind what came before") {
  slow_sink to{3};
  buffered_writer out{to, 4};
  co_await out.write("ab");
  co_await out.write("12345678");
  EXPECT_EQ(to.got, "ab12345678");
  EXPECT_EQ(out.buffered(), 0u);
}

WEFT_TEST("buffered_writer: writes some, at least a byte") {
  slow_sink to{3};
  buffered_writer out{to, 4};
  EXPECT_EQ(co_await out.write_some(bytes("abcdef")), 4u);
  EXPECT_EQ(co_await out.write_some({}), 0u);
  EXPECT_EQ(co_await out.write_some(bytes("ef")), 2u);
  co_await out.flush();
  EXPECT_EQ(to.got, "abcdef");
}

WEFT_TEST("buffered_writer: prints texts, characters and numbers") {
  slow_sink to{1000};
  {
    buffered_writer out{to};
    const std::string name = "x";
    co_await out.print(name, '=', 42, " ", -7L, ' ', 0.1, " ", true, " ", std::uint8_t{200}, std::string_view{"\n"});
    co_await out.print(std::numeric_limits<std::int64_t>::min(), " ", std::numeric_limits<std::uint64_t>::max());
    co_await out.flush();
    co_await out.write("dropped");
  }
  EXPECT_EQ(to.got, "x=42 -7 0.1 true 200\n-9223372036854775808 18446744073709551615");
}

WEFT_TEST("buffered_writer: a flush that fails has kept what was not written") {
  slow_sink to{2, 5};
  buffered_writer out{to};
  co_await out.write("abcdefgh");
  EXPECT_EQ((co_await weft::as_result(out.flush())).error(), std::errc::connection_reset);
  EXPECT_EQ(to.got, "abcde");
  EXPECT_EQ(out.buffered(), 3u);
  to.heal();
  co_await out.flush();
  EXPECT_EQ(to.got, "abcdefgh");
  co_await out.write("never");
  out.discard();
  co_await out.flush();
  EXPECT_EQ(to.got, "abcdefgh");
}

WEFT_TEST("buffered_writer: a flush or a write that is stopped loses no byte and repeats none") {
  auto [from, to] = weft::io::pipe(4);
  buffered_writer out{to, 8};
  co_await out.write("abcdef");
  const auto stops = [&](weft::scope& inside) -> task<> {
    auto flushing = inside.fork_here(weft::as_result(out.flush()));  // it waits when this returns
    flushing.request_stop();
    EXPECT_TRUE((co_await std::move(flushing)).is_stopped());
  };
  co_await weft::with_scope(stops);
  EXPECT_EQ(out.buffered(), 2u);
  co_await out.write("gh");
  EXPECT_EQ((co_await weft::as_result(weft::timeout(1ms, out.write("never")))).error(), weft::errc::timed_out);
  const auto write_rest = [](buffered_writer<pipe_writer&>& what, pipe_writer& end) -> task<> {
    co_await what.write("ij");
    co_await what.flush();
    end.close();
  };
  const auto [none, all] = co_await weft::when_all(write_rest(out, to), read_all(from));
  EXPECT_EQ(all, "abcdefghij");
}

// Neither a copy nor a flush may try such a one for ever.
struct takes_nothing {
  task<std::size_t> write_some(std::span<const std::byte>) { co_return std::size_t{0}; }
  task<> write(std::span<const std::byte>) { co_return; }
};

TEST(buffered_writer_misuse, a_writer_that_takes_no_byte_ends_the_program) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(weft::sync_wait([]() -> task<> {
                 takes_nothing to;
                 weft::io::buffered_writer out{to};
                 co_await out.write("x");
                 co_await out.flush();
               }()),
               "a writer has taken no byte");
  EXPECT_DEATH(weft::sync_wait([]() -> task<> {
                 auto [from, into] = weft::io::pipe();
                 co_await into.write("x");
                 weft::io::buffered_reader in{from};
                 takes_nothing to;
                 co_await weft::io::copy(in, to);
               }()),
               "a writer has taken no byte");
}

TEST(buffered_writer_misuse, two_writers_end_the_program) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(weft::sync_wait([]() -> task<> {
                 auto ends = weft::io::pipe(1);
                 buffered_writer out{ends.to, 2};
                 co_await weft::when_all(out.write("abc"), out.write("def"));
               }()),
               "two tasks write to one buffered_writer at once");
}

// ---- copies ---------------------------------------------------------------------------------------------------------------

WEFT_TEST("copy: up to the end") {
  pieces from{"abc", "def", "g"};
  slow_sink to{2};
  EXPECT_EQ(co_await weft::io::copy(from, to), 7u);
  EXPECT_EQ(to.got, "abcdefg");
  EXPECT_EQ(co_await weft::io::copy(from, to), 0u);
}

WEFT_TEST("copy: up to a limit, and takes no more than that") {
  pieces from{"abc", "def", "g"};
  slow_sink to{2};
  EXPECT_EQ(co_await weft::io::copy(from, to, 4), 4u);
  EXPECT_EQ(to.got, "abcd");
  EXPECT_EQ(co_await weft::io::copy(from, to, 0), 0u);
  EXPECT_EQ(co_await weft::io::copy(from, to, 100), 3u);
  EXPECT_EQ(to.got, "abcdefg");
}

WEFT_TEST("copy: from a buffer, of which it takes what it has written") {
  pieces from{"head\nabc", "def", "g"};
  slow_sink to{2, 5};
  buffered_reader in{from};
  EXPECT_EQ(co_await in.read_line(), "head");
  EXPECT_EQ(co_await weft::io::copy(in, to, 2), 2u);
  EXPECT_EQ((co_await weft::as_result(weft::io::copy(in, to))).error(), std::errc::connection_reset);
  EXPECT_EQ(to.got, "abcde");
  to.heal();
  EXPECT_EQ(co_await weft::io::copy(in, to), 2u);
  EXPECT_EQ(to.got, "abcdefg");
}

// ---- pipes ----------------------------------------------------------------------------------------------------------------

WEFT_TEST("pipe: bytes come out in order, around its end, and then the end") {
  auto [from, to] = weft::io::pipe(5);
  const std::string all = pattern(1000);
  const auto write = [](pipe_writer& into, std::string_view what) -> task<> {
    co_await into.write(what);
    into.close();
  };
  const auto [none, got] = co_await weft::when_all(write(to, all), read_all(from));
  EXPECT_EQ(got, all);
  std::array<std::byte, 4> four;
  EXPECT_EQ(co_await from.read(four), 0u);
  EXPECT_EQ((co_await weft::as_result(to.write("more"))).error(), weft::errc::closed);
  EXPECT_FALSE(to.is_open());
}

WEFT_TEST("pipe: holds what it has room for") {
  auto [from, to] = weft::io::pipe(4);
  EXPECT_EQ(co_await to.write_some(bytes("abc")), 3u);
  EXPECT_EQ(co_await to.write_some(bytes("def")), 1u);
  EXPECT_EQ(co_await to.write_some({}), 0u);
  EXPECT_EQ((co_await weft::as_result(weft::timeout(1ms, to.write_some(bytes("e"))))).error(), weft::errc::timed_out);
  EXPECT_EQ((co_await weft::as_result(weft::timeout(1ms, to.write("e")))).error(), weft::errc::timed_out);
  EXPECT_TRUE(to.is_open());  // neither has had an effect
  std::array<std::byte, 8> eight;
  EXPECT_EQ(co_await from.read({}), 0u);
  EXPECT_EQ(co_await from.read(eight), 4u);
  EXPECT_EQ(text(std::span{eight}.first(4)), "abcd");
  EXPECT_EQ((co_await weft::as_result(weft::timeout(1ms, from.read(eight)))).error(), weft::errc::timed_out);
  co_await to.write("kept");
  EXPECT_EQ(co_await from.read(eight), 4u);
}

WEFT_TEST("pipe: a write that is stopped half-way closes its end") {
  auto [from, to] = weft::io::pipe(4);
  const auto stops = [&to = to](weft::scope& inside) -> task<> {
    auto writing = inside.fork_here(weft::as_result(to.write("abcdef")));  // it waits when this returns
    writing.request_stop();
    EXPECT_TRUE((co_await std::move(writing)).is_stopped());
  };
  co_await weft::with_scope(stops);
  EXPECT_FALSE(to.is_open());
  EXPECT_EQ((co_await weft::as_result(to.write_some(bytes("ef")))).error(), weft::errc::closed);
  EXPECT_EQ(co_await read_all(from), "abcd");
}

WEFT_TEST("pipe: each end sees that the other one has gone, also while it waits") {
  {
    auto ends = weft::io::pipe(4);
    const auto leave = [](pipe_reader from) -> task<> {
      co_await weft::sleep_for(1ms);
      from.close();
      from.close();
    };
    const auto [written, none] =
        co_await weft::when_all(weft::as_result(ends.to.write("abcdef")), leave(std::move(ends.from)));
    EXPECT_EQ(written.error(), weft::errc::closed);
    EXPECT_EQ((co_await weft::as_result(ends.to.write_some(bytes("x")))).error(), weft::errc::closed);
  }
  {
    auto ends = weft::io::pipe(4);
    const auto leave = [](pipe_writer) -> task<> { co_await weft::sleep_for(1ms); };
    const auto [got, none] = co_await weft::when_all(read_all(ends.from), leave(std::move(ends.to)));
    EXPECT_EQ(got, "");
  }
}

WEFT_TEST("pipe: an end that is closed while it waits ends with an error") {
  auto [from, to] = weft::io::pipe(1);
  std::array<std::byte, 4> four;
  const auto close = [](auto& end) -> task<> {
    co_await weft::sleep_for(1ms);
    end.close();
  };
  const auto [read, none] = co_await weft::when_all(weft::as_result(from.read(four)), close(from));
  EXPECT_EQ(read.error(), weft::errc::closed);
  EXPECT_EQ((co_await weft::as_result(from.read(four))).error(), weft::errc::closed);
  auto [from2, to2] = weft::io::pipe(1);
  const auto [written, none2] = co_await weft::when_all(weft::as_result(to2.write("ab")), close(to2));
  EXPECT_EQ(written.error(), weft::errc::closed);
  EXPECT_EQ(co_await read_all(from2), "a");
}

WEFT_TEST("pipe: ends move, and one that is assigned to is closed") {
  auto [from, to] = weft::io::pipe(8);
  co_await to.write("abc");
  auto other = weft::io::pipe(8);
  co_await other.to.write("other");
  pipe_writer to2 = std::move(to);
  EXPECT_FALSE(to.is_open());  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ((co_await weft::as_result(to.write("x"))).error(), weft::errc::closed);
  to2 = std::move(other.to);
  EXPECT_EQ(co_await read_all(from), "abc");
  from = std::move(other.from);
  to2.close();
  EXPECT_EQ(co_await read_all(from), "other");
  std::array<std::byte, 4> four;
  EXPECT_EQ((co_await weft::as_result(pipe_reader{}.read(four))).error(), weft::errc::closed);
  EXPECT_FALSE(pipe_reader{}.is_open());
}

task<> write_in_pieces(pipe_writer to, std::string_view all) {
  for (std::size_t size = 1; !all.empty(); size = size * 3 % 257) {
    const std::size_t now = std::min(size, all.size());
    co_await to.write(all.substr(0, now));
    all.remove_prefix(now);
  }
}

TEST(pipe_across_threads, loses_nothing) {
  const std::string all = pattern(static_cast<std::size_t>(test::rounds(200'000)));
  weft::pool workers{{.threads = 2}};
  for (const std::size_t capacity : {1u, 7u, 1024u}) {
    auto ends = weft::io::pipe(capacity);
    const std::string_view part = std::string_view{all}.substr(0, all.size() / (capacity == 1 ? 20 : 1));
    std::jthread writer{[&] { weft::sync_wait(write_in_pieces(std::move(ends.to), part)); }};
    EXPECT_TRUE(weft::sync_wait(weft::start_on(workers, read_all(ends.from))) == part);
  }
}

TEST(pipe_across_threads, stops_lose_nothing) {
  const std::string all = pattern(static_cast<std::size_t>(test::rounds(20'000)));
  auto ends = weft::io::pipe(16);
  std::jthread writer{[&] { weft::sync_wait(write_in_pieces(std::move(ends.to), all)); }};
  const auto impatient = [](pipe_reader& from) -> task<std::string> {
    std::string got;
    std::array<std::byte, 5> buffer;
    for (;;) {
      const auto some = co_await weft::as_result(weft::timeout(1us, from.read(buffer)));
      if (some.error() == weft::errc::timed_out) continue;
      if (*some == 0) co_return got;
      got += text(std::span{buffer}.first(*some));
    }
  };
  EXPECT_TRUE(weft::sync_wait(impatient(ends.from)) == all);
}

TEST(pipe_misuse, two_readers_end_the_program) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(weft::sync_wait([]() -> task<> {
                 auto ends = weft::io::pipe();
                 std::array<std::byte, 4> a, b;
                 co_await weft::when_all(ends.from.read(a), ends.from.read(b));
               }()),
               "two tasks read from one pipe at once");
}
TEST(pipe_misuse, two_writers_end_the_program) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(weft::sync_wait([]() -> task<> {
                 auto ends = weft::io::pipe(1);
                 co_await weft::when_all(ends.to.write("ab"), ends.to.write("cd"));
               }()),
               "two tasks write to one pipe at once");
}

// ---- on a socket ----------------------------------------------------------------------------------------------------------

task<> answer_lines(weft::net::stream peer) {
  buffered_reader in{peer};
  buffered_writer out{peer};
  auto lines = in.lines(16);
  for (;;) {
    const std::string* const line = co_await lines.next();
    if (line == nullptr) break;
    co_await out.print(line->size(), ":", *line, "\n");
  }
  co_await out.flush();
}

WEFT_TEST("stream: a protocol of lines, by buffers in both directions") {
  const weft::net::listener at = co_await weft::net::listen(weft::net::endpoint{"127.0.0.1", 0});
  const auto body = [&](weft::scope& inside) -> task<> {
    const weft::net::stream client = co_await weft::net::connect(at.local());
    weft::net::stream server = co_await at.accept();
    inside.fork(answer_lines(std::move(server)));
    co_await client.write("one\r\ntwenty\n\nlast");
    client.shutdown();
    slow_sink got{1000};
    EXPECT_EQ(co_await weft::io::copy(client, got), 25u);
    EXPECT_EQ(got.got, "3:one\n6:twenty\n0:\n4:last\n");
  };
  co_await weft::with_scope(body);
}

}  // namespace
