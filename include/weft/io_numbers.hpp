// Numbers as bytes: with a size and a byte order that both sides have agreed on, or as varints, in which small numbers take few
// bytes.
//
//     w::task<> send_point(w::io::buffered_writer<const w::net::stream&>& out, std::uint32_t id, std::int64_t x, float y) {
//       co_await w::io::write_number(out, id, std::endian::big);
//       co_await w::io::write_varint(out, x);
//       co_await w::io::write_number(out, y, std::endian::big);
//     }
//
// A varint has seven bits in each byte, the lowest ones first; the eighth bit says that more follow (LEB128, as in protocol
// buffers). Signed types are zigzag-encoded: 0, -1, 1, -2 become 0, 1, 2, 3, so that small negative numbers are short, too.
//
// Threads, cancel and lifetime are as described in io.hpp.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <system_error>
#include <type_traits>
#include <weft/error.hpp>
#include <weft/io.hpp>
#include <weft/task.hpp>

namespace weft::io {

/// An integer type except bool.
template <class T>
concept integer = std::integral<T> && !std::same_as<std::remove_cv_t<T>, bool> && sizeof(T) <= sizeof(std::uint64_t);
/// An integer type except bool, float or double.
template <class T>
concept number =
    integer<T> || (std::floating_point<T> && std::numeric_limits<T>::is_iec559 && sizeof(T) <= sizeof(std::uint64_t));

/// Reads the next `sizeof(T)` bytes, and gives them as a number.
///
///     const auto size = co_await w::io::read_number<std::uint32_t>(in, std::endian::big);
///
/// Suspends  as buffered_reader does.
/// Cancel    a stopped call has consumed nothing.
/// Fails     as the reader does; with ended_early, where the input ends before. It has consumed nothing then.
/// Cost      does not call the source where the buffer has the bytes.
template <number T, reader Source>
task<T> read_number(buffered_reader<Source>& from, std::endian order);

/// Writes a number as `sizeof(T)` bytes.
///
/// Suspends  as buffered_writer does.
/// Cancel    as buffered_writer::write(): a stopped call has written nothing.
/// Fails     as the writer does.
template <number T, writer Sink>
task<> write_number(buffered_writer<Sink>& to, T value, std::endian order);

/// Reads the next varint, and gives it as a number; for a signed type, decodes the zigzag.
///
/// Cancel  a stopped call has consumed nothing.
/// Fails   as read_number(); with result_out_of_range, where it has more bits than T. It has consumed nothing then.
template <integer T, reader Source>
task<T> read_varint(buffered_reader<Source>& from);

/// Writes a number as a varint of up to ten bytes; for a signed type, as a zigzag.
///
/// Cancel  as write_number().
/// Fails   as the writer does.
template <integer T, writer Sink>
task<> write_varint(buffered_writer<Sink>& to, T value);

}  // namespace weft::io

// ---- implementation -------------------------------------------------------------------------------------------------------

namespace weft::detail {

template <std::size_t Size>
using bits_of_size = std::conditional_t<
    Size == 1, std::uint8_t,
    std::conditional_t<Size == 2, std::uint16_t, std::conditional_t<Size == 4, std::uint32_t, std::uint64_t>>>;

template <class T>
constexpr std::array<std::byte, sizeof(T)> bytes_of(T value, std::endian order) noexcept {
  const auto bits = std::bit_cast<bits_of_size<sizeof(T)>>(value);
  std::array<std::byte, sizeof(T)> bytes{};
  for (std::size_t i = 0; i != sizeof(T); ++i) {
    const std::size_t place = order == std::endian::little ? i : sizeof(T) - 1 - i;
    bytes[place] = static_cast<std::byte>((std::uint64_t{bits} >> (8 * i)) & 0xff);
  }
  return bytes;
}
// `bytes` has at least sizeof(T).
template <class T>
constexpr T number_of(std::span<const std::byte> bytes, std::endian order) noexcept {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i != sizeof(T); ++i) {
    const std::size_t place = order == std::endian::little ? i : sizeof(T) - 1 - i;
    bits |= std::to_integer<std::uint64_t>(bytes[place]) << (8 * i);
  }
  return std::bit_cast<T>(static_cast<bits_of_size<sizeof(T)>>(bits));
}

