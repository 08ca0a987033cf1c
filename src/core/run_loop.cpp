#include "core/run_loop.hpp"

#include "core/claim.hpp"
#include "core/end_causes.hpp"
#include "core/turn_switch.hpp"
#include "core/turns.hpp"

namespace weft::detail {
namespace {

// Destroys the frames of `self` from `outer` outward, up to a boundary. `ended`, a frame that `outer` owns, is destroyed
// already.
void unwind_outward(worker& here, root& self, std::coroutine_handle<> ended, std::coroutine_handle<> outer) noexcept {
  here.unwinds = unwind_kind::frames;
  for (;;) {
    auto* caller = static_cast<frame*>(outer.address());
    self.top = outer;
    if (caller->destroy == boundary::arrive_stopped) {
      here.unwinds = unwind_kind::nothing;  // what runs behind the boundary is no part of the unwinding
      here.unwound = nullptr;
      here.ended_below = ended.address();
      return caller->destroy(caller);
    }
    here.unwound = ended.address();  // by this its owner, which is destroyed next, knows that the frame is gone
    ended = outer;
    outer = promise_base::of(outer).continuation;
    ended.destroy();
  }
}

// Destroys the frames of `self` from the innermost outward, up to a boundary. The frame of a fiber that waits is one, too.
void unwind(worker& here, root& self) noexcept {
  const std::coroutine_handle<> innermost = self.top;
  if (auto* leaf = static_cast<frame*>(innermost.address()); leaf->destroy == boundary::arrive_stopped) {
    here.ended_below = nullptr;
    return leaf->destroy(leaf);
  }
  const std::coroutine_handle<> outer = promise_base::of(innermost).continuation;
  here.unwinds = unwind_kind::frames;
  innermost.destroy();
  unwind_outward(here, self, innermost, outer);
}

// The same up to the end of `self`, if there is no boundary before it.
bool unwind_to_end_from(worker& here, root& self, std::coroutine_handle<> ended,
                        std::coroutine_handle<> outer) noexcept {
  here.unwinds = unwind_kind::frames;
  while (!self.is_end(outer)) {
    if (static_cast<frame*>(outer.address())->destroy == boundary::arrive_stopped) {
      unwind_outward(here, self, ended, outer);
      return false;
    }
    self.top = outer;
    here.unwound = ended.address();
    ended = outer;
    outer = promise_base::of(outer).continuation;
    ended.destroy();
  }
  self.top = outer;
  here.unwinds = unwind_kind::nothing;
  here.unwound = nullptr;
  return true;
}

void unwind_current(frame*) {
  worker& here = this_worker();
  unwind(here, *here.current);
}
void never_destroyed(frame*) {}

constinit frame unwinding_frame{unwind_current, never_destroyed};

// A traced root that posts itself without a wait, as one that goes home after a hop, is in its next turn at any time from then
// on.
WEFT_SELDOM void end_turn_before_post(worker& here) noexcept {
  if (here.current == nullptr || here.traces.open != here.current) return;
  here.current->traced_since = stamp_now();
  end_turn_of(here, *here.current, 0);
}

void leave(worker& here) noexcept {
  if (here.frames.memory != nullptr) [[unlikely]]
    if (here.traces.may_suspend == 0) end_turn_before_post(here);
  here.current = here.outer;
  here.frames.memory = nullptr;  // not the memory of `outer`, which may have ended and only wakes others
}

}  // namespace

void run(worker& here, std::coroutine_handle<> next) noexcept {
  const unsigned locks = locks_held();
  here.is_outermost = false;
  for (;;) {
    while (next) {
      next.resume();
      next = std::exchange(here.next, {});
    }
    expect_no_more_locks(locks);
    here.starting = nullptr;  // that child has suspended
    if (job* work = here.local) {
      here.local = work->next;
      work->run(*work);
      next = std::exchange(here.next, {});
    } else if (job* deferred = here.deferred.pop()) {  // run here, since run_job() would nest
      root& self = static_cast<root&>(*deferred);
      enter(here, &self);
      next = self.top;
    } else {
      return;
    }
  }
}

root* current_root() noexcept { return this_worker().current; }

root& own_root() noexcept { return take_over_root(*this_worker().current); }

// A root that is lent has lost the hint that it is traced, if it is.
[[gnu::noinline]] static root& look_before_wait_of_lent(root& self) noexcept {
  root& mine = promote_borrowers(self);
  may_suspend(running_worker(), mine);
  return mine;
}
root& look_before_wait(root& self) noexcept {
  if ((self.before_wait & root::is_lent) != 0) return look_before_wait_of_lent(self);
  may_suspend(running_worker(), self);
  return self;
}

WEFT_SELDOM void enter_with_memory(worker& here, root& self) noexcept {
  here.frames.memory->enter(self.env->executor, here);
  if (request_trace* const trace = here.frames.memory->trace()) begin_turn(here, self, *trace, false);
}

void run_next(std::coroutine_handle<> next) noexcept { this_worker().next = next; }

void run_next(std::coroutine_handle<> next, root& other) noexcept {
  worker& here = this_worker();
  enter(here, &other);
  here.starting = nullptr;  // whoever ran before has suspended
  here.next = next;
}

void leave_root() noexcept {
  worker& here = this_worker();
  if (here.frames.memory != nullptr && here.current != nullptr) [[unlikely]]
    end_turn_of(here, *here.current, turn_flags::ended);
  leave(here);
}

void end_stopped(root& self) noexcept {
  note_end(self, nullptr);
  end_stopped_as_noted(self);
}

WEFT_SELDOM void end_stopped_by(root& self, const waiter& in) noexcept {
  note_end(self, &in);
  end_stopped_as_noted(self);
}

void end_stopped_as_noted(root& self) noexcept { run_next(unwinding_frame.handle(), self); }

void unwind_on(root& self, std::coroutine_handle<> ended, std::coroutine_handle<> outer) noexcept {
  unwind_outward(this_worker(), self, ended, outer);
}

bool unwind_to_end(worker& here, root& self) noexcept {
  enter(here, &self);
  here.ends.begin(nullptr);  // it was told to
  const std::coroutine_handle<> innermost = self.top;
  if (static_cast<frame*>(innermost.address())->destroy == boundary::arrive_stopped) {
    unwind(here, self);
    return false;
  }
  const std::coroutine_handle<> outer = promise_base::of(innermost).continuation;
  here.unwinds = unwind_kind::frames;
  innermost.destroy();
  return unwind_to_end_from(here, self, innermost, outer);
}

void boundary::go_on(frame* self) {
  auto& here = *static_cast<boundary*>(self);
  here.owner->top = here.continuation;
  run_next(here.continuation);
}

void boundary::arrive_stopped(frame* self) {
  auto& here = *static_cast<boundary*>(self);
  here.stopped_here(here);
}

// ---- what runs, and who may run it next ------------------------------------------------------------------------------------

void root::run_here() noexcept { run_job(*this); }

// Self may be gone after this.
[[gnu::always_inline]] inline void root::run_in(worker& here) noexcept {
  if (env != nullptr && env->frames != nullptr) [[unlikely]]
    return run_in_with_memory(here);
  here.current = this;
  here.frames.memory = nullptr;
  detail::run(here, ends_stopped ? where_it_ends_stopped() : std::coroutine_handle<>{top});
}

WEFT_SELDOM void root::run_in_with_memory(worker& here) noexcept {
  const outer_turn outer{here};
  here.current = this;
  here.frames.memory = env->frames;
  here.frames.memory->enter(env->executor, here);
  if (request_trace* const trace = here.frames.memory->trace()) begin_turn(here, *this, *trace, true);
  detail::run(here, ends_stopped ? where_it_ends_stopped() : std::coroutine_handle<>{top});
  outer.go_on(here);
}

// What run_outermost() does, for a root whose frames come from a source.
[[gnu::noinline]] void root::run_outermost_with_memory(worker& here, root& self) noexcept {
  here.current = &self;
  frame_source& frames = *self.env->frames;
  here.frames.memory = &frames;
  if (!frames.is_shared()) frames.enter(self.env->executor, here);
  if (request_trace* const trace = frames.trace()) begin_queued_turn(here, self, *trace);
  std::coroutine_handle<> at = self.top;
  if (self.needs_a_look()) {
    if (is_of_pool(self, here)) self.count_in(here);
    if (self.ends_stopped) at = self.where_it_ends_stopped();
  }
  here.is_outermost = true;
  const unsigned locks = locks_held();
  at.resume();  // self may be gone after this line
  if (has_more(here)) detail::run(here, std::exchange(here.next, {}));
  expect_no_more_locks(locks);
  end_queued_turn(here);
  static_cast<run_state&>(here) = {};
  here.frames.memory = nullptr;
}

void root::run_job(job& work) noexcept {
  worker& here = this_worker();
  const run_scope restored{here};
  static_cast<root&>(work).run_in(here);
}

WEFT_SELDOM std::coroutine_handle<> root::where_it_ends_stopped() noexcept {
  note_end(*this, ends_stopped == by_wait ? &stop_here::last_wait_of(*this) : nullptr);
  ends_stopped = 0;
  return unwinding_frame.handle();
}

// Posts a root to its executor. A root also posts itself, as it suspends: code that runs here after that is no part of it,
// and it may be gone by then. Most wake-ups are of a root whose executor is a pool, by a thread of that pool: those go
// directly into the line of its worker.
[[gnu::always_inline]] inline void root::schedule_on(worker& here) noexcept {
  if (here.current == this) leave(here);
  executor* const its = env != nullptr ? env->executor : nullptr;
  if (its == nullptr) [[unlikely]]
    return inline_executor{}.post(*this);
  if (pool_worker* const mine = here.of_pool; mine != nullptr && mine->home == its && !mine->orders) [[likely]]
    return mine->post(*this);
  its->post(*this);
}

void root::schedule() noexcept { schedule_on(this_worker()); }

void root::schedule_behind() noexcept {
  worker& here = this_worker();
  if (here.current == this) leave(here);
  executor* const its = env != nullptr ? env->executor : nullptr;
  if (its == nullptr) [[unlikely]]
    return inline_executor{}.post(*this);
  if (pool_worker* const mine = here.of_pool; mine != nullptr && mine->home == its) [[likely]]
    return mine->post_behind(*this);
  its->post_behind(*this);
}

void root::woken(sleeper& sleeping, wake_up how) noexcept {
  root& self = static_cast<root&>(sleeping);
  if ((static_cast<unsigned>(how) | self.before_wait) != 0) [[unlikely]]
    self.look_at_wake(how);
  self.schedule_on(this_worker());
}

WEFT_SELDOM void root::look_at_wake(wake_up how) noexcept {
  static_assert(static_cast<unsigned>(wake_up::completed) == 0);
  if (how == wake_up::stopped) ends_stopped = by_wait;
  if ((before_wait & is_traced) != 0) has_woken(this_worker(), *this);
}

void root::returned(frame* end) {
  root& self = *static_cast<boundary*>(end)->owner;
  self.top = end->handle();  // its frames are destroyed next, and a task that this wakes may walk its stack meanwhile
  if (!self.is_uncounted) [[unlikely]]
    self.count_out(this_worker());
  self.done_(self, false);
}

void root::stopped_at_end(boundary& end) noexcept {
  if (!end.owner->is_uncounted) end.owner->count_out(this_worker());
  end.owner->done_(*end.owner, true);
}

}  // namespace weft::detail
