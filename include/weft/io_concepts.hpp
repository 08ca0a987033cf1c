// What bytes are read from and written to: the concepts `reader` and `writer`, and the error of an input that ends early. Part of
// io.hpp.
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

/// What bytes are read from. `read(into)` gives how many it has put there: at least one; 0 at the end, or if `into` is empty. One
/// that is stopped, or fails, has taken nothing.
template <class T>
concept reader = requires(std::remove_reference_t<T>& from, std::span<std::byte> into) {
  { from.read(into) } -> awaitable;
  requires std::same_as<await_result<decltype(from.read(into))>, std::size_t>;
};

/// What bytes are written to. `write_some(data)` gives how many it has taken: at least one, unless `data` is empty; one that is
/// stopped, or fails, has taken none. `write(data)` takes all; one that ends early after it has taken some closes what it writes
/// to, since nobody could tell any more what has arrived.
template <class T>
concept writer = requires(std::remove_reference_t<T>& to, std::span<const std::byte> data) {
  { to.write_some(data) } -> awaitable;
  { to.write(data) } -> awaitable;
  requires std::same_as<await_result<decltype(to.write_some(data))>, std::size_t>;
};

/// The input ended in the middle of what was asked for. Its code is errc::closed.
class ended_early : public error {
 public:
  ended_early(std::string_view what, std::size_t missing);  ///< `missing` bytes of `what`, at least
  /// How many bytes were missing, at least.
  std::size_t missing() const noexcept { return missing_; }

 private:
  std::size_t missing_;
};

/// What a piece may be long, where nothing else is said.
inline constexpr std::size_t default_limit = std::size_t{64} * 1024;
/// What a buffer holds, where nothing else is said.
inline constexpr std::size_t default_capacity = std::size_t{8} * 1024;

}  // namespace weft::io
