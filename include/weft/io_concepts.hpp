// What bytes are read from and written to: the concepts `reader` and `writer`, and the error of an input that ends early. Part
// of io.hpp.
//
//     static_assert(w::io::reader<w::net::stream>);
//     static_assert(w::io::writer<my_compressor>);
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>
#include <weft/error.hpp>
#include <weft/task.hpp>

namespace weft::io {

/// A source of bytes. `co_await from.read(into)` puts at least one byte into `into` and gives how many; it gives 0 at the end,
/// and where `into` is empty. A read that is stopped, or fails, has taken nothing.
template <class T>
concept reader = requires(std::remove_reference_t<T>& from, std::span<std::byte> into) {
  { from.read(into) } -> awaitable;
  requires std::same_as<await_result<decltype(from.read(into))>, std::size_t>;
};

/// A destination of bytes. `co_await to.write_some(data)` takes a first part of `data`, at least one byte unless it is empty,
/// and gives its size; if it is stopped, or fails, it has taken nothing. `co_await to.write(data)` takes all of it; if it is
/// stopped, or fails, after it has taken a part, it closes the writer, since the receiver has got an incomplete message.
template <class T>
concept writer = requires(std::remove_reference_t<T>& to, std::span<const std::byte> data) {
  { to.write_some(data) } -> awaitable;
  { to.write(data) } -> awaitable;
  requires std::same_as<await_result<decltype(to.write_some(data))>, std::size_t>;
};

/// Thrown where an input ends in the middle of what was to be read. Its code is errc::closed.
class ended_early : public error {
 public:
  ended_early(std::string_view what, std::size_t missing);  ///< at least `missing` bytes of `what` have not come
  /// How many bytes are missing at least.
  std::size_t missing() const noexcept { return missing_; }

 private:
  std::size_t missing_;
};

/// The default limit for the length of a line or another piece, in bytes.
inline constexpr std::size_t default_limit = std::size_t{64} * 1024;
/// The default size of a buffer, in bytes.
inline constexpr std::size_t default_capacity = std::size_t{8} * 1024;

}  // namespace weft::io
