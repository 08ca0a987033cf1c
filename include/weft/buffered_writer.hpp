// A buffered writer: collects small pieces in a buffer and writes them together. Part of io.hpp, which says what holds for all
// writers.
//
//     w::io::buffered_writer out{peer};
//     co_await out.print("HTTP/1.1 ", status, " ", reason, "\r\n\r\n");
//     co_await out.flush();
#pragma once

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <weft/detail/base/config.hpp>
#include <weft/detail/io/byte_buffer.hpp>
#include <weft/io_concepts.hpp>
#include <weft/task.hpp>
#include <weft/with.hpp>

namespace weft::io {

/// What print() can write: text, a char, a number, a bool.
template <class T>
concept printable = std::convertible_to<const T&, std::string_view> ||
                    (std::is_arithmetic_v<T> && !std::same_as<T, wchar_t> && !std::same_as<T, char8_t> &&
                     !std::same_as<T, char16_t> && !std::same_as<T, char32_t>);

/// Collects small pieces in a buffer and writes them to a sink together.
///
/// Its destructor drops what was not flushed, since it can't wait: call flush() at the end.
///
/// Suspends  where the buffer is full, and the sink has to wait.
/// Fails     as the sink does, and with std::bad_alloc.
/// Threads   one task at a time; a second one ends the program with a sentence.
/// Lifetime  a sink that is an lvalue outlives it. It can be moved while nobody writes.
/// Cost      one buffer, allocated at the first write.
///
/// Rejected: a destructor that ends the program where something was not flushed. A peer that resets its connection would end a
/// server that catches the error in the same function.
template <writer Sink>
class buffered_writer {
 public:
  /// Writes to `sink`. `capacity` is the size of the buffer in bytes, not 0.
  explicit buffered_writer(Sink&& sink, std::size_t capacity = default_capacity) noexcept
      : sink_{std::forward<Sink>(sink)}, buffer_{capacity} {
    WEFT_EXPECTS(capacity != 0, "a buffered_writer has room for a byte at least");
  }
  buffered_writer(buffered_writer&& other) noexcept
      : sink_{std::forward<Sink>(other.sink_)}, buffer_{std::move(other.buffer_)} {
    WEFT_EXPECTS(!other.is_written_, "a buffered_writer was moved while a task writes to it");
  }
  ~buffered_writer() = default;

  /// Writes all of `data` into the buffer, after a flush where it has too little room. Data that is at least as large as the
  /// buffer goes directly to the sink.
  ///
  /// Cancel  a stopped write has taken nothing of `data`, unless that is at least as large as the buffer: then it does what the
  ///         sink's own write() does, which closes the sink after a part was written.
  task<> write(std::span<const std::byte> data);
  WEFT_COROUTINE_WRAPPER task<> write(std::string_view text) { return write(std::as_bytes(std::span{text})); }
  /// Puts a first part of `data` into the buffer, as much as there is room for, and gives its size. Flushes only where there is
  /// no room.
  ///
  /// Cancel  a stopped call has taken nothing of `data`.
  task<std::size_t> write_some(std::span<const std::byte> data);

  /// Writes texts, characters and numbers, one after the other; a number in the shortest form that reads back as the same
  /// value.
  ///
  ///     co_await out.print("HTTP/1.1 ", status, " ", reason, "\r\n");
  ///
  /// Cancel  as write().
  /// Cost    a string of all parts.
  template <printable... Parts>
  WEFT_COROUTINE_WRAPPER task<> print(const Parts&... parts) {
    std::string text;
    (append(text, parts), ...);
    return write_text(std::move(text));
  }

  /// Writes all that is in the buffer to the sink.
  ///
  /// Cancel  what was written has left the buffer, and the rest is still in it, also where the flush fails: the next flush goes
  ///         on, and no byte is lost or written twice.
  task<> flush();

  /// How many bytes are in the buffer.
  std::size_t buffered() const noexcept { return buffer_.size(); }
  /// Drops the bytes in the buffer.
  void discard() noexcept { buffer_.consume(buffer_.size()); }
  /// The sink, which has not got the bytes in the buffer yet.
  std::remove_reference_t<Sink>& sink() noexcept { return sink_; }

 private:
  static constexpr const char* two_writers =
      "two tasks write to one buffered_writer at once: what each writes could come apart in the middle";
  [[nodiscard]] detail::one_at_a_time writes() noexcept { return {is_written_, two_writers}; }
  std::size_t room() const noexcept { return buffer_.capacity() - buffer_.size(); }
  task<> flush_all();
  task<> write_text(std::string text) { co_await write(std::string_view{text}); }
  template <class Part>
  static void append(std::string& to, const Part& part);

  Sink sink_;
  detail::byte_buffer buffer_;
  bool is_written_ = false;
};
template <class Sink>
buffered_writer(Sink&&) -> buffered_writer<Sink>;
template <class Sink>
buffered_writer(Sink&&, std::size_t) -> buffered_writer<Sink>;

// ---- implementation -------------------------------------------------------------------------------------------------------

template <writer Sink>
task<> buffered_writer<Sink>::flush_all() {
  while (buffer_.size() != 0) {
    const std::size_t written = co_await sink_.write_some(buffer_.held());
    detail::expect_some(written, buffer_.size());
    buffer_.consume(written);
  }
}

template <writer Sink>
task<> buffered_writer<Sink>::write(std::span<const std::byte> data) {
  const auto writing = writes();
  co_await check_stop();
  if (data.size() > room()) co_await flush_all();
  if (data.size() >= buffer_.capacity()) co_return co_await sink_.write(data);
  buffer_.reserve(buffer_.size() + data.size());
  buffer_.put(data);
}

template <writer Sink>
task<std::size_t> buffered_writer<Sink>::write_some(std::span<const std::byte> data) {
  const auto writing = writes();
  co_await check_stop();
  if (data.empty()) co_return std::size_t{0};
  if (room() == 0) co_await flush_all();
  data = data.first(std::min(data.size(), room()));
  buffer_.reserve(buffer_.size() + data.size());
  buffer_.put(data);
  co_return data.size();
}

template <writer Sink>
task<> buffered_writer<Sink>::flush() {
  const auto writing = writes();
  co_await check_stop();
  co_await flush_all();
}

template <writer Sink>
template <class Part>
void buffered_writer<Sink>::append(std::string& to, const Part& part) {
  if constexpr (std::same_as<Part, char>) {
    to += part;
  } else if constexpr (std::same_as<Part, bool>) {
    to += part ? "true" : "false";
  } else if constexpr (std::is_arithmetic_v<Part>) {
    char digits[128];  // for the shortest form of a long double, too
    to.append(digits, std::to_chars(digits, digits + sizeof digits, part).ptr);
  } else {
    to += std::string_view{part};
  }
}

}  // namespace weft::io
