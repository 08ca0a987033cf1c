// Reads and writes of streams, as awaitables and as cases of a select. Part of net.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <weft/detail/io/descriptor.hpp>
#include <weft/detail/net/operation.hpp>
#include <weft/detail/task/task_awaiter.hpp>
#include <weft/hop.hpp>
#include <weft/nothrow.hpp>
#include <weft/task.hpp>
#include <weft/with.hpp>

namespace weft::detail {

inline constexpr const char* two_writers =
    "two tasks write to one stream at once: what each writes could come apart in the middle";

struct reading {
  using value_type = std::size_t;
  static constexpr const char* name = "read";
  static constexpr const char* if_taken =
      "two tasks read from one stream at once: which of them gets what would be chance";
  static constexpr direction which() noexcept { return direction::in; }
  bool may_try() const noexcept { return into.empty() || at->may_try(which()); }
  tried attempt() const noexcept { return into.empty() ? tried{} : try_receive(*at, into); }
  static std::size_t give(const tried& got) noexcept { return got.size; }

  descriptor* at;
  std::span<std::byte> into;
};

struct writing_some {
  using value_type = std::size_t;
  static constexpr const char* name = "write";
  static constexpr const char* if_taken = two_writers;
  static constexpr direction which() noexcept { return direction::out; }
  bool may_try() const noexcept { return data.empty() || at->may_try(which()); }
  tried attempt() const noexcept { return data.empty() ? tried{} : try_send(*at, {&data, 1}); }
  static std::size_t give(const tried& sent) noexcept { return sent.size; }

  descriptor* at;
  std::span<const std::byte> data;
};

/// The parts from the first one on that is not empty.
template <class Part>
std::span<Part> without_leading_empty(std::span<Part> parts) noexcept {
  while (!parts.empty() && parts.front().empty()) parts = parts.subspan(1);
  return parts;
}

struct reading_parts {
  using value_type = std::size_t;
  static constexpr const char* name = reading::name;
  static constexpr const char* if_taken = reading::if_taken;
  static constexpr direction which() noexcept { return direction::in; }
  reading_parts(descriptor* from, std::span<const std::span<std::byte>> parts) noexcept
      : at{from}, into{without_leading_empty(parts)} {}
  bool may_try() const noexcept { return into.empty() || at->may_try(which()); }
  tried attempt() const noexcept { return into.empty() ? tried{} : try_receive(*at, into); }
  static std::size_t give(const tried& got) noexcept { return got.size; }

  descriptor* at;
  std::span<const std::span<std::byte>> into;
};

struct writing_some_parts {
  using value_type = std::size_t;
  static constexpr const char* name = writing_some::name;
  static constexpr const char* if_taken = two_writers;
  static constexpr direction which() noexcept { return direction::out; }
  writing_some_parts(descriptor* to, std::span<const std::span<const std::byte>> parts) noexcept
      : at{to}, data{without_leading_empty(parts)} {}
  bool may_try() const noexcept { return data.empty() || at->may_try(which()); }
  tried attempt() const noexcept { return data.empty() ? tried{} : try_send(*at, data); }
  static std::size_t give(const tried& sent) noexcept { return sent.size; }

  descriptor* at;
  std::span<const std::span<const std::byte>> data;
};

/// The unsent part of a write. Its destructor shuts down the stream's write side if some of the data was sent and some was not.
class unfinished_write {
 public:
  unfinished_write(descriptor& to, std::span<std::span<const std::byte>> parts) noexcept : to_{&to}, left_{parts} {
    skip_empty();
  }
  unfinished_write(const unfinished_write&) = delete;
  ~unfinished_write() {
    if (has_begun_ && !is_done()) cut();
  }

  bool is_done() const noexcept { return left_.empty(); }
  std::span<const std::span<const std::byte>> left() const noexcept { return left_; }
  void sent(std::size_t size) noexcept {
    has_begun_ = true;
    while (size != 0) {
      const std::size_t here = size < left_.front().size() ? size : left_.front().size();
      left_.front() = left_.front().subspan(here);
      size -= here;
      skip_empty();
    }
  }

 private:
  void skip_empty() noexcept { left_ = without_leading_empty(left_); }
  void cut() noexcept;

  descriptor* to_;
  std::span<std::span<const std::byte>> left_;
  bool has_begun_ = false;
};

// The parts that a whole write sends. The coroutine's frame holds them.
struct parts_of_caller {
  std::span<std::span<const std::byte>> given;
  std::span<std::span<const std::byte>> all() const noexcept { return given; }
};
struct one_part {
  std::span<const std::byte> given;
  std::span<std::span<const std::byte>> all() noexcept { return {&given, 1}; }
};

// Not inlined, since clang would make its frame a part of the caller's frame (allocation elision): each connection that waits for
// its next request would keep some 200 bytes for a write that is not under way.
template <class Parts>
[[gnu::noinline]] task<> write_all(descriptor* at, Parts parts) {
  const descriptor_use use{at, direction::out, two_writers};
  if (!use) co_await fail_with(failure_of(closed_here(), "write"));
  co_await check_stop();
  if (has_had_its_turn()) co_await yield();
  for (unfinished_write unfinished{*at, parts.all()}; !unfinished.is_done();) {
    if (at->may_try(direction::out))
      if (const tried sent = try_send(*at, unfinished.left()); !sent.must_wait) {
        if (sent.refused) co_await fail_with(failure_of(sent.refused, "write"));
        unfinished.sent(sent.size);
        continue;
      }
    co_await at->until_ready(direction::out);
    if (at->is_closed()) co_await fail_with(failure_of(closed_here(), "write"));
  }
}

/// A write of all the data. It can't be a case of a select: it might have sent a part when another case is chosen.
class WEFT_TO_BE_AWAITED("nothing happens until it is awaited") writing : public task_inside<writing, void> {
 public:
  using is_whole_write = void;
  writing(descriptor* at, std::span<const std::byte> data) noexcept : at_{at}, data_{data} {}
  writing(descriptor* at, std::span<std::span<const std::byte>> parts) noexcept
      : at_{at}, parts_{parts}, is_of_parts_{true} {}

  WEFT_COROUTINE_WRAPPER task<> as_task() && {
    return is_of_parts_ ? write_all(at_, parts_of_caller{parts_}) : write_all(at_, one_part{data_});
  }

 private:
  descriptor* at_;
  std::span<const std::byte> data_;
  std::span<std::span<const std::byte>> parts_;
  bool is_of_parts_ = false;
};

/// What stream::write_zero_copy() returns.
task<> write_zero_copy(descriptor* at, std::span<const std::byte> data);
/// What stream::send_file() returns.
task<std::uint64_t> send_file(descriptor* at, file_part left);

}  // namespace weft::detail
