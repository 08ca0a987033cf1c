// Limits for readers and writers: of size, and of rate.
//
//     w::task<> upload(w::net::stream peer, w::io::pipe_writer to) {
//       w::io::rate_limited_reader slow{peer, 1'000'000, 64 * 1024};                      // bytes a second, and at once
//       w::io::limited_reader body{slow, 100'000'000, w::io::at_limit::fail};             // no more than that
//       co_await w::io::copy(body, to);
//     }
//
// They are readers and writers themselves, and templates over what they wrap, as the buffers of io.hpp: an lvalue is referred
// to, an rvalue is moved in. Threads, cancel and lifetime are as described in io.hpp.
//
// Rejected: one token bucket for many connections. They would wait for each other, and each read would take a lock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <weft/buffered_reader.hpp>
#include <weft/clock.hpp>
#include <weft/detail/io/byte_bucket.hpp>
#include <weft/detail/io/byte_buffer.hpp>
#include <weft/error.hpp>
#include <weft/io_concepts.hpp>
#include <weft/nothrow.hpp>
#include <weft/task.hpp>
#include <weft/with.hpp>

namespace weft::io {

// ---- how much -------------------------------------------------------------------------------------------------------------

/// What a limited_reader does at its limit: it ends, or fails with message_size if there is more to read.
enum class at_limit { end, fail };

/// Reads at most the first `limit` bytes of another reader: a body of known length, or an input of limited length.
///
///     w::io::limited_reader body{in, length};
///     while (const std::size_t size = co_await body.read(buffer)) use(buffer, size);
///
/// Cancel    a stopped read has taken nothing.
/// Fails     as the reader that it wraps. With at_limit::fail also with message_size, from then on always, where there is more
///           than `limit`; to find that out it reads one byte more, which is lost.
/// Lifetime  a reader that is passed as an lvalue outlives it. Move it only while nobody reads.
/// Cost      a coroutine frame for each read; no buffer.
template <reader Source>
class limited_reader {
 public:
  /// `limit`: in bytes. An lvalue is referred to, an rvalue is kept.
  explicit limited_reader(Source&& source, std::uint64_t limit, at_limit then = at_limit::end) noexcept
      : source_{std::forward<Source>(source)}, limit_{limit}, left_{limit}, then_{then} {}
  limited_reader(limited_reader&& other) noexcept
      : source_{std::forward<Source>(other.source_)},
        limit_{other.limit_},
        left_{other.left_},
        then_{other.then_},
        is_beyond_{other.is_beyond_} {
    WEFT_EXPECTS(!other.is_read_, "a limited_reader was moved while a task reads from it");
  }
  ~limited_reader() = default;

  /// Reads as the reader that it wraps, but at most left() bytes. 0: that reader has ended, or `limit` bytes were read.
  task<std::size_t> read(std::span<std::byte> into);

  /// How many bytes of the limit are left. If it is not 0 at the end, the wrapped reader has ended before the limit.
  std::uint64_t left() const noexcept { return left_; }
  std::remove_reference_t<Source>& source() noexcept { return source_; }

 private:
  [[nodiscard]] detail::one_at_a_time reads() noexcept {
    return {is_read_, "two tasks read from one limited_reader at once: which of them gets what would be chance"};
  }
  Source source_;
  std::uint64_t limit_, left_;
  at_limit then_;
  bool is_beyond_ = false, is_read_ = false;
};
template <class Source>
limited_reader(Source&&, std::uint64_t) -> limited_reader<Source>;
template <class Source>
limited_reader(Source&&, std::uint64_t, at_limit) -> limited_reader<Source>;

// ---- how fast -------------------------------------------------------------------------------------------------------------

/// Limits the rate of a reader by a token bucket: within any t seconds it reads at most burst + t * bytes_per_second bytes.
/// Neither figure is 0.
///
/// Suspends  until there are tokens for as many bytes as are asked for, or for half of the burst, by the clock of the task;
///           then as the reader that it wraps.
/// Cancel    a stopped read has taken nothing.
/// Lifetime  a reader that is passed as an lvalue outlives it. Move it only while nobody reads.
/// Cost      a coroutine frame for each read, which contains the timer, and two readings of the clock.
/// Source    token bucket, as in RFC 2697.
template <reader Source>
class rate_limited_reader {
 public:
  /// An lvalue is referred to, an rvalue is kept.
  explicit rate_limited_reader(Source&& source, std::uint64_t bytes_per_second, std::uint64_t burst) noexcept
      : source_{std::forward<Source>(source)}, bucket_{bytes_per_second, burst} {}
  rate_limited_reader(rate_limited_reader&& other) noexcept
      : source_{std::forward<Source>(other.source_)}, bucket_{other.bucket_} {
    WEFT_EXPECTS(!other.is_read_, "a rate_limited_reader was moved while a task reads from it");
  }
  ~rate_limited_reader() = default;

  /// Reads as the wrapped reader, but at most as many bytes as there are tokens.
  task<std::size_t> read(std::span<std::byte> into);
  std::remove_reference_t<Source>& source() noexcept { return source_; }  ///< the wrapped reader, without a limit

