// A writer that puts small pieces together in a buffer. Part of io.hpp, which says what holds for all writers.
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

/// What print() writes: text, a character, a number, a bool.
template <class T>
concept printable = std::convertible_to<const T&, std::string_view> ||
                    (std::is_arithmetic_v<T> && !std::same_as<T, wchar_t> && !std::same_as<T, char8_t> &&
                     !std::same_as<T, char16_t> && !std::same_as<T, char32_t>);

/// A writer that puts small pieces together.
///
/// What was not flushed when it is destroyed is dropped: a destructor can't wait. So whoever ends well flushes.
///
/// Suspends  where its buffer is full, and what it writes to has no room.
/// Fails     as the writer does, and std::bad_alloc.
/// Lifetime  a writer that is an lvalue outlives it. It moves while nobody writes.
/// Cost      one buffer, made at the first write.
///
/// Rejected: a destructor that ends the program where something was not flushed. A peer that resets its connection would end
/// the server of whoever catches the error in the same function.
template <writer Sink>
class buffered_writer {
 public:
  /// `capacity` is not 0.
  explicit buffered_writer(Sink&& sink, std::size_t capacity = default_capacity) noexcept
      : sink_{std::forward<Sink>(sink)}, buffer_{capacity} {
    WEFT_EXPECTS(capacity != 0, "a buffered_writer has room for a byte at least");
  }
  buffered_writer(buffered_writer&& other) noexcept
      : sink_{std::forward<Sink>(other.sink_)}, buffer_{std::move(other.buffer_)} {
    WEFT_EXPECTS(!other.is_written_, "a buffered_writer was moved while a task writes to it");
  }
  ~buffered_writer() = default;

  /// Writes all of it: into the buffer, which is flushed before where it has no room. What is as large as the buffer is not
  /// copied.
  ///
  /// Cancel  has taken none of `data`, but where that is as large as the buffer: then as the writer's own write(), which closes
  ///         it where it is stopped half-way.
  task<> write(std::span<const std::byte> data);
  WEFT_COROUTINE_WRAPPER task<> write(std::string_view text) { return write(std::as_bytes(std::span{text})); }
  /// As much as there is room for; flushes only where there is none.
  ///
  /// Cancel  has taken none.
  task<std::size_t> write_some(std::span<const std::byte> data);

  /// Writes texts, characters and numbers, one after the other: numbers in the shortest form that reads back as the same.
  ///
  ///     co_await out.print("HTTP/1.1 ", status, " ", reason, "\r\n");
  ///
  /// Cancel  as write().
  /// Cost    a string for the whole.
  template <printable... Parts>
  WEFT_COROUTINE_WRAPPER task<> print(const Parts&... parts) {
    std::string text;
    (append(text, parts), ...);
    return write_text(std::move(text));
  }

  /// Writes what is in the buffer.
  ///
  /// Cancel  what was written has left the buffer, the rest is still there: the next flush goes on, and no byte is lost or
  ///         written twice. So has one that fails.
  task<> flush();

  /// How many bytes were not flushed yet.
  std::size_t buffered() const noexcept { return buffer_.size(); }
  /// Drops what was not flushed.
  void discard() noexcept { buffer_.consume(buffer_.size()); }
  /// What it writes to, which lacks what is buffered.
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
