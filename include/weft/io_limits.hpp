// Limits for readers and writers: how much is read, and how fast bytes go.
//
//     w::task<> upload(w::net::stream peer, w::io::pipe_writer to) {
//       w::io::rate_limited_reader slow{peer, 1'000'000, 64 * 1024};                      // bytes a second, and at once
//       w::io::limited_reader body{slow, 100'000'000, w::io::at_limit::fail};             // no more than that
//       co_await w::io::copy(body, to);
//     }
//
// They are readers and writers themselves, and know the type of what they are around, as the buffers of io.hpp do: an lvalue
// is borrowed, an rvalue moves in. What holds for io.hpp (threads, cancel, lifetime) holds for them.
//
// Rejected: one bucket for many connections. They would wait for each other, and a lock would lie in each read.
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
#include <weft/detail/io/byte_buffer.hpp>
#include <weft/detail/io/token_bucket.hpp>
#include <weft/error.hpp>
#include <weft/io_concepts.hpp>
#include <weft/nothrow.hpp>
#include <weft/task.hpp>
#include <weft/with.hpp>

namespace weft::io {

// ---- how much -------------------------------------------------------------------------------------------------------------

/// What a reader does that has given as much as it may: it ends, or fails with message_size if more is there.
enum class at_limit : std::uint8_t { end, fail };

/// A reader of the first `limit` bytes of another one: of a body whose length is known, or of what must not be longer.
///
///     w::io::limited_reader body{in, length};
///     while (const std::size_t size = co_await body.read(buffer)) use(buffer, size);
///
/// Cancel    has taken nothing.
/// Fails     as the reader does. With at_limit::fail, with message_size where there is more than `limit`, and then for good; to
///           know that, it takes a byte, which nobody gets.
/// Lifetime  a reader that is an lvalue outlives it. It moves while nobody reads.
/// Cost      a frame a read; no buffer.
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

  /// As the reader's, of no more than left(); 0: it has ended, or has given `limit` bytes.
  task<std::size_t> read(std::span<std::byte> into);

  /// How many bytes it may give yet. Not 0 behind the end: its reader has ended before.
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

/// A reader that gives no more than `bytes_per_second`, and up to `burst` at once, by a token bucket: in any time of t seconds no
/// more than burst + t * bytes_per_second. Neither is 0.
///
/// Suspends  until there are tokens for what is asked, or for half of the burst, by the clock of the task; then as its reader.
/// Cancel    has taken nothing.
/// Lifetime  a reader that is an lvalue outlives it. It moves while nobody reads.
/// Cost      a frame a read, in which its timer is; it looks at the clock twice.
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

  task<std::size_t> read(std::span<std::byte> into);  ///< as the reader's, of no more than there are tokens for
  std::remove_reference_t<Source>& source() noexcept { return source_; }  ///< the reader, without a limit

 private:
  [[nodiscard]] detail::one_at_a_time reads() noexcept {
    return {is_read_, "two tasks read from one rate_limited_reader at once: which of them gets what would be chance"};
  }
  Source source_;
  detail::token_bucket bucket_;
  bool is_read_ = false;
};
template <class Source>
rate_limited_reader(Source&&, std::uint64_t, std::uint64_t) -> rate_limited_reader<Source>;

/// The same for a writer: it takes no more than `bytes_per_second`, and up to `burst` at once.
///
/// Cancel    of write(): one that ends behind its first byte closes it, and shuts down what it writes to where that can be
///           shut down or closed, as a stream and a pipe can. Later writes fail with `closed`. Around a buffered_writer that
///           leaves the part which was written in its buffer, and a flush of it would send that.
/// Otherwise as rate_limited_reader.
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

  /// As the writer's, of no more than there are tokens for.
  task<std::size_t> write_some(std::span<const std::byte> data);
  task<> write(std::span<const std::byte> data);  ///< all of it, in parts
  /// The same of a text, which outlives the await.
  WEFT_COROUTINE_WRAPPER task<> write(std::string_view text) { return write(std::as_bytes(std::span{text})); }
  std::remove_reference_t<Sink>& sink() noexcept { return sink_; }  ///< the writer, without a limit

 private:
  class unfinished;
  [[nodiscard]] detail::one_at_a_time writes() noexcept {
    return {is_written_,
            "two tasks write to one rate_limited_writer at once: what each writes could come apart in the middle"};
  }
  task<std::size_t> put(std::span<const std::byte> data);
  void cut() noexcept;

  Sink sink_;
  detail::token_bucket bucket_;
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
