// A buffered reader: reads lines and other pieces of its input, and can show bytes before they are consumed. Part of io.hpp,
// which says what holds for all readers.
//
//     w::io::buffered_reader in{peer};
//     auto lines = in.lines(1024);
//     while (const std::string* line = co_await lines.next()) use(*line);
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <weft/async_generator.hpp>
#include <weft/detail/base/config.hpp>
#include <weft/detail/io/byte_buffer.hpp>
#include <weft/io_concepts.hpp>
#include <weft/task.hpp>
#include <weft/with.hpp>

namespace weft::detail {
  [[noreturn]] void throw_too_long(const char* what, std::size_t limit); }  // namespace weft::detail

namespace weft::io {

/// Reads pieces of an input through a buffer, for parsers of protocols: lines, bytes up to a delimiter, a known number of
/// bytes. Its bytes can be looked at before they are consumed.
///
/// Suspends  where the buffer does not have what is asked for, and the source has to wait.
/// Cancel    a stopped call has consumed nothing: what was received stays in the buffer for the next call.
/// Fails     as the source does, and with std::bad_alloc; it has consumed nothing then.
/// Threads   one task at a time; a second one ends the program with a sentence.
/// Lifetime  a source that is an lvalue outlives it. It can be moved while nobody reads.
/// Cost      one buffer, allocated at the first read, which grows to the size of the longest piece that is asked for.
template <reader Source>
class buffered_reader {
 public:
  /// Reads from `source`. `capacity` is the size of the buffer in bytes, not 0.
  explicit buffered_reader(Source&& source, std::size_t capacity = default_capacity) noexcept
      : source_{std::forward<Source>(source)}, buffer_{capacity} {
    WEFT_EXPECTS(capacity != 0, "a buffered_reader has room for a byte at least");
  }
  buffered_reader(buffered_reader&& other) noexcept
      : source_{std::forward<Source>(other.source_)}, buffer_{std::move(other.buffer_)} {
    WEFT_EXPECTS(!other.is_read_, "a buffered_reader was moved while a task reads from it");
  }
  ~buffered_reader() = default;

  /// Gives what is in the buffer, as much as `into` has room for; if that is empty, reads from the source once. 0: the end of
  /// the input. If `into` is at least as large as the buffer, it reads into it directly.
  task<std::size_t> read(std::span<std::byte> into);

  /// Fills all of `into`. Throws ended_early where the input ends before; what has come can still be read.
  ///
  /// Cost  the bytes pass through the buffer, which grows to the size of `into`, so that a stop loses nothing. For much data
  ///       that need not come in one piece, use read() or copy().
  task<> read_exactly(std::span<std::byte> into);

  /// Gives the bytes up to the next `delimiter`, without it, and consumes both. std::nullopt: the input has ended.
  ///
  /// Fails     with ended_early, where the input ends with bytes that no delimiter follows; with message_size, where the
  ///           delimiter does not begin within `limit` bytes. Nothing is consumed then: read() gives what has come, the same
  ///           call with a higher limit goes on, and skip_until() skips to what follows.
  /// Lifetime  `delimiter`, which is not empty, outlives the task.
  task<std::optional<std::string>> read_until(std::string_view delimiter, std::size_t limit = default_limit);

  /// Gives the next line, without the "\n" or "\r\n" at its end, which the last line may lack. std::nullopt: the input has
  /// ended.
  ///
  /// Fails  with message_size, where a line has more than `limit` bytes; nothing is consumed then: see read_until().
  task<std::optional<std::string>> read_line(std::size_t limit = default_limit);

  /// Gives all lines up to the end of the input, as read_line() does.
  async_generator<std::string> lines(std::size_t limit = default_limit);

  /// Consumes all bytes up to and with the next delimiter. False: the input has ended before one, and all of it was consumed.
  ///
  /// Cancel  consumes what has come, except for a possible beginning of the delimiter: another call goes on from there.
  task<bool> skip_until(std::string_view delimiter);

  /// Gives all bytes in the buffer, without consuming them, once there are at least `size`; fewer, if the input ends before.
  ///
  /// Lifetime  valid until the next operation other than consume().
  task<std::span<const std::byte>> peek(std::size_t size = 1);
  /// The bytes in the buffer. Does not wait; valid as those of peek().
  std::span<const std::byte> buffered() const noexcept { return buffer_.held(); }
  /// Consumes the first `size` bytes of the buffer, which has as many. Does not wait.
  void consume(std::size_t size) noexcept {
    WEFT_EXPECTS(size <= buffer_.size(), "a buffered_reader was told to consume more than it holds");
    buffer_.consume(size);
  }

  /// The source. It does not have the bytes that are in the buffer any more.
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

// ---- implementation -------------------------------------------------------------------------------------------------------

// Reads once into the buffer's free space, which reserve() has made. False: the input has ended.
template <reader Source>
task<bool> buffered_reader<Source>::fill_more() {
  const std::size_t got = co_await source_.read(buffer_.room());
  buffer_.filled(got);
  co_return got != 0;
}

// Reads until the buffer has `size` bytes. False: the input has ended before.
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

}  // namespace weft::io
