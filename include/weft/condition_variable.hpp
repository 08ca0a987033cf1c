// Waiting for what a mutex guards to change. What holds for all primitives stands in sync.hpp.
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

/// Waits for what a mutex guards to change.
///
/// Cost  a wait is a task, with a frame from the frame memory; it lets go of the mutex and takes it again. To notify wakes
///       one, or each that waits, who then gets in line for the mutex.
///
///     auto held = co_await m.lock();
///     co_await changed.wait(held, [&] { return !queue.empty(); });
class condition_variable : detail::gate {
 public:
  condition_variable() = default;

  /// Lets go of the mutex, waits to be notified, and has the mutex again when it returns. Never wakes without cause.
  ///
  /// Cancel  ends stopped, and `held` owns nothing then, unless it never began: ask the guard. One that was notified gets
  ///         the mutex first, so that no notification is lost.
  /// Fails   with two mutexes at once, the program ends with a sentence.
  task<> wait(mutex::guard& held);

  /// Waits until `holds()` does, which is asked while the mutex is held.
  template <class Predicate>
  auto wait(mutex::guard& held, Predicate&& holds) {
    WEFT_EXPECTS_NO_DOOMED_TEMPORARY(Predicate);
    return wait_until_it_holds<std::decay_t<Predicate>>(*this, held, std::forward<Predicate>(holds));
  }

  /// Wakes the one that has waited longest, if anybody waits. Any thread, with the mutex or without.
  void notify_one() noexcept;
  void notify_all() noexcept;  ///< wakes all that wait now
  /// Of those that wait; over when it is read. Costs its lock, and a walk along the line.
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
