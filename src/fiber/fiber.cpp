#include <weft/fiber.hpp>
#include <weft/with.hpp>

#include <cerrno>
#include <new>

#include "core/end_causes.hpp"
#include "core/lock_watch.hpp"
#include "core/run_loop.hpp"
#include "core/worker.hpp"
#include "sched/pool_worker.hpp"

namespace weft {
namespace detail {
namespace {

// In `stays_`, always: each wait is looked at.
#if defined(WEFT_WATCH_LOCKS)
constexpr unsigned looked_at = 1u << 23;
#else
constexpr unsigned looked_at = 0;
#endif

// Whether the thread handles an exception, or one is being thrown.
WEFT_SELDOM bool asks_for_exceptions() noexcept {
  const exception_globals& exceptions = exceptions_here();
  return exceptions.caught != nullptr || exceptions.uncaught != 0;
}
inline bool handles_exceptions() noexcept {
  const std::ptrdiff_t offset = exception_globals_offset.load(std::memory_order_relaxed);  // as in exceptions_here()
  if (offset == 0) [[unlikely]]
    return asks_for_exceptions();
  const auto& exceptions = *reinterpret_cast<const exception_globals*>(thread_pointer() + offset);
  return exceptions.caught != nullptr || exceptions.uncaught != 0;
}

frame* frame_of(std::coroutine_handle<> one) noexcept { return static_cast<frame*>(one.address()); }

}  // namespace

fiber::fiber(stack_header& on, fiber_call& call, root& in, std::coroutine_handle<> caller) noexcept
    : coroutine_core{on, run}, boundary{go_on, stop_arrived, caller, &in}, stays_{looked_at}, call_{call} {}

letting_go*& lets_go_in(class fiber& self) noexcept { return self.lets_go_; }

[[gnu::noinline]] fiber& fiber::running() noexcept {
  fiber* const self = this_worker().fiber;
  WEFT_EXPECTS(self != nullptr,
               "weft::await or a function of this_fiber was called outside of a fiber: co_await, in a task");
  return *self;
}

bool fiber::is_frame(const frame& one) noexcept { return one.resume == go_on; }

fiber* fiber::of(const frame& one) noexcept {
  if (!is_frame(one)) return nullptr;
  return const_cast<fiber*>(static_cast<const fiber*>(static_cast<const boundary*>(&one)));
}

// The fiber that this one can switch to directly when it waits. Null in any uncommon case, where it returns to the run
// loop, as all waits can. The first condition is that the loop of a pool's worker has resumed this fiber, in a root of the
// pool. Not inline, since it reads thread-locals; and all that it calls is rare and apart, so it saves no registers.
[[gnu::noinline]] fiber::pair fiber::next_across() noexcept {
  worker& here = this_worker();
  class fiber* const self = here.fiber;
  if (self == nullptr || !here.is_outermost || self->stays_ != 0) [[unlikely]]
    return {};
  root& mine = *self->owner;
  pool_worker& of = *here.of_pool;
  if (has_more(here) || here.current != &mine || here.starting != nullptr || mine.before_wait != 0 ||
      mine.env == nullptr || mine.env->executor != of.home || mine.sleeper::stop_requested() || handles_exceptions())
      [[unlikely]]
    return {};
  // The loop is needed where it has something else to look at first.
  if (of.jobs.get() == of.looks_outside_at || of.others_wait() || of.is_ranked || of.forks.in_slots() != 0 ||
      of.state_of_pool->load(std::memory_order_relaxed) == pool_state::cancelling) [[unlikely]]  // seen at some time
    return {};
  // Of thousands of fibers each is in no cache: prefetches first what it is, and then where it goes on.
  const auto fetch = [](job& near, job& far) noexcept {
    root::fetch_frame(near);
    root::fetch(far);
  };
  job* const work = of.line.leave_for(mine, [](job& one) noexcept { return root::goes_on_by(one, go_on); }, fetch);
  if (work == nullptr) return {};

  root& next = static_cast<root&>(*work);
  auto& other = static_cast<class fiber&>(*static_cast<boundary*>(frame_of(next.top)));
  of.jobs.add();
  mine.top = self->handle();
  self->unwound_ = std::exchange(here.unwound, other.unwound_);
  self->errno_ = std::exchange(*here.fibers.errno_at, other.errno_);
  other.begin_turn(here);
  here.fibers.across.add();
  here.current = &next;
  here.frames.memory = nullptr;
  return {self, &other};
}

namespace {

// Saves errno: calls of the system outside of the fiber must not change it for the fiber.
WEFT_SELDOM void call_for(pool_worker& of, int& errno_here) noexcept {
  const int kept = errno_here;
  of.call_one();
  errno_here = kept;
}

}  // namespace

// After has_left() the fiber before may go on on another thread, or be gone.
[[gnu::noinline]] void coroutine_core::came_across(coroutine_core& before) noexcept {
  auto& self = static_cast<class fiber&>(before);
  self.waits_at_ = self.lowest_frame();
  worker& here = running_worker();
  pool_worker& of = *here.of_pool;
  of.line.has_left();
  if (of.has_others && of.calls_for_one()) [[unlikely]]
    call_for(of, *here.fibers.errno_at);
}

// On the fiber's stack, as the next one, so that a report of its failure shows the stack.
void fiber::expect_may_leave() noexcept {
  expect_no_locks();
  if (stays_ == looked_at) return;
  const executor* home = owner->env != nullptr ? owner->env->executor : nullptr;
  WEFT_EXPECTS(
      home != nullptr && !home->runs_in_parallel(),
      "a fiber that must stay on its thread (this_fiber::stay) was to wait where other threads may go on with it: "
      "run it on one worker of a worker_group, or end the block before it waits");
  stays_on_ = thread_pointer();
}

// It is no wait, but may wake somebody by a call of the system, and move values of the program's, or post to its executors:
// none of that runs in the fiber, whose next call outside would lie where this one does. Its control words and exceptions
// are there still: they are set aside where a task goes on in it (run_scope). Not inlined, since errno's place is that of a
// thread.
[[gnu::noinline]] void fiber::try_outside(void (*first)(void* in), wait& one) noexcept {
  worker& here = this_worker();
  class fiber* const self = std::exchange(here.fiber, nullptr);
  const int its = errno;
  call_outside(first, &one);
  errno = its;
  here.fiber = self;
}

void fiber::expect_stayed() noexcept {
  if (stays_ == looked_at) return;
  WEFT_EXPECTS(
      stays_on_ == thread_pointer(),
      "a fiber that must stay on its thread (this_fiber::stay) went on on another one: its executor is not of one "
      "thread");
}

// The exception that unwinds a stopped fiber. Where the program catches it and does not rethrow it, later exceptions of the
// fiber are failures as any others.
class fiber::stop_on_its_way final : public stopped {
 public:
  explicit stop_on_its_way(fiber& in) noexcept : stopped{why()}, in_{&in} {
    in.uncaught_before_ = std::uncaught_exceptions();
    in.stop_on_its_way_ = this;
  }
  stop_on_its_way(const stop_on_its_way& other) noexcept : stopped{other}, in_{nullptr} {}
  // An exception_ptr may keep it until the fiber is gone, or destroy it on another thread.
  ~stop_on_its_way() {
    if (in_ == nullptr || this_worker().fiber != in_) return;
    if (in_->stop_on_its_way_ == this) in_->stop_on_its_way_ = nullptr;
  }

