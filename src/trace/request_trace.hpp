// A traced request: what it has used, and how it is told from others. Each worker that runs a part of it counts in figures of
// its own, so that no count is shared; the sum is made when somebody asks.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <weft/detail/base/atomic.hpp>

#include "base/count.hpp"

namespace weft::detail {

/// How long something took, and how often it was.
struct timed_count {
  count times, ticks;
  void add(std::uint64_t took) noexcept {
    times.add();
    ticks.add(took);
  }
};

/// One worker's figures about one request: its thread writes, any thread that keeps the request alive reads.
struct alignas(64) trace_part {
  const void* whose = nullptr;
  trace_part* next = nullptr;

  timed_count turns, queued;
  count frames, frame_bytes, io_operations, io_bytes;
  struct wait {
    std::atomic<const char*> kind{nullptr};  // relaxed: it points to a constant, and so carries no data
    timed_count ended;
  };
  static constexpr std::size_t kinds = 24;  // the last one is for all that have no place of their own
  std::array<wait, kinds> waits{};

  void waited(const char* kind, std::uint64_t ticks) noexcept;
};

class request_trace {
 public:
  explicit request_trace(const char* name) noexcept;
  request_trace(const request_trace&) = delete;
  ~request_trace();

  std::uint32_t number() const noexcept { return number_; }
  const char* name() const noexcept { return name_; }

  /// The figures of the worker that has this heap. Null: there is no memory. By its thread.
  trace_part* part_of(const void* heap) noexcept;

  trace_part* first() const noexcept {
    return parts_.load(std::memory_order_acquire);  // <- part (no model: as declared)
  }

 private:
  const std::uint32_t number_;
  const char* const name_;
  //   edge part  a part, as it was made  ->  who goes through them. No model: a list that only grows.
  atomic<trace_part*> parts_{nullptr};
};

}  // namespace weft::detail
