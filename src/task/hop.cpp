#include <weft/hop.hpp>

#include "core/end_causes.hpp"
#include "core/run_loop.hpp"

namespace weft::detail {
namespace {

/// Stands between a task that has hopped and its continuation, until the task has ended and its root is home.
class hop_boundary final : boundary, frame_allocated {
 public:
  static void interpose(std::coroutine_handle<> task, root& self, executor& to) {
    promise_base& promise = promise_base::of(task);
    auto* mine = new hop_boundary{task, promise, self, to};
    promise.continuation = mine->handle();
    self.env = &mine->there_;
    self.has_default_memory = mine->there_.frames == nullptr;
  }

 private:
  hop_boundary(std::coroutine_handle<> task, promise_base& promise, root& self, executor& to) noexcept
      : boundary{task_returned, task_stopped, promise.continuation, &self},
        task_{task},
        home_{self.env},
        there_{self.env != nullptr ? *self.env : weft::env{}} {
    there_.executor = &to;
  }

  static void task_returned(frame* self) noexcept { of(self).leave(); }
  static void task_stopped(boundary& self) noexcept {
    auto& mine = static_cast<hop_boundary&>(self);
    mine.stopped_ = true;
    mine.keep_causes();
    mine.leave();
  }

  void keep_causes() noexcept { ::new (&causes_) cause_list{this_worker().ends}; }

  // The task has ended; its root goes home, and goes on outward there.
  void leave() noexcept {
    root& self = *owner;
    const executor* here = there_.executor;
    hop_boundary* last = this;
    while (hop_boundary* outer = last->next_in_chain()) {
      outer->stopped_ = last->stopped_;
      if (outer->stopped_) outer->keep_causes();
      delete last;
      last = outer;
    }
    self.env = last->home_;
    last->resume = arrived_home;
    self.top = last->handle();
    const executor* home = self.env != nullptr ? self.env->executor : nullptr;
    if (home == here) return run_next(last->handle());
    self.leave_pool(this_worker());
    if (home == nullptr) return run_next(last->handle());  // and from then on wherever it is woken
    self.schedule();                                       // self may be gone after this line
  }

  // The boundary of an earlier hop of the same task, if that stands right outside.
  hop_boundary* next_in_chain() const noexcept {
    auto* outer = static_cast<frame*>(continuation.address());
    return outer->resume == task_returned ? &of(outer) : nullptr;
  }

  static void arrived_home(frame* self) noexcept {
    hop_boundary& mine = of(self);
    root& here = *mine.owner;
    const std::coroutine_handle<> ended = mine.task_, outer = mine.continuation;
    const bool stopped = mine.stopped_;
    if (stopped) note_end(here, mine.causes_.of_root(here));
    delete &mine;
    if (stopped) return unwind_on(here, ended, outer);
    promise_base::of(ended).continuation = outer;
    here.top = outer;
    run_next(outer);
  }

  static hop_boundary& of(frame* self) noexcept { return static_cast<hop_boundary&>(*static_cast<boundary*>(self)); }

  std::coroutine_handle<> task_;
  const weft::env* home_;
  weft::env there_;
  bool stopped_ = false;
  union {
    cause_list causes_;  // where it was stopped
  };
};

}  // namespace

bool hop_to(std::coroutine_handle<> self, root& mine, executor& to) {
  if (mine.env != nullptr && mine.env->executor == &to) return false;
  hop_boundary::interpose(self, mine, to);
  mine.leave_pool(this_worker());
  mine.schedule();
  return true;
}

void repost(root& mine) noexcept {
  if (mine.sleeper::stop_requested()) return end_stopped(mine);
  mine.schedule_behind();
}

}  // namespace weft::detail
