// The run loop, and what a nested run of it restores. For the sources that start roots.
#pragma once

#include <utility>
#include <weft/detail/core/root.hpp>

#include "core/lock_watch.hpp"
#include "core/worker.hpp"
#include "sched/pool_worker.hpp"

namespace weft::detail {

/// The rest of enter() where the env of `self` names memory for frames.
WEFT_SELDOM void enter_with_memory(worker& here, root& self) noexcept;

/// Makes `self` the current root; null: none. Its frames come from the memory that its env names.
inline void enter(worker& here, root* self) noexcept {
  here.current = self;
  here.frames.memory = self != nullptr && self->env != nullptr ? self->env->frames : nullptr;
  if (here.frames.memory != nullptr) [[unlikely]]
    enter_with_memory(here, *self);
}

/// The run loop. It resumes every coroutine in a root, so a coroutine that suspends returns here, and has left in the
/// worker where the loop goes on.
void run(worker& here, std::coroutine_handle<> next) noexcept;

/// Whether the run loop has something left to run. One branch, after each coroutine that has suspended.
inline bool has_more(const worker& here) noexcept {
  return ((here.next.address() != nullptr) | (here.local != nullptr) | (here.deferred.first != nullptr)) != 0;
}

// A root is a task of a pool from its first turn there until it ends, or leaves for another executor. It begins and ends
// that on threads of the pool: a root without an executor, which goes on wherever it is woken, is none of the pool's tasks.
inline void root::count_in(worker& here) noexcept {
  if (!is_uncounted) return;
  is_uncounted = false;
  here.of_pool->begun.add();
}
inline void root::count_in(worker& here, job& work) noexcept {
  if (work.run == run_job) static_cast<root&>(work).count_in(here);
}
inline bool root::is_counted_like(const root* one) const noexcept {
  if (one == nullptr || one->is_uncounted) return false;
  return one->env == env || (env != nullptr && one->env->executor == env->executor);
}
inline void root::count_in_like(const root* one, worker& here) noexcept {
  if (is_counted_like(one)) count_in(here);
}
inline void root::count_out(worker& here) noexcept {
  if (!is_uncounted) here.of_pool->ended.add();
}
inline void root::leave_pool(worker& here) noexcept {
  count_out(here);
  is_uncounted = true;
}

// Jobs that an executor of the user's own posts to a pool are none of the pool's tasks: they may go on, and end, anywhere.
inline bool is_of_pool(const root& one, const worker& here) noexcept {
  return one.env != nullptr && here.of_pool->runs(one.env->executor);
}

// For the loop of a pool's worker, which each job passes: it calls nothing but the coroutine.
[[gnu::always_inline]] inline void root::run_outermost(worker& here, job& work) noexcept {
  if (work.run != run_job) [[unlikely]]
    return work.run(work);
  root& self = static_cast<root&>(work);
  if (!self.has_default_memory && self.env != nullptr && self.env->frames != nullptr) [[unlikely]]
    return run_outermost_with_memory(here, self);
  here.current = &self;
  here.frames.memory = nullptr;
  std::coroutine_handle<> at = self.top;
  if (self.needs_a_look()) [[unlikely]] {
    if (is_of_pool(self, here)) self.count_in(here);
    if (self.ends_stopped) at = self.where_it_ends_stopped();
  }
  here.is_outermost = true;
  const unsigned locks = locks_held();
  at.resume();  // self may be gone after this line
  if (has_more(here)) [[unlikely]]
    detail::run(here, std::exchange(here.next, {}));
  expect_no_more_locks(locks);
  static_cast<run_state&>(here) = {};
  here.frames.memory = nullptr;
}

/// Destroys all frames of `self`, which was told to stop, and whose wait has left. True: all are gone, and the end of the
/// root is yet to be called. False: a boundary goes on instead, and the run loop is to run it.
bool unwind_to_end(worker& here, root& self) noexcept;

/// A nested run of the loop. It saves the state of the worker and restores it at its end. Inside a fiber, as where the
/// fiber wakes a task without an executor, what runs in it has the thread's rounding mode, and exceptions of its own.
class run_scope {
 public:
  explicit run_scope(worker& here) noexcept : here_{here}, before_{here}, memory_before_{here.frames.memory} {
    static_cast<run_state&>(here) = {{.current = before_.current, .outer = before_.current}};
    if (before_.left_by != nullptr) [[unlikely]]
      fibers_ = set_aside(*before_.left_by);
  }
  run_scope(const run_scope&) = delete;
  ~run_scope() {
    static_cast<run_state&>(here_) = before_;
    here_.frames.memory = memory_before_;
    if (before_.left_by != nullptr) [[unlikely]]
      take_up(fibers_);
  }

 private:
  worker& here_;
  const run_state before_;
  frame_source* const memory_before_;
  side_state fibers_;  // where there is one
};

}  // namespace weft::detail
