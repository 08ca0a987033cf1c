// Readers and writers of bytes: buffers around them, copies between them, pipes in memory.
//
//     w::task<> talk(const w::net::stream& peer) {
//       w::io::buffered_reader in{peer};
//       w::io::buffered_writer out{peer};
//       auto lines = in.lines(1024);
//       while (const std::string* line = co_await lines.next()) {
//         co_await out.print("you said: ", *line, "\n");
//         co_await out.flush();
//       }
//     }
//
// What holds for all of it:
//
//   Threads   one task at a time reads from something, and one writes to it. A second one ends the program with a sentence, where
//             it is noticed.
//   Cancel    an operation that is stopped has consumed nothing and written nothing, or says what it has. So has one that fails.
//   Lifetime  what is read into, and what is written, stays until the operation has ended.
//
// A buffer knows the type of what it is around: a call costs no more than what it does, and any class with the operations of a
// reader will do. An lvalue is borrowed, an rvalue moves in: `buffered_reader in{stream}` is a buffered_reader<net::stream&>.
//
// Rejected: (a) buffers that do not know what they are around: each of their reads would need a frame of its own, which many
// sources don't. (b) A read that returns what it has when it is stopped: each caller would have to handle that. Bytes that have
// come stay in the buffer instead, so that whoever reads next finds all of them.
//
// Long because buffers and copies are templates, so what their operations do stands here, below what they are.
#pragma once

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <weft/async_generator.hpp>
#include <weft/detail/io/byte_buffer.hpp>
#include <weft/error.hpp>
#include <weft/io_pipe.hpp>
#include <weft/task.hpp>
#include <weft/with.hpp>

namespace weft::io {

// ---- what reads and writes ------------------------------------------------------------------------------------------------

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
  ended_early(std::string_view what, std::size_t missing);
  /// How many bytes were missing, at least.
  std::size_t missing() const noexcept { return missing_; }

 private:
  std::size_t missing_;
};

/// What a piece may be long, where nothing else is said.
inline constexpr std::size_t default_limit = std::size_t{64} * 1024;
/// What a buffer holds, where nothing else is said.
inline constexpr std::size_t default_capacity = std::size_t{8} * 1024;

// ---- reading --------------------------------------------------------------------------------------------------------------

/// A reader whose bytes can be looked at before they are taken, and taken in pieces. What protocols are read with.
///
/// Suspends  where what is asked for has not come yet.
/// Cancel    has consumed nothing: what has come stays in the buffer, and whoever reads next finds it.
/// Fails     as the reader does, and std::bad_alloc; likewise, it has consumed nothing then.
/// Lifetime  a reader that is an lvalue outlives it. It moves while nobody reads.
/// Cost      one buffer, made at the first read, which grows to the longest piece that is waited for.
template <reader Source>
class buffered_reader {
 public:
  /// `capacity` is not 0.
  explicit buffered_reader(Source&& source, std::size_t capacity = default_capacity) noexcept
      : source_{std::forward<Source>(source)}, buffer_{capacity} {
    WEFT_EXPECTS(capacity != 0, "a buffered_reader has room for a byte at least");
  }
  buffered_reader(buffered_reader&& other) noexcept
      : source_{std::forward<Source>(other.source_)}, buffer_{std::move(other.buffer_)} {
    WEFT_EXPECTS(!other.is_read_, "a buffered_reader was moved while a task reads from it");
  }
  ~buffered_reader() = default;

  /// What is in the buffer; else what one read gives. 0 at the end. Into a large span it reads without the buffer.
  task<std::size_t> read(std::span<std::byte> into);

  /// Fills `into`. Throws ended_early, where the input ends before; what has come can still be read.
  ///
  /// Cost  passes through the buffer, which grows to the size of `into`, so that a stop loses nothing. Where much is read that
  ///       need not be in one piece, use read() or copy().
  task<> read_exactly(std::span<std::byte> into);

  /// What comes before `delimiter`, which is consumed, too, and not part of it. Nothing, if the input has ended.
  ///
  /// Fails     with ended_early, where the input ends behind something that no delimiter follows; with message_size, where the
  ///           delimiter does not begin within `limit` bytes. Nothing is consumed then: read() gives what has come, the same
  ///           call with a higher limit goes on, and skip_until() gets to what follows.
  /// Lifetime  `delimiter`, which is not empty, stays.
  task<std::optional<std::string>> read_until(std::string_view delimiter, std::size_t limit = default_limit);

  /// The next line without its end, which is "\n" or "\r\n". The last one needs none. Nothing, if the input has ended.
  ///
  /// Fails  with message_size, where a line has more than `limit` bytes; see read_until().
  task<std::optional<std::string>> read_line(std::size_t limit = default_limit);

