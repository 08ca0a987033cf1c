// A reader with a buffer: what comes is looked at before it is taken, and taken in pieces, as lines. Part of io.hpp, which says what
// holds for all readers.
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

// ---- implementation -------------------------------------------------------------------------------------------------------

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

}  // namespace weft::io
