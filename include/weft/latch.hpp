// A countdown. What holds for all primitives stands in sync.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <weft/detail/base/peeked.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/core/waiter.hpp>
#include <weft/detail/sync/gate.hpp>
#include <weft/sync_stats.hpp>

namespace weft {

/// Opens when it was counted down to zero, for good.
///
/// Cost  the last count wakes each that waits.
class latch : detail::gate {
 public:
  explicit latch(std::size_t count) noexcept : left_{count} {}  ///< of 0 it is open at once

  /// By no more than is left: else it ends the program.
  void count_down(std::size_t by = 1) noexcept;
  bool is_open() const noexcept;
  [[nodiscard("nothing happens until it is awaited")]] auto wait() noexcept;
  /// Counts down by one, which a stop does not take back, and waits. No case of a select: that is count_down() before it, and
  /// wait().
  [[nodiscard("nothing happens until it is awaited")]] auto arrive_and_wait() noexcept;
  /// Of those that wait; over when it is read. Costs its lock, and a walk along the line.
  using gate::stats;

 private:
  class awaiter;
  class arriving;
  void count_down(std::size_t by, let_through& through) noexcept;
  detail::peeked<std::size_t> left_;
};

class latch::awaiter : public detail::gate_waiter, public detail::gate_awaiter<awaiter> {
 public:
  awaiter(latch& of, std::size_t arrives) noexcept : gate_waiter{of, type}, arrives_{arrives} {}
  bool suspend(detail::root& self) noexcept;
  bool seems_ready() const noexcept { return static_cast<const latch&>(*gate_).left_.peek() == arrives_; }
  bool done_at_once(const detail::root& self) noexcept;
  bool try_locked(std::uintptr_t) const noexcept { return static_cast<const latch&>(*gate_).left_ == 0; }
  void enter_locked() noexcept {
    auto& l = static_cast<latch&>(*gate_);
    l.enter(*this, l.line_);
  }
  void await_resume() const noexcept {}

 private:
  static constexpr detail::wait_type type{
      .leave = leave_line, .name = "latch", .tell = tell, .leave_together = leave_together, .layout = &seen};
  const std::size_t arrives_;
};
class latch::arriving : public awaiter {
 public:
  using awaiter::awaiter;
  using has_arrived = void;
};
inline auto latch::wait() noexcept { return detail::at_gate<awaiter, latch>{*this, 0}; }
inline auto latch::arrive_and_wait() noexcept { return detail::at_gate<arriving, latch>{*this, 1}; }

}  // namespace weft
