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

/// A countdown that opens once, when it reaches zero.
///
/// Cost  the last count_down() wakes each waiter.
class latch : detail::gate {
 public:
  explicit latch(std::size_t count) noexcept : left_{count} {}  ///< with 0 it is open at once

  /// Counts down. Misuse: by more than is left, it ends the program with a sentence.
  void count_down(std::size_t by = 1) noexcept;
  bool is_open() const noexcept;
  [[nodiscard("nothing happens until it is awaited")]] auto wait() noexcept;
  /// Counts down by one, and waits. A stop does not undo the count. It can't be a case of a select: call count_down() before,
  /// and use wait().
  [[nodiscard("nothing happens until it is awaited")]] auto arrive_and_wait() noexcept;
  /// How many wait, and have waited; may have changed when it is returned. Takes the lock, and walks along the line.
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