 private:
  [[nodiscard]] detail::one_at_a_time reads() noexcept {
    return {is_read_, "two tasks read from one rate_limited_reader at once: which of them gets what would be chance"};
  }
  Source source_;
  detail::byte_bucket bucket_;
  bool is_read_ = false;
};
template <class Source>
rate_limited_reader(Source&&, std::uint64_t, std::uint64_t) -> rate_limited_reader<Source>;

/// Limits the rate of a writer, as rate_limited_reader does that of a reader.
///
/// Cancel    a write() that is stopped, or fails, after its first byte closes this, and shuts down or closes the writer that it
///           wraps, if that is possible, as of a stream and a pipe. Later writes fail with errc::closed. A buffered_writer that
///           it wraps keeps the written part in its buffer, and a flush of it sends that.
template <writer Sink>
class rate_limited_writer {
 public:
  /// An lvalue is referred to, an rvalue is kept.
  explicit rate_limited_writer(Sink&& sink, std::uint64_t bytes_per_second, std::uint64_t burst) noexcept
      : sink_{std::forward<Sink>(sink)}, bucket_{bytes_per_second, burst} {}
  rate_limited_writer(rate_limited_writer&& other) noexcept
      : sink_{std::forward<Sink>(other.sink_)}, bucket_{other.bucket_}, is_cut_{other.is_cut_} {
    WEFT_EXPECTS(!other.is_written_, "a rate_limited_writer was moved while a task writes to it");
  }
  ~rate_limited_writer() = default;

  /// Writes as the writer that it wraps, but at most as many bytes as there are tokens for.
  task<std::size_t> write_some(std::span<const std::byte> data);
  task<> write(std::span<const std::byte> data);  ///< writes all of `data`, in parts
  /// The same of a text, which outlives the await.
  WEFT_COROUTINE_WRAPPER task<> write(std::string_view text) { return write(std::as_bytes(std::span{text})); }
  std::remove_reference_t<Sink>& sink() noexcept { return sink_; }  ///< the wrapped writer, without a limit

 private:
  class unfinished;
  [[nodiscard]] detail::one_at_a_time writes() noexcept {
    return {is_written_,
            "two tasks write to one rate_limited_writer at once: what each writes could come apart in the middle"};
  }
  task<std::size_t> put(std::span<const std::byte> data);
  void cut() noexcept;

  Sink sink_;
  detail::byte_bucket bucket_;
  bool is_cut_ = false, is_written_ = false;
};
template <class Sink>
rate_limited_writer(Sink&&, std::uint64_t, std::uint64_t) -> rate_limited_writer<Sink>;

// ---- implementation -------------------------------------------------------------------------------------------------------

template <reader Source>
task<std::size_t> limited_reader<Source>::read(std::span<std::byte> into) {
  const auto reading = reads();
  co_await check_stop();
  if (into.empty()) co_return std::size_t{0};
  if (left_ != 0) {
    const std::size_t got = co_await source_.read(into.first(std::min<std::uint64_t>(into.size(), left_)));
    left_ -= got;
    co_return got;
  }
  if (then_ == at_limit::end) co_return std::size_t{0};
  if (!is_beyond_) {
    std::byte one;
    const std::size_t got = co_await source_.read({&one, 1});
    is_beyond_ = got != 0;
  }
  if (is_beyond_) detail::throw_too_long("read", static_cast<std::size_t>(limit_));
  co_return std::size_t{0};
}

template <reader Source>
task<std::size_t> rate_limited_reader<Source>::read(std::span<std::byte> into) {
  const auto reading = reads();
  co_await check_stop();
  if (into.empty()) co_return std::size_t{0};
  std::uint64_t may = 0;
  while ((may = bucket_.available(into.size(), current_clock().now())) == 0)
    co_await sleep_until(bucket_.when(into.size()));
  const std::size_t got = co_await source_.read(into.first(may));
  bucket_.take(got, current_clock().now());
  co_return got;
}

template <writer Sink>
void rate_limited_writer<Sink>::cut() noexcept {
  is_cut_ = true;
  try {
    if constexpr (requires { sink_.shutdown(); })
      sink_.shutdown();
    else if constexpr (requires { sink_.close(); })
      sink_.close();
  } catch (...) {  // it is closed already, and says so
  }
}

template <writer Sink>
class rate_limited_writer<Sink>::unfinished {
 public:
  explicit unfinished(rate_limited_writer& of) noexcept : of_{&of} {}
  unfinished(const unfinished&) = delete;
  ~unfinished() {
    if (has_begun) of_->cut();
  }
  bool has_begun = false;

 private:
  rate_limited_writer* of_;
};

// What is not empty.
template <writer Sink>
task<std::size_t> rate_limited_writer<Sink>::put(std::span<const std::byte> data) {
  if (is_cut_) co_await fail_with(error{make_error_code(errc::closed), "write"});
  std::uint64_t may = 0;
  while ((may = bucket_.available(data.size(), current_clock().now())) == 0)
    co_await sleep_until(bucket_.when(data.size()));
  const std::size_t written = co_await sink_.write_some(data.first(may));
  detail::expect_some(written, may);
  bucket_.take(written, current_clock().now());
  co_return written;
}

template <writer Sink>
task<std::size_t> rate_limited_writer<Sink>::write_some(std::span<const std::byte> data) {
  const auto writing = writes();
  co_await check_stop();
  if (data.empty()) co_return std::size_t{0};
  co_return co_await put(data);
}

template <writer Sink>
task<> rate_limited_writer<Sink>::write(std::span<const std::byte> data) {
  const auto writing = writes();
  co_await check_stop();
  for (unfinished half{*this}; !data.empty(); half.has_begun = !data.empty()) {
    const std::size_t written = co_await put(data);
    data = data.subspan(written);
  }
}

}  // namespace weft::io
