// A reusable barrier. What holds for all primitives stands in sync.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <weft/detail/base/peeked.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/core/waiter.hpp>
#include <weft/detail/sync/gate.hpp>
#include <weft/sync_stats.hpp>

namespace weft {

/// A barrier for a fixed number of parties, usable for any number of phases.
///
/// Cost  the last party to arrive wakes each of the others.
class barrier : detail::gate {
 public:
  /// `parties`: how many must arrive in each phase. 0 ends the program with a sentence.
  explicit barrier(std::size_t parties) noexcept : parties_{parties} {
    WEFT_EXPECTS(parties != 0, "a barrier of no parties was made: nobody could be the last to arrive");
  }

  /// Arrives, and waits for the others. Gives true to the last one that arrives, which can do what is done once in a phase. One
  /// that is stopped has not arrived, and the others wait on. It can't be a case of a select, since the others may pass
  /// although another case is chosen: fork it, and use the fork.
  [[nodiscard("nothing happens until it is awaited")]] auto arrive_and_wait() noexcept;
  /// Removes one party, from this phase on. If all others have arrived, they pass, and the last of them gets true.
  void drop() noexcept;
  /// How many wait, and have waited; may have changed when it is returned. Takes the lock, and walks along the line.
  using gate::stats;

 private:
  class awaiter;
  void pass(let_through& through, bool tells_last) noexcept;
  detail::peeked<std::size_t> parties_;
  detail::peeked<std::size_t> arrived_;
};

class barrier::awaiter : public detail::gate_waiter, public detail::gate_awaiter<awaiter> {
 public:
  using has_arrived = void;
  explicit awaiter(barrier& of, std::size_t) noexcept : gate_waiter{of, type} {}
  bool suspend(detail::root& self) noexcept;
  bool seems_ready() const noexcept;
  bool done_at_once(const detail::root& self) noexcept;
  bool await_resume() const noexcept { return last_; }

 private:
  friend class barrier;
  static detail::on_stop leave(detail::waiter& self) noexcept;
  static constexpr detail::wait_type type{.leave = leave, .name = "barrier", .tell = tell, .layout = &seen};
  bool last_ = false;
};
inline auto barrier::arrive_and_wait() noexcept { return detail::at_gate<awaiter, barrier>{*this}; }

}  // namespace weft
