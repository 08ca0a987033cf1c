// A condition variable. What holds for all primitives stands in sync.hpp.
#pragma once

#include <type_traits>
#include <utility>
#include <weft/detail/core/root.hpp>
#include <weft/detail/core/waiter.hpp>
#include <weft/detail/sync/gate.hpp>
#include <weft/mutex.hpp>
#include <weft/sync_stats.hpp>
#include <weft/task.hpp>

namespace weft {

/// Waits for a change of data that a mutex guards.
///
/// Cost  a wait is a task, with a frame from the frame memory; it unlocks the mutex and locks it again. A notification wakes
///       one waiter, or all, which then wait for the mutex.
///
///     auto held = co_await m.lock();
///     co_await changed.wait(held, [&] { return !queue.empty(); });
class condition_variable : detail::gate {
 public:
  condition_variable() = default;

  /// Unlocks the mutex, waits for a notification, and locks the mutex again. There are no spurious wake-ups.
  ///
  /// Cancel  ends stopped. `held` then owns nothing, unless the wait had not begun: ask the guard. A wait that was notified
  ///         before the stop locks the mutex first, so no notification is lost.
  /// Misuse  waits with two different mutexes at once end the program with a sentence.
  task<> wait(mutex::guard& held);

  /// Waits until `holds()` gives true; it is called while the mutex is held.
  template <class Predicate>
  auto wait(mutex::guard& held, Predicate&& holds) {
    WEFT_EXPECTS_NO_DOOMED_TEMPORARY(Predicate);
    return wait_until_it_holds<std::decay_t<Predicate>>(*this, held, std::forward<Predicate>(holds));
  }

  /// Wakes the longest waiter, if there is one. Any thread, with or without the mutex.
  void notify_one() noexcept;
  void notify_all() noexcept;  ///< wakes all present waiters
  /// How many wait, and have waited; may have changed when it is returned. Takes the lock, and walks along the line.
  using gate::stats;

 private:
  class awaiter;
  template <class Predicate>
  static task<> wait_until_it_holds(condition_variable& self, mutex::guard& held, Predicate holds) {
    while (!holds()) co_await self.wait(held);
  }
};

class condition_variable::awaiter : detail::gate_waiter, public detail::gate_awaiter<awaiter> {
 public:
  awaiter(condition_variable& of, mutex::guard* held) noexcept
      : gate_waiter{of, type}, held_{*held}, with_{held->of_} {}
  bool suspend(detail::root& self) noexcept;
  void await_resume() const noexcept {}

 private:
  static constexpr detail::wait_type type{.leave = leave_line,
                                          .name = "condition_variable",
                                          .tell = tell,
                                          .leave_together = leave_together,
                                          .layout = &seen};
  mutex::guard& held_;
  const mutex* const with_;
};

}  // namespace weft
