// Events: manual-reset (event) and auto-reset (auto_event). What holds for all primitives stands in sync.hpp.
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

/// A manual-reset event: waits complete while it is set.
///
/// Cost  a wait for a set one, and is_set(): a load. set(): a wake-up for each waiter.
class event : detail::gate {
 public:
  explicit event(bool set = false) noexcept : set_{set} {}  ///< whether it is set at first

  void set() noexcept;    ///< completes all waits, present and later ones, until reset(); any thread
  void reset() noexcept;  ///< later calls of wait() wait
  /// Whether it is set. If so, all that was written before set() is visible.
  bool is_set() const noexcept { return set_.load(std::memory_order_acquire); }  // <- set
  /// Waits until it is set; resumes on its own executor. A stop ends the wait.
  [[nodiscard("nothing happens until it is awaited")]] auto wait() noexcept;
  /// How many wait, and have waited; may have changed when it is returned. Takes the lock, and walks along the line.
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

/// An auto-reset event: each set() completes one wait, that of the first waiter, or else the next one. Two calls of set() with
/// no waiter complete one wait.
class auto_event : detail::gate {
 public:
  explicit auto_event(bool set = false) noexcept : set_{set} {}  ///< whether it is set at first

  /// Completes the longest wait, or else the next one. Any thread.
  void set() noexcept;
  /// Waits for a set(); resumes on its own executor. A stop ends the wait, unless a set() has completed it before.
  [[nodiscard("nothing happens until it is awaited")]] auto wait() noexcept;
  /// How many wait, and have waited; may have changed when it is returned. Takes the lock, and walks along the line.
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
