// Numbers as bytes, in either order and as varints, against bytes that were written down. See weft/io_numbers.hpp.
#include <weft/io_numbers.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
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

#include "support/weft_test.hpp"

namespace {

using namespace std::chrono_literals;
using weft::as_result;
using weft::task;
using weft::io::buffered_reader;
using weft::io::buffered_writer;
using weft::io::pipe_reader;
using weft::io::pipe_writer;
using weft::io::read_number;
using weft::io::read_varint;
using weft::io::write_number;
using weft::io::write_varint;

static_assert(weft::io::number<float> && weft::io::number<std::int8_t> && !weft::io::number<bool>);
static_assert(!weft::io::number<long double> && !weft::io::integer<double>);

// Two ends, of which the one reads what the other one has flushed.
struct both_ends {
  weft::io::pipe_ends ends;
  buffered_reader<pipe_reader&> in{ends.from};
  buffered_writer<pipe_writer&> out{ends.to};
  explicit both_ends(std::size_t room = 4096) : ends{weft::io::pipe(room)} {}
};

task<std::string> flushed(both_ends& at) {
  co_await at.out.flush();
  at.ends.to.close();
  const std::span<const std::byte> all = co_await at.in.peek(100);
  co_return std::string{reinterpret_cast<const char*>(all.data()), all.size()};
}

WEFT_TEST("numbers: their bytes, in either order") {
  both_ends at;
  co_await write_number(at.out, std::uint32_t{0x0102'0304}, std::endian::big);
  co_await write_number(at.out, std::uint32_t{0x0102'0304}, std::endian::little);
  co_await write_number(at.out, std::int16_t{-2}, std::endian::big);
  co_await write_number(at.out, 1.0F, std::endian::big);
  co_await write_number(at.out, std::uint8_t{7}, std::endian::little);
  co_await at.out.flush();
  EXPECT_EQ(co_await read_number<std::uint64_t>(at.in, std::endian::big), 0x0102'0304'0403'0201U);
  EXPECT_EQ(co_await read_number<std::uint16_t>(at.in, std::endian::big), 0xfffeU);
  EXPECT_EQ(co_await read_number<std::uint32_t>(at.in, std::endian::big), 0x3f80'0000U);
  EXPECT_EQ(co_await read_number<char>(at.in, std::endian::big), 7);
}

template <class T>
task<> comes_back(T value) {
  both_ends at;
  for (const std::endian order : {std::endian::big, std::endian::little}) {
    co_await write_number(at.out, value, order);
    co_await at.out.flush();
    const T got = co_await read_number<T>(at.in, order);
    EXPECT_EQ(got, value);
  }
  if constexpr (weft::io::integer<T>) {
    co_await write_varint(at.out, value);
    co_await at.out.flush();
    const T got = co_await read_varint<T>(at.in);
    EXPECT_EQ(got, value);
  }
}
template <class T>
task<> all_come_back() {
  using limits = std::numeric_limits<T>;
  for (const T value : {limits::lowest(), T{0}, T{1}, limits::max()}) co_await comes_back(value);
  std::mt19937_64 random{17};
  for (int i = 0; i != 200; ++i) {
    const std::uint64_t bits = random() >> (random() % 64);
    if constexpr (weft::io::integer<T>)
      co_await comes_back(static_cast<T>(bits));
    else
      co_await comes_back(static_cast<T>(static_cast<std::int64_t>(bits)) / 3);
  }
}
WEFT_TEST("numbers: what is written is read, of each type") {
  co_await all_come_back<std::int8_t>();
  co_await all_come_back<std::uint8_t>();
  co_await all_come_back<std::int16_t>();
  co_await all_come_back<std::uint16_t>();
  co_await all_come_back<std::int32_t>();
  co_await all_come_back<std::uint32_t>();
  co_await all_come_back<std::int64_t>();
  co_await all_come_back<std::uint64_t>();
  co_await all_come_back<float>();
  co_await all_come_back<double>();
}

template <class T>
task<std::string> as_varint(T value) {
  both_ends at;
  co_await write_varint(at.out, value);
  co_return co_await flushed(at);
}
WEFT_TEST("numbers: varints are as protocol buffers have them") {
  using namespace std::string_literals;
  EXPECT_EQ(co_await as_varint(0U), "\0"s);
  EXPECT_EQ(co_await as_varint(127U), "\x7f");
  EXPECT_EQ(co_await as_varint(150U), "\x96\x01");
  EXPECT_EQ(co_await as_varint(300U), "\xac\x02");
  EXPECT_EQ(co_await as_varint(~std::uint64_t{0}), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
  EXPECT_EQ(co_await as_varint(0), "\0"s);
  EXPECT_EQ(co_await as_varint(-1), "\x01");
  EXPECT_EQ(co_await as_varint(1), "\x02");
  EXPECT_EQ(co_await as_varint(std::int32_t{0x7fff'ffff}), "\xfe\xff\xff\xff\x0f");
  EXPECT_EQ(co_await as_varint(std::numeric_limits<std::int64_t>::min()), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

template <class T>
task<std::error_code> refusal(std::string_view bytes) {
  both_ends at;
  co_await at.ends.to.write(bytes);
  at.ends.to.close();
  auto reading = read_varint<T>(at.in);
  const auto how = co_await as_result(std::move(reading));
  const std::span<const std::byte> left = co_await at.in.peek(bytes.size());
  EXPECT_EQ(left.size(), bytes.size()) << "it has consumed something";
  co_return how.error();
}
WEFT_TEST("numbers: varints that have too many bits, or no end, are refused and stay") {
  EXPECT_EQ(co_await refusal<std::uint8_t>("\x80\x02"), std::errc::result_out_of_range);
  EXPECT_EQ(co_await refusal<std::int8_t>("\x80\x02"), std::errc::result_out_of_range);
  EXPECT_EQ(co_await refusal<std::uint32_t>("\xff\xff\xff\xff\x10"), std::errc::result_out_of_range);
  EXPECT_EQ(co_await refusal<std::uint64_t>("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"),
            std::errc::result_out_of_range);
  EXPECT_EQ(co_await refusal<std::uint64_t>("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"),
            std::errc::result_out_of_range);
  EXPECT_EQ(co_await refusal<std::uint64_t>("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x81\x01"),
            std::errc::result_out_of_range);
  EXPECT_EQ(co_await refusal<std::uint64_t>("\x80\x80\x80"), weft::errc::closed);
  EXPECT_EQ(co_await refusal<std::uint64_t>(""), weft::errc::closed);
}
// As protocol buffers take them, too.
WEFT_TEST("numbers: a varint may be longer than it need be") {
  using namespace std::string_view_literals;
  both_ends at;
  co_await at.ends.to.write("\x81\x80\x80\x80\x80\x80\x80\x80\x80\0"sv);
  EXPECT_EQ(co_await read_varint<std::uint8_t>(at.in), 1U);
}

WEFT_TEST("numbers: the end of the input says how much is missing") {
  both_ends at;
  co_await at.ends.to.write("abc");
  at.ends.to.close();
  auto reading = read_number<std::uint64_t>(at.in, std::endian::big);
  const auto how = co_await as_result(std::move(reading));
  try {
    std::rethrow_exception(how.exception());
  } catch (const weft::io::ended_early& early) {
    EXPECT_EQ(early.missing(), 5U);
  }
  EXPECT_EQ((co_await at.in.peek(3)).size(), 3U);
}

// However they are cut into pieces, also where a read is stopped in the middle of a number and begun again.
WEFT_TEST("numbers: they come in pieces of any size") {
  for (const std::size_t room : {1U, 2U, 3U, 7U}) {
    both_ends at{room};
    constexpr std::uint64_t count = 40;
    const auto writes = [&]() -> task<> {
      for (std::uint64_t i = 0; i != count; ++i) {
        co_await write_varint(at.out, i * i * i * 1001);
        co_await write_varint(at.out, -static_cast<std::int32_t>(i * 777));
        co_await write_number(at.out, static_cast<double>(i) / 8, std::endian::little);
        co_await at.out.flush();
        co_await weft::sleep_for(1ms);
      }
      at.ends.to.close();
    };
    const auto reads = [&]() -> task<> {
      for (std::uint64_t i = 0; i != count; ++i) {
        while (true) {
          const auto got = co_await as_result(weft::timeout(100us, read_varint<std::uint64_t>(at.in)));
          if (got.error() == weft::errc::timed_out) continue;
          EXPECT_EQ(got.value(), i * i * i * 1001);
          break;
        }
        EXPECT_EQ(co_await read_varint<std::int32_t>(at.in), -static_cast<std::int32_t>(i * 777));
        EXPECT_EQ(co_await read_number<double>(at.in, std::endian::little), static_cast<double>(i) / 8);
      }
    };
    auto passing = weft::when_all(writes(), reads());
    co_await std::move(passing);
    EXPECT_TRUE((co_await at.in.peek()).empty());
  }
}

}  // namespace
