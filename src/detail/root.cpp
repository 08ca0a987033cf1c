#include <weft/detail/root.hpp>

#include "detail/held_locks.hpp"
#include "detail/letting_go.hpp"
#include "detail/pool_worker.hpp"
#include "detail/run_loop.hpp"
#include "detail/sleeping_inbox.hpp"
#include "detail/worker.hpp"

namespace weft {

const void* detail::find_binding(const void* key) noexcept {
  const binding* const innermost = current_env().locals;
  return innermost != nullptr ? innermost->find(key) : nullptr;
}

const env& current_env() noexcept {
  static constinit const env none{};
  const detail::root* running = detail::this_worker().current;
  return running != nullptr && running->env != nullptr ? *running->env : none;
}

namespace detail {
namespace {

// Destroys the frames of `self` from `outer` outward, up to a boundary. `ended`, which `outer` owns, is destroyed.
void unwind_outward(worker& here, root& self, std::coroutine_handle<> ended, std::coroutine_handle<> outer) noexcept {
  here.unwinds = unwind_kind::frames;
  for (;;) {
    auto* caller = static_cast<frame*>(outer.address());
    self.top = outer;
    if (caller->destroy == boundary::arrive_stopped) {
      here.unwinds = unwind_kind::nothing;  // what a boundary does is none of it
      here.unwound = nullptr;
      here.ended_below = ended.address();
      return caller->destroy(caller);
    }
    here.unwound = ended.address();  // its owner, which is destroyed first in the caller's frame, knows it by this
    ended = outer;
    outer = promise_base::of(outer).continuation;
    ended.destroy();
  }
}

// Destroys the frames of `self` from the innermost outward, up to a boundary. A fiber that waits is one.
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

constinit frame unwinding{unwind_current, never_destroyed};

void leave(worker& here) noexcept {
  here.current = here.outer;
  here.frames.memory = nullptr;  // not that of `outer`, which may have ended and only wakes others
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
    } else if (job* put_off = here.deferred.pop()) {  // not by run_job(): it would nest, which it was put off for
      root& self = static_cast<root&>(*put_off);
      enter(here, &self);
      next = self.top;
    } else {
      return;
    }
  }
}

root* current_root() noexcept { return this_worker().current; }

root& own_root() noexcept { return take_root(*this_worker().current); }

void run_next(std::coroutine_handle<> next) noexcept { this_worker().next = next; }

void run_next(std::coroutine_handle<> next, root& other) noexcept {
  worker& here = this_worker();
  enter(here, &other);
  here.starting = nullptr;  // whoever ran before has suspended
  here.next = next;
}

void leave_root() noexcept { leave(this_worker()); }

void end_stopped(root& self) noexcept { run_next(unwinding.handle(), self); }

void unwind_on(root& self, std::coroutine_handle<> ended, std::coroutine_handle<> outer) noexcept {
  unwind_outward(this_worker(), self, ended, outer);
}

bool unwind_to_end(worker& here, root& self) noexcept {
  enter(here, &self);
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

void letting_go::destroy_nested(std::coroutine_handle<> frame) noexcept {
  if (depth_ == deepest_stop) {
    promise_base::of(frame).continuation = nullptr;
    (first_ ? promise_base::of(last_).continuation : first_) = frame;
    last_ = frame;
    return;
  }
  ++depth_;
  frame.destroy();
  --depth_;
}

void letting_go::destroy_those_put_off() noexcept {
  while (const std::coroutine_handle<> one = first_) {
    first_ = promise_base::of(one).continuation;
    one.destroy();
  }
}

void let_go(std::coroutine_handle<> frame) noexcept { letting_go::destroy(this_worker(), frame); }

void destroy_frame(std::coroutine_handle<> frame) noexcept {
  worker& here = this_worker();
  if (here.unwound == frame.address()) {
    here.unwound = nullptr;
    return;
  }
  WEFT_EXPECTS(promise_base::of(frame).owner == nullptr || frame.done(),
               "a task was destroyed while it waits: it must end first (request a stop, then await or join it)");
  if (root* self = here.current; self != nullptr) self->top = self->innermost();  // `top` may lie in this frame
  letting_go::destroy(here, frame);
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

// ---- root -----------------------------------------------------------------------------------------------------------------

root::root(const weft::env* environment, root* part_of, end_function done) noexcept
    : sleeper{woken}, env{environment}, parent{part_of}, end_{returned, stopped_at_end, nullptr, this}, done_{done} {
  run = run_job;
}

void root::run_here() noexcept { run_job(*this); }

// Self may be gone after this.
[[gnu::always_inline]] inline void root::run_in(worker& here) noexcept {
  enter(here, this);
  detail::run(here, ends_stopped ? where_it_ends_stopped() : std::coroutine_handle<>{top});
}

void root::run_job(job& work) noexcept {
  worker& here = this_worker();
  const run_scope restored{here};
  static_cast<root&>(work).run_in(here);
}

WEFT_SELDOM std::coroutine_handle<> root::where_it_ends_stopped() noexcept {
  ends_stopped = false;
  return unwinding.handle();
}

// By itself, as it suspends, too: what runs here until it goes on is no part of it, and it may be gone by then. What its
// executor is a pool for, on one of the pool's threads, goes into that one's line at once: this is most of all wake-ups.
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

void root::tell_to_stop(job& work) noexcept {
  if (work.run != run_job) return;
  static_cast<root&>(work).was_told_by_executor = true;
  static_cast<root&>(work).request_stop();
}

std::chrono::steady_clock::time_point root::deadline_of(job& work) noexcept {
  const weft::env* const its = work.run == run_job ? static_cast<root&>(work).env : nullptr;
  return its != nullptr ? its->deadline : std::chrono::steady_clock::time_point::max();
}

void root::woken(sleeper& sleeping, wake_up how) noexcept {
  root& self = static_cast<root&>(sleeping);
  if (how == wake_up::stopped) [[unlikely]]
    self.ends_stopped = true;
  self.schedule_on(this_worker());
}

// A callee that has ended, and is still there, is on top until another one starts. Its resume function is null.
std::coroutine_handle<> root::innermost() const noexcept {
  std::coroutine_handle<> at = top;
  while (at && !is_end(at) && static_cast<const frame*>(at.address())->resume == nullptr)
    at = promise_base::of(at).continuation;
  return at;
}

const root* root::ended_by(std::coroutine_handle<> at) noexcept {
  const auto& one = *static_cast<const frame*>(at.address());
  if (one.destroy != boundary::arrive_stopped) return nullptr;
  const auto& end = static_cast<const boundary&>(one);
  return end.stopped_here == stopped_at_end ? end.owner : nullptr;
}

bool root::stop_requested() const noexcept {
  for (const root* one = this; one != nullptr && !one->is_shielded(); one = one->parent)
    if (one->sleeper::stop_requested()) return true;
  return false;
}

void root::returned(frame* end) {
  root& self = *static_cast<boundary*>(end)->owner;
  self.top = end->handle();  // its frames go, and whoever it wakes meanwhile may look at its stack
  if (!self.is_uncounted) [[unlikely]]
    self.count_out(this_worker());
  self.done_(self, false);
}

void root::stopped_at_end(boundary& end) noexcept {
  if (!end.owner->is_uncounted) end.owner->count_out(this_worker());
  end.owner->done_(*end.owner, true);
}

// ---- blocking_root --------------------------------------------------------------------------------------------------------

template class sleeping_inbox<job>;

blocking_root::blocking_root(stop_token stop) noexcept : root{&own_env_, nullptr, ended}, own_env_{this, stop} {
  WEFT_EXPECTS(current_root() == nullptr,
               "sync_wait was called inside a task, where it would block a worker: co_await it");
}

void blocking_root::ended(root& self, bool stopped) noexcept {
  auto& mine = static_cast<blocking_root&>(self);
  mine.over_ = true;
  mine.stopped_ = stopped;
}

bool blocking_root::run() noexcept {
  auto stop_it = [this] { request_stop(); };
  const stop_callback<decltype(stop_it)&> stop{own_env_.stop, stop_it};
  run_here();
  while (!over_)
    for (job* work = take_all(); work != nullptr;) {
      job* later = work->next;
      work->run(*work);  // `work` may be gone
      work = later;
    }
  return !stopped_;
}

executor* blocking_root::lasting_executor(const root& self) noexcept {
  executor* const its = self.env != nullptr ? self.env->executor : nullptr;
  for (const root* one = &self; one != nullptr; one = one->parent)
    if (one->ends_by(ended) && its == static_cast<const blocking_root*>(one)) return nullptr;
  return its;
}

// Sleeps until there is one. Null: it has run something else, by which all may be over.
job* blocking_root::take_all() noexcept {
  for (;;) {
    if (job* work = posted_.take(); work != nullptr) return work;
    if (run_inlined(this_worker())) return nullptr;
    posted_.sleep(age_frame_memory() ? std::chrono::seconds{1} : std::chrono::seconds{});
  }
}

void blocking_root::post(job& work) noexcept { posted_.put(work); }

// ---- foreign_frame ----------------------------------------------------------------------------------------------------------

void foreign_frame::resumed(frame* self) { static_cast<foreign_frame*>(self)->root_->schedule(); }

void foreign_frame::dropped(frame* self) {
  root& mine = *static_cast<foreign_frame*>(self)->root_;
  mine.ends_stopped = true;
  mine.schedule();
}

}  // namespace detail
}  // namespace weft