  /// The lines up to the end, as read_line() gives them.
  async_generator<std::string> lines(std::size_t limit = default_limit);

  /// Drops all up to the next delimiter, and that. False: the input has ended, and all was dropped.
  ///
  /// Cancel  drops what has come, but for what the delimiter may begin with: called again, it goes on.
  task<bool> skip_until(std::string_view delimiter);

  /// What has come, once that are `size` bytes at least; fewer, if the input ends before.
  ///
  /// Lifetime  valid until the next operation but consume().
  task<std::span<const std::byte>> peek(std::size_t size = 1);
  /// What is in the buffer. Does not wait.
  std::span<const std::byte> buffered() const noexcept { return buffer_.held(); }
  /// Takes so many of what is in the buffer.
  void consume(std::size_t size) noexcept {
    WEFT_EXPECTS(size <= buffer_.size(), "a buffered_reader was told to consume more than it holds");
    buffer_.consume(size);
  }

  /// What it reads from. Bytes that are buffered have left it.
  std::remove_reference_t<Source>& source() noexcept { return source_; }

 private:
  static constexpr const char* two_readers =
      "two tasks read from one buffered_reader at once: which of them gets what would be chance";
  [[nodiscard]] detail::one_at_a_time reads() noexcept { return {is_read_, two_readers}; }
  task<bool> fill_to(std::size_t size);
  task<bool> fill_more();

  Source source_;
  detail::byte_buffer buffer_;
  bool is_read_ = false;
};
template <class Source>
buffered_reader(Source&&) -> buffered_reader<Source>;
template <class Source>
buffered_reader(Source&&, std::size_t) -> buffered_reader<Source>;

// ---- writing --------------------------------------------------------------------------------------------------------------

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

// ---- copies ---------------------------------------------------------------------------------------------------------------

/// Writes what it reads, up to the end of `from`, or `limit` bytes. Gives how many those were. Neither end is closed, nor flushed.
///
/// Cancel    a buffered_reader holds what was not written yet, so nothing is lost. From any other reader, one piece may have
///           been read and not written, or written in part; then the writer is closed, as its write() says.
/// Fails     as either does, likewise.
/// Lifetime  both outlive it.
/// Cost      16 KiB, unless `from` is a buffered_reader, whose buffer is used.
template <reader From, writer To>
task<std::uint64_t> copy(From& from, To& to, std::uint64_t limit = std::numeric_limits<std::uint64_t>::max());

// ---- implementation -------------------------------------------------------------------------------------------------------

}  // namespace weft::io

namespace weft::detail {

[[noreturn]] void throw_too_long(const char* what, std::size_t limit);
// Of what write_some() gives: with less a loop would have no end.
inline void expect_some(std::size_t taken, [[maybe_unused]] std::size_t of) noexcept {
  WEFT_EXPECTS(taken != 0 && taken <= of, "a writer has taken no byte, or more than it was given");
}
template <class T>
inline constexpr bool is_buffered_reader = false;
template <class Source>
inline constexpr bool is_buffered_reader<io::buffered_reader<Source>> = true;

}  // namespace weft::detail