 private:
  static stopped why() noexcept {
    try {
      const items<stop_cause> told = causes_here();
      if (!told.empty()) return stopped{std::span{told.begin(), told.size()}};
      const root* const self = current_root();  // a part that it awaits was stopped
      return stopped{self != nullptr ? causes_of_end(*self) : std::span<const stop_cause>{}};
    } catch (const std::bad_alloc&) {
      return {};
    }
  }

  fiber* in_;
};

// Not inlined, since exceptions on their way are counted for each thread.
[[gnu::noinline]] void fiber::throw_stop() { throw stop_on_its_way{*this}; }

// The outermost function on the fiber's stack, but for that of the context switch.
void* fiber::run(coroutine_core& core, void* nothing) {
  auto& self = static_cast<fiber&>(core);
  core.begin();
  try {
    self.call_.run_(self.call_);
  } catch (const stopped& how) {
    self.ends_stopped_ = true;
    const bool was_told = self.owner->stop_requested();  // then whoever awaits it knows why
    note_end(*self.owner, was_told ? std::span<const stop_cause>{} : how.causes());
  }
  return nothing;
}

// Switches to the fiber, which runs from here on.
inline void fiber::begin_turn(worker& here) noexcept {
  if (ran_on_ != &here) {
    if (ran_on_ != nullptr) here.fibers.migrations.add();
    ran_on_ = &here;
  }
  here.fiber = this;
  here.left_by = &left();
}

// Called by the run loop, as the resume function of a coroutine. The fiber that switches back here may be another one, to
// which the first one has switched directly; the first one may be gone.
void fiber::go_on(frame* frame) {
  auto* self = static_cast<class fiber*>(static_cast<boundary*>(frame));
  worker& here = this_worker();
  std::exception_ptr refused;
  for (;;) {
    class fiber* const outer = here.fiber;
    const context* const outer_left_by = here.left_by;
    self->begin_turn(here);
    here.fibers.switches.add();
    void* const unwound = std::exchange(here.unwound, self->unwound_);
    errno = self->errno_;
    const void* const left_with =
        refused ? self->go_in_throwing(std::exchange(refused, nullptr)) : self->go_in(nullptr);
    self = here.fiber;
    self->errno_ = errno;
    here.fiber = outer;
    here.left_by = outer_left_by;
    self->unwound_ = std::exchange(here.unwound, unwound);

    if (self->has_ended()) {
      root& in = *self->owner;
      const std::coroutine_handle<> back = self->continuation;
      const bool stopped = self->ends_stopped_;
      here.fibers.ended.add();
      in.top = back;
      if (stopped) return end_stopped_as_noted(in);
      return run_next(back);
    }
    self->waits_at_ = self->lowest_frame();  // which another one is, once it has been asked for its calls
    const auto [suspend, awaiter] = *static_cast<const wait*>(left_with);
    const auto mine = self->handle();
    std::coroutine_handle<> next;
    try {
      next = suspend(awaiter, mine);  // self may run elsewhere, or be gone, after this line
    } catch (...) {                   // thrown on, by the fiber's await
      refused = std::current_exception();
      continue;
    }
    if (next == std::coroutine_handle<>{mine}) continue;
    if (next && !here.next) run_next(next);
    return;
  }
}

void fiber::stop_arrived(boundary& boundary) noexcept {
  auto& self = static_cast<fiber&>(boundary);
  self.unwound_ = this_worker().ended_below;
  self.stop_is_here_ = true;
  self.owner->top = self.handle();
  run_next(self.handle());
}

fiber_call::~fiber_call() {
  if (fiber_ != nullptr) fiber_->coroutine_core::destroy();
}

std::coroutine_handle<> fiber_call::begin(reserved_stack& reserved, root& in, std::coroutine_handle<> caller) noexcept {
  stack_header& on = reserved.take();
  fiber_ = ::new (place_on(on, sizeof(fiber), alignof(fiber))) fiber{on, *this, in, caller};
  this_worker().fibers.created.add();
  in.top = fiber_->handle();
  return fiber_->handle();
}

}  // namespace detail

fiber_stats fibers() noexcept {
  fiber_stats all{};
  for (const detail::worker* one = detail::newest_worker(); one != nullptr; one = one->made_before) {
    all.ended += one->fibers.ended.get();
    all.created += one->fibers.created.get();
    all.switches += one->fibers.switches.get() + one->fibers.across.get();
    all.migrations += one->fibers.migrations.get();
  }
  all.live = all.created > all.ended ? all.created - all.ended : 0;
  all.pooled = stack_pool::process_wide().stats().idle;
  return all;
}

bool this_fiber::is_running() noexcept { return detail::this_worker().fiber != nullptr; }

void this_fiber::exit() {
  detail::fiber& self = detail::fiber::running();
  // Not what a part was stopped for of which it has caught `stopped` before.
  if (detail::root* const mine = detail::current_root()) detail::note_end(*mine, nullptr);
  self.throw_stop();
}

// In this file, since a fiber that runs is asked.
bool this_task::is_ending_stopped() noexcept {
  const detail::worker* const here = detail::worker_of_thread;
  if (here == nullptr) return false;
  switch (here->unwinds) {
    case detail::unwind_kind::frames: return true;
    case detail::unwind_kind::stack: return std::uncaught_exceptions() != 0;
    case detail::unwind_kind::nothing: break;
  }
  return here->fiber != nullptr && here->fiber->is_ending_stopped();
}

}  // namespace weft