inline constexpr std::size_t longest_varint = 10;
struct varint {
  std::uint64_t bits = 0;
  std::size_t size = 0;  // in bytes; 0: its end is missing
  bool fits = true;      // false: it has too many bits
};
constexpr varint parse_varint(std::span<const std::byte> from, unsigned most_bits) noexcept {
  varint got;
  for (std::size_t i = 0; i != from.size(); ++i) {
    const auto part = std::to_integer<std::uint64_t>(from[i] & std::byte{0x7f});
    if (i == longest_varint || (i == longest_varint - 1 && part > 1)) return {.fits = false};
    got.bits |= part << (7 * i);
    if ((from[i] & std::byte{0x80}) != std::byte{0}) continue;
    got.size = i + 1;
    got.fits = most_bits == 64 || got.bits >> most_bits == 0;
    return got;
  }
  return {.fits = from.size() < longest_varint};
}

template <class T>
constexpr std::uint64_t varint_bits(T value) noexcept {
  using bits = std::make_unsigned_t<T>;
  if constexpr (std::is_signed_v<T>)  // the sign is the lowest bit; of negative numbers, the others are inverted
    return static_cast<bits>(static_cast<bits>(static_cast<bits>(value) << 1) ^
                             (value < 0 ? static_cast<bits>(-1) : bits{0}));
  else
    return value;
}
template <class T>
constexpr T number_of_varint(std::uint64_t bits) noexcept {
  if constexpr (std::is_signed_v<T>)
    return static_cast<T>((bits >> 1) ^ (0 - (bits & 1)));
  else
    return static_cast<T>(bits);
}

struct varint_bytes {
  explicit constexpr varint_bytes(std::uint64_t bits) noexcept {
    for (; bits > 0x7f; bits >>= 7) bytes[size++] = static_cast<std::byte>((bits & 0x7f) | 0x80);
    bytes[size++] = static_cast<std::byte>(bits);
  }
  std::array<std::byte, longest_varint> bytes{};
  std::size_t size = 0;
};

}  // namespace weft::detail

namespace weft::io {

template <number T, reader Source>
task<T> read_number(buffered_reader<Source>& from, std::endian order) {
  const std::span<const std::byte> have = co_await from.peek(sizeof(T));
  if (have.size() < sizeof(T)) throw ended_early{"read a number", sizeof(T) - have.size()};
  const T value = detail::number_of<T>(have, order);
  from.consume(sizeof(T));
  co_return value;
}

template <number T, writer Sink>
task<> write_number(buffered_writer<Sink>& to, T value, std::endian order) {
  const auto bytes = detail::bytes_of(value, order);
  co_await to.write(std::span<const std::byte>{bytes});
}

template <integer T, reader Source>
task<T> read_varint(buffered_reader<Source>& from) {
  for (std::size_t least = 1;;) {
    const std::span<const std::byte> have = co_await from.peek(least);
    const detail::varint got = detail::parse_varint(have, 8 * sizeof(T));
    if (!got.fits) throw error{std::make_error_code(std::errc::result_out_of_range), "read a varint"};
    if (got.size != 0) {
      from.consume(got.size);
      co_return detail::number_of_varint<T>(got.bits);
    }
    if (have.size() < least) throw ended_early{"read a varint", 1};
    least = have.size() + 1;
  }
}

template <integer T, writer Sink>
task<> write_varint(buffered_writer<Sink>& to, T value) {
  const detail::varint_bytes all{detail::varint_bits(value)};
  co_await to.write(std::span{all.bytes}.first(all.size));
}

}  // namespace weft::io