namespace weft::io {

// One read, for which there is room behind reserve(). False: the end.
template <reader Source>
task<bool> buffered_reader<Source>::fill_more() {
  const std::size_t got = co_await source_.read(buffer_.room());
  buffer_.filled(got);
  co_return got != 0;
}

// Whether so many bytes have come. Otherwise the input has ended.
template <reader Source>
task<bool> buffered_reader<Source>::fill_to(std::size_t size) {
  while (buffer_.size() < size) {
    buffer_.reserve(size);
    const bool goes_on = co_await fill_more();
    if (!goes_on) co_return false;
  }
  co_return true;
}

template <reader Source>
task<std::size_t> buffered_reader<Source>::read(std::span<std::byte> into) {
  const auto reading = reads();
  co_await check_stop();
  if (into.empty()) co_return std::size_t{0};
  if (buffer_.size() == 0) {
    if (into.size() >= buffer_.capacity()) co_return co_await source_.read(into);
    co_await fill_to(1);
  }
  const std::size_t size = std::min(into.size(), buffer_.size());
  if (size != 0) std::memcpy(into.data(), buffer_.held().data(), size);
  buffer_.consume(size);
  co_return size;
}

template <reader Source>
task<> buffered_reader<Source>::read_exactly(std::span<std::byte> into) {
  const auto reading = reads();
  co_await check_stop();
  const bool is_there = co_await fill_to(into.size());
  if (!is_there)
    throw ended_early{"read exactly " + std::to_string(into.size()) + " bytes", into.size() - buffer_.size()};
  if (!into.empty()) std::memcpy(into.data(), buffer_.held().data(), into.size());
  buffer_.consume(into.size());
}

template <reader Source>
task<std::optional<std::string>> buffered_reader<Source>::read_until(std::string_view delimiter, std::size_t limit) {
  WEFT_EXPECTS(!delimiter.empty(), "a buffered_reader reads until a delimiter of a byte at least");
  const auto reading = reads();
  co_await check_stop();
  for (std::size_t searched = 0;;) {
    const std::string_view text = buffer_.text();
    const std::size_t at = text.find(delimiter, searched);
    if (at != text.npos) {
      if (at > limit) detail::throw_too_long("read until a delimiter", limit);
      std::optional<std::string> piece{text.substr(0, at)};
      buffer_.consume(at + delimiter.size());
      co_return piece;
    }
    if (text.size() >= delimiter.size()) {
      searched = text.size() - delimiter.size() + 1;  // where it may begin
      if (searched > limit) detail::throw_too_long("read until a delimiter", limit);
    }
    buffer_.reserve(text.size() + 1);
    const bool goes_on = co_await fill_more();
    if (goes_on) continue;
    if (buffer_.size() == 0) co_return std::nullopt;
    throw ended_early{"read until a delimiter", 1};
  }
}

template <reader Source>
task<std::optional<std::string>> buffered_reader<Source>::read_line(std::size_t limit) {
  const auto reading = reads();
  co_await check_stop();
  for (std::size_t searched = 0;;) {
    std::string_view text = buffer_.text();
    const std::size_t end = text.find('\n', searched);
    searched = text.size();
    text = text.substr(0, end);
    const std::size_t size = text.size() - (text.ends_with('\r') ? 1 : 0);  // if its end has come, or comes next
    if (size > limit) detail::throw_too_long("read a line", limit);
    if (end != text.npos) {
      std::optional<std::string> line{text.substr(0, size)};
      buffer_.consume(end + 1);
      co_return line;
    }
    buffer_.reserve(text.size() + 1);
    const bool goes_on = co_await fill_more();
    if (goes_on) continue;
    if (buffer_.size() == 0) co_return std::nullopt;
    if (buffer_.size() > limit) detail::throw_too_long("read a line", limit);
    std::optional<std::string> last{buffer_.text()};
    buffer_.consume(buffer_.size());
    co_return last;
  }
}

template <reader Source>
async_generator<std::string> buffered_reader<Source>::lines(std::size_t limit) {
  for (;;) {
    std::optional<std::string> line = co_await read_line(limit);
    if (!line) co_return;
    co_yield std::move(*line);
  }
}

template <reader Source>
task<bool> buffered_reader<Source>::skip_until(std::string_view delimiter) {
  WEFT_EXPECTS(!delimiter.empty(), "a buffered_reader skips until a delimiter of a byte at least");
  const auto reading = reads();
  co_await check_stop();
  for (;;) {
    if (const std::size_t at = buffer_.text().find(delimiter); at != std::string_view::npos) {
      buffer_.consume(at + delimiter.size());
      co_return true;
    }
    buffer_.keep_last(delimiter.size() - 1);
    buffer_.reserve(buffer_.size() + 1);
    const bool goes_on = co_await fill_more();
    if (goes_on) continue;
    buffer_.consume(buffer_.size());
    co_return false;
  }
}

template <reader Source>
task<std::span<const std::byte>> buffered_reader<Source>::peek(std::size_t size) {
  const auto reading = reads();
  co_await check_stop();
  co_await fill_to(size);
  co_return buffer_.held();
}

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

template <reader From, writer To>
task<std::uint64_t> copy(From& from, To& to, std::uint64_t limit) {
  std::uint64_t copied = 0;
  const auto at_most = [&](std::size_t size) {
    return static_cast<std::size_t>(std::min<std::uint64_t>(size, limit - copied));
  };
  if constexpr (detail::is_buffered_reader<From>) {
    while (copied != limit) {
      std::span<const std::byte> there = co_await from.peek();
      if (there.empty()) break;
      there = there.first(at_most(there.size()));
      const std::size_t written = co_await to.write_some(there);
      detail::expect_some(written, there.size());
      from.consume(written);
      copied += written;
    }
  } else {
    constexpr std::size_t capacity = std::size_t{16} * 1024;
    const auto buffer = std::make_unique_for_overwrite<std::byte[]>(capacity);
    while (copied != limit) {
      const std::span<std::byte> room{buffer.get(), at_most(capacity)};
      const std::size_t got = co_await from.read(room);
      if (got == 0) break;
      co_await to.write(room.first(got));
      copied += got;
    }
  }
  co_return copied;
}

}  // namespace weft::io
