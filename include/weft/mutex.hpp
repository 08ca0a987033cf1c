// A mutex for tasks, fibers and plain threads. What holds for all primitives stands in sync.hpp.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/core/waiter.hpp>
#include <weft/detail/sync/gate.hpp>
#include <weft/sync_stats.hpp>

namespace weft {

/// Mutual exclusion. Not recursive. A barging mutex: unlock wakes the first in line without handing the mutex to it.
///
/// Order  that of arrival, except for barging: a task that finds the mutex free, since the woken waiter does not run yet, takes
///        it. A waiter is overtaken at most once; then it is handed the mutex.
/// Cost   uncontended, one atomic read-modify-write to lock and one to unlock.
///
///     auto held = co_await m.lock();  // given back at the end of the block
class mutex : detail::gate {
 public:
  class guard;

  mutex() = default;
  /// Ends the program with a sentence if the mutex is held, or has a waiter, also one that was woken and has not run yet.
  ~mutex();

  /// Locks it, and gives a guard that owns it.
  [[nodiscard("nothing happens until it is awaited")]] auto lock() noexcept;
  /// Locks it if it is free, and gives a guard that owns it or nothing. Never waits.
  [[nodiscard("the mutex is given back where this ends")]] guard try_lock() noexcept;

  /// A hint. If it is free, all that its last holder did is visible.
  bool is_locked() const noexcept {
    return is_held(state_.load(std::memory_order_acquire));  // <- held (no model: none destroys what it finds free)
  }
  /// How many wait, and have waited; may have changed when it is returned. Takes the lock, and walks along the line.
  using gate::stats;

 private:
  class awaiter;
  friend class condition_variable;
  friend class once;
  template <class>
  friend class guarded;

  static constexpr std::uintptr_t free = 0, awaited = 1, woken = 4, marks = awaited | woken;
  static constexpr bool is_held(std::uintptr_t word) noexcept { return (word & ~marks) != 0; }

  bool try_take(std::uintptr_t by) noexcept {
    std::uintptr_t found = state_.load(std::memory_order_relaxed);  // a guess: the exchange decides
    if (is_held(found)) return false;
    return state_.compare_exchange_strong(found, found | by, std::memory_order_acquire,  // <- held
                                          std::memory_order_relaxed) ||                  // the next one looks at it
           try_take_again(by);
  }
  bool try_take_again(std::uintptr_t by) noexcept;
  void unlock() noexcept {
    std::uintptr_t found = state_.load(std::memory_order_relaxed);  // written by this holder itself, but for the marks
    if ((found & marks) == awaited ||
        !state_.compare_exchange_strong(found, found & marks, std::memory_order_release,  // -> held
                                        std::memory_order_relaxed))                       // somebody waits now
      unlock_marked();
  }
  void forget_holder() noexcept;
  void unlock_marked() noexcept;
  bool take_or_mark(std::uintptr_t by, std::uintptr_t without) noexcept;
  void wake_next() noexcept;
  void transition_to_held_by(std::uintptr_t next, std::uintptr_t marked) noexcept;
  void transition_to_free(std::uintptr_t marked) noexcept;

  // free, or its holder (detail::holder), and two marks. Written by the holder, and by whoever takes it when it is free. The
  // marks are set and cleared only under the lock of the line.
  //
  //   awaited  somebody may be in line
  //   woken    the first in line was woken to take the mutex, and has not run yet: nobody else is woken
  //
  //   edge held  what the holder did  ->  the next one that finds it free. To one that is handed the mutex, its wake-up
  //              carries that
  detail::atomic<std::uintptr_t> state_{free};
};

/// Owns a locked mutex, or nothing. Move-only. Its destructor unlocks the mutex.
class [[nodiscard("the mutex is given back where this ends")]] mutex::guard {
 public:
  guard() noexcept = default;
  /// Afterwards waits_on() and snapshots no longer know who holds the mutex.
  guard(guard&& other) noexcept : of_{std::exchange(other.of_, nullptr)} {
    if (of_ != nullptr) of_->forget_holder();
  }
  guard& operator=(guard&& other) noexcept {
    guard{std::move(other)}.swap(*this);
    return *this;
  }
  ~guard() { unlock(); }

  explicit operator bool() const noexcept { return of_ != nullptr; }
  /// Unlocks it now.
  void unlock() noexcept {
    if (of_ != nullptr) std::exchange(of_, nullptr)->unlock();
  }
  void swap(guard& other) noexcept {
    std::swap(of_, other.of_);
    if (of_ != nullptr) of_->forget_holder();
    if (other.of_ != nullptr) other.of_->forget_holder();
  }

 private:
  friend class mutex;
  friend class condition_variable;
  friend class once;
  template <class>
  friend class guarded;
  explicit guard(mutex* of) noexcept : of_{of} {}
  // Within what stands for the mutex: it stays with its holder.
  mutex* release() noexcept { return std::exchange(of_, nullptr); }

  mutex* of_ = nullptr;
};

class mutex::awaiter : public detail::gate_waiter, detail::frame {
 public:
  explicit awaiter(mutex& of, std::size_t) noexcept : awaiter{of, type} {}

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    detail::root& self = detail::suspending(caller);
    if (!self.sleeper::stop_requested() && of().try_take(detail::holder::is(&self))) return false;
    return suspend(self);  // the task may be gone after this line
  }
  bool seems_ready() const noexcept { return !static_cast<const mutex&>(*gate_).is_locked(); }
  bool done_at_once(const detail::root& self) noexcept {
    return !self.sleeper::stop_requested() && of().try_take(detail::holder::is(&self));
  }
  // Where it is not free, it is marked as awaited, so that the holder takes the lock to wake the first in line.
  bool try_locked(std::uintptr_t by) noexcept { return of().take_or_mark(by, 0); }
  void enter_locked() noexcept {
    overtaken_ = true;  // it is handed the mutex: a select that was only woken could not go back into all its lines
    of().enter(*this, of().line_);
  }
  guard await_resume() noexcept { return guard{&of()}; }

 protected:
  /// Of what stands for the mutex, under a name of its own.
  explicit awaiter(mutex& of, const detail::wait_type& as) noexcept : gate_waiter{of, as} {}
  static constexpr detail::wait_type type_called(const char* name) noexcept {
    return {.leave = leave_line, .name = name, .tell = tell, .leave_together = leave_together, .layout = &seen};
  }

 private:
  friend class mutex;
  mutex& of() noexcept { return static_cast<mutex&>(*gate_); }
  bool suspend(detail::root& self) noexcept;
  void wake_to_retry() noexcept;
  static void retry(frame* self);
  static void tell(const waiter& self, const char* what, detail::wait_subjects& into) noexcept;
  static const detail::wait_layout seen;
  static const detail::wait_type type;

  // From here on, while it waits. When the waiter is woken without the mutex, this frame runs in the waiter's place: it takes
  // the mutex, or waits again.
  detail::root* self_;
  detail::frame_address then_;
  bool overtaken_;
};
WEFT_LAYOUT(mutex::awaiter,
            stored_at(WEFT_BEHIND_WAITER(awaiter, gate_)).held_by_word(offsetof(mutex, state_), mutex::marks));
inline constexpr detail::wait_type mutex::awaiter::type = type_called("mutex");

inline auto mutex::lock() noexcept { return detail::at_gate<awaiter, mutex>{*this}; }
inline mutex::guard mutex::try_lock() noexcept { return guard{try_take(detail::holder::somebody) ? this : nullptr}; }

}  // namespace weft
