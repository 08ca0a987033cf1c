// What opens a way to all that wait, or to one of them. What holds for all primitives stands in sync.hpp.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/base/peeked.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/core/waiter.hpp>
#include <weft/detail/sync/gate.hpp>
#include <weft/sync_stats.hpp>

namespace weft {
namespace detail { class descriptor; }

/// Open or shut: all pass while it is set.
///
/// Cost  to pass one that is set, or to ask, a load; to set it, a wake-up for each that waits.
class event : detail::gate {
 public:
  explicit event(bool set = false) noexcept : set_{set} {}  ///< whether it is set at first

  void set() noexcept;    ///< lets all pass that wait, and all that come, until reset(); any thread
  void reset() noexcept;  ///< who comes from now on waits
  /// Whether it is set. Who sees true also sees what was written before set().
  bool is_set() const noexcept { return set_.load(std::memory_order_acquire); }  // <- set
  /// Waits until it is set, if it is not; resumes on its own executor. A stop leaves the line.
  [[nodiscard("nothing happens until it is awaited")]] auto wait() noexcept;
  /// Of those that wait; over when it is read. Costs its lock, and a walk along the line.
  using gate::stats;

 private:
  friend detail::descriptor;
  class awaiter;
  /// By what it reports changes for: a snapshot then says that it is waited for.
  auto wait_for(const detail::wait_type& what) noexcept;

  //   edge set  what was done before set()  ->  who finds it set. One that waited has it by its wake-up
  detail::atomic<bool> set_;
};

class event::awaiter : public detail::gate_waiter, public detail::gate_awaiter<awaiter> {
 public:
  explicit awaiter(event& of, const detail::wait_type* what) noexcept : gate_waiter{of, *what} {}
  bool suspend(detail::root& self) noexcept;
  bool seems_ready() const noexcept { return static_cast<const event&>(*gate_).is_set(); }
  bool done_at_once(const detail::root& self) noexcept { return !self.sleeper::stop_requested() && seems_ready(); }
  bool try_locked(std::uintptr_t) const noexcept { return seems_ready(); }
  void enter_locked() noexcept {
    auto& e = static_cast<event&>(*gate_);
    e.enter(*this, e.line_);
  }
  void await_resume() const noexcept {}

  static constexpr detail::wait_type type = type_called("event");
};
inline auto event::wait_for(const detail::wait_type& what) noexcept {
  return detail::at_gate<awaiter, event, const detail::wait_type*>{*this, &what};
}
inline auto event::wait() noexcept { return wait_for(awaiter::type); }

/// Lets one pass each time it is set: who waits first, or else who comes next. Set twice, it lets one pass.
class auto_event : detail::gate {
 public:
  explicit auto_event(bool set = false) noexcept : set_{set} {}  ///< whether the first that comes passes

  /// Lets one pass: the one that has waited longest, or else the next that comes. Any thread.
  void set() noexcept;
  /// Waits to be let pass; resumes on its own executor. A stop leaves the line, unless a set() has come first.
  [[nodiscard("nothing happens until it is awaited")]] auto wait() noexcept;
  /// Of those that wait; over when it is read. Costs its lock, and a walk along the line.
  using gate::stats;

 private:
  class awaiter;
  detail::peeked<bool> set_;
};

class auto_event::awaiter : public detail::gate_waiter, public detail::gate_awaiter<awaiter> {
 public:
  explicit awaiter(auto_event& of, std::size_t) noexcept : gate_waiter{of, type} {}
  bool suspend(detail::root& self) noexcept;
  bool seems_ready() const noexcept { return static_cast<const auto_event&>(*gate_).set_.peek(); }
  bool done_at_once(const detail::root& self) noexcept;
  bool try_locked(std::uintptr_t) noexcept;
  void enter_locked() noexcept {
    auto& e = static_cast<auto_event&>(*gate_);
    e.enter(*this, e.line_);
  }
  void await_resume() const noexcept {}

 private:
  static constexpr detail::wait_type type = type_called("auto_event");
};
inline auto auto_event::wait() noexcept { return detail::at_gate<awaiter, auto_event>{*this}; }

}  // namespace weft
