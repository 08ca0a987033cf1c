// Stopping a scope, which stops its body and its forks. The state of both, and who may read and write it, is described in
// scope/scope_core.hpp.
#include <algorithm>
#include <mutex>
#include <weft/scope.hpp>

#include "core/claim.hpp"
#include "core/letting_go.hpp"
#include "core/lock_watch.hpp"
#include "core/run_loop.hpp"
#include "core/stop_turn.hpp"
#include "core/turns.hpp"
#include "core/worker.hpp"
#include "scope/fork_end.hpp"

namespace weft::detail {
namespace {

// So many forks are told to stop together.
constexpr std::size_t told_at_once = 16;

// Prefetches these bytes to be written. Does nothing where `at` is null.
void prefetch(const void* at, std::size_t bytes) noexcept {
  if (at == nullptr) return;
  for (std::size_t offset = 0; offset < bytes; offset += 64)
    __builtin_prefetch(static_cast<const std::byte*>(at) + offset, 1);
}

// How much of the frame of a fork is prefetched: all of a small one, the front of a large one.
constexpr std::size_t bytes_of_frame = 192;

// How much of its record: up to the flags of the root.
constexpr std::size_t bytes_of_record = 128;

// How much of the waiter in which the fork waits.
constexpr std::size_t bytes_of_wait = 256;

}  // namespace

void fork_record::request_stop_because(const stop_cause& cause) noexcept {
  {
    const std::lock_guard guard{of().lock_};
    // Once it has ended, this is why it has ended so, and is read without the lock.
    const bool runs = status_.load(std::memory_order_relaxed) == fork_status::running;  // written under the lock
    if (runs && cause_.reason == nullptr) cause_ = cause;
  }
  record(event_kind::stop, cause.where.line(), as_number(static_cast<root*>(this)), as_number(cause.reason));
  request_stop();
}

stop_cause fork_record::told_cause() const noexcept {
  const std::lock_guard guard{of().lock_};
  return cause_;
}

// The stopper counts as live meanwhile: a fork that is told to stop may end here and now, and the scope would end while the
// stopper still uses it.
bool scope_core::request_stop(const stop_cause& cause) noexcept {
  std::unique_lock guard{lock_};
  if (live_ == 0) return false;  // it has ended, and the task that awaits it has not run yet
  ++live_;
  return request_stop_of_live(guard, cause);
}

bool scope_core::request_stop_of_live(std::unique_lock<tiny_lock>& guard, const stop_cause& cause) noexcept {
  const bool has_body = !body_is_over_;
  guard.unlock();
  const bool first = source_.request_stop(cause);
  if (first) {
    record(event_kind::stop, cause.where.line(), as_number(this), as_number(cause.reason));
    if (by_option_ != nullptr && options_.stop_within != clock::duration::max())
      by_option_->overdue.set(later(its_clock().now(), options_.stop_within));
    if (has_body) body_.request_stop();
  }
  guard.lock();
  if (first) tell_children(guard);
  const bool last = --live_ == 0;
  guard.unlock();
  if (last) finish(how());  // else the scope may be gone
  return first;
}

// Tells all running forks to stop. Forks that are entered meanwhile find the stop set. The forks are taken in hand in
// batches: so the lock is taken twice a batch, the prefetches of one batch overlap, and the ends of those that end here are
// entered together.
void scope_core::tell_children(std::unique_lock<tiny_lock>& guard) noexcept {
  fork_record* some[told_at_once];
  if (std::exchange(is_walked_, false))  // a walk is over for what it has not looked at yet
    while (fork_record* const unwalked = telling_) {
      telling_ = unwalked->next_;
      add_running(*unwalked);
    }
  move_list(telling_, running_);
  while (telling_ != nullptr) {
    const std::size_t count = take_in_hand(some);
    guard.unlock();
    tell(some, count);
    guard.lock();
    called_by_ends called;
    enter_unwound(guard, some, count, called);
    for (std::size_t i = 0; i != count; ++i) {
      some[i]->transition_to_let_go();
      if (some[i]->holders_.load(std::memory_order_relaxed) == fork_record::nobody) give_back(*some[i]);
    }
    if (called.any()) [[unlikely]] {
      guard.unlock();
      called.wake(wake_up::stopped);
      guard.lock();
    }
  }
}

// Moves a batch from the front of the forks that are to be told to the front of the running ones, and prefetches it. A list
// gives only one address at a time, so the record that `ahead_` names is prefetched, too. That one may be gone: it is never
// read.
inline std::size_t scope_core::take_in_hand(fork_record** some) noexcept {
  fork_record *const first = telling_, *last = nullptr;
  std::size_t count = 0;
  for (fork_record* one = first; one != nullptr && count != told_at_once; one = one->next_) {
    one->transition_to_told();
    prefetch(one->ahead_, bytes_of_record);
    prefetch(one->frame_.address(), bytes_of_frame);
    some[count++] = last = one;
  }
  telling_ = last->next_;
  if (telling_ != nullptr) telling_->link_ = &telling_;
  last->next_ = running_;
  if (running_ != nullptr) running_->link_ = &last->next_;
  first->link_ = &running_;
  running_ = first;
  return count;
}

// Tells a batch of forks to stop. First it claims the waits of all, and has those leave that can, together where they are
// in one line; then it ends them one after the other. A wait that is claimed leaves before code of the program runs, which
// could complete what it waits for, and destroy that. The wait of a scope is the exception: it lies in a frame that stays
// until its turn, and is claimed early so that it can be prefetched.
void scope_core::tell(fork_record* const* some, std::size_t count) noexcept {
  if (wait_watch::now() != nullptr) [[unlikely]] {
    for (std::size_t i = 0; i != count; ++i) some[i]->request_stop();
    return;
  }
  enum class next_step : unsigned char { none, end, tell_children };
  next_step steps[told_at_once]{};
  waiter* leaving[told_at_once];
  std::size_t many = 0;
  const auto leave_lines = [&]() noexcept { stop_here::leave(leaving, std::exchange(many, 0)); };
  for (std::size_t i = 0; i != count; ++i) {
    fork_record& one = *some[i];
    if (!stop_here::claim(one)) continue;
    waiter& in = stop_here::wait_of(one);
    if (stop_here::can_be_fetched(in)) {
      prefetch(&in, bytes_of_wait);
      steps[i] = next_step::tell_children;
    } else if (stop_here::can_leave_together(in)) {
      leaving[many++] = &in;
      steps[i] = next_step::end;
    } else {
      leave_lines();
      if (stop_here::leave(one)) steps[i] = next_step::end;
    }
  }
  leave_lines();

  fork_record* those[told_at_once];
  std::size_t ended = 0;
  for (std::size_t i = 0; i != count; ++i) {
    if (i + 1 != count && steps[i + 1] == next_step::tell_children) stop_here::fetch(*some[i + 1]);
    if (steps[i] == next_step::end) those[ended++] = some[i];
    if (steps[i] != next_step::tell_children) continue;
    end_here(those, std::exchange(ended, 0));  // its children may be many
    fork_record* one = some[i];
    if (stop_here::leave(*one)) end_here(&one, 1);
  }
  end_here(those, ended);
}

// Ends forks that have left their waits. Those without an executor, which go on wherever they are woken, are unwound here,
// one after the other; the others are woken. All are woken where this runs inside a job of an inline executor, since their
// turn comes after that job; and where children are limited, since the end of each must make room for forks of the next
// one's cleanup.
void scope_core::end_here(fork_record** those, std::size_t count) noexcept {
  worker& here = this_worker();
  const bool together = here.inlined == nullptr && !is_limited_;
  std::size_t ours = 0;
  for (std::size_t i = 0; i != count; ++i)
    if (together && those[i]->env->executor == nullptr)
      those[ours++] = those[i];
    else
      stop_here::wake(*those[i]);
  if (ours == 0) return;

  const run_scope restored{here};
  const unsigned locks = locks_held();
  inline_queue posted;
  here.inlined = &posted;
  for (std::size_t i = 0; i != ours; ++i) {
    const bool to_its_end = unwind_to_end(here, *those[i]);
    if (to_its_end) those[i]->transition_to_unwound();
    expect_no_more_locks(locks);
    if (!is_any(here.next.address(), here.local, here.deferred.first, posted.first)) [[likely]]
      continue;
    // Other code runs now, perhaps for long. So the tasks that await the forks which have ended are woken before that. None
    // of that code belongs to this fork, but for what goes on behind a boundary in it.
    const std::coroutine_handle<> next = std::exchange(here.next, {});
    root* const goes_on = to_its_end ? nullptr : here.current;
    leave_root();
    called_by_ends called;
    {
      std::unique_lock guard{lock_};
      enter_unwound(guard, those, i + 1, called);
    }
    called.wake(wake_up::stopped);
    if (next) enter(here, goes_on);
    detail::run(here, next);
    leave_root();
    while (job* const work = posted.pop()) work->run(*work);  // `work` may be gone after its run
  }
  here.inlined = nullptr;
}

// Enters the ends of forks that were unwound. Their frames are gone; the scope is alive, since the stopper counts as live.
void scope_core::enter_unwound(std::unique_lock<tiny_lock>& guard, fork_record* const* those, std::size_t count,
                               called_by_ends& called) noexcept {
  bool any_was = false;
  for (std::size_t i = 0; i != count; ++i) {
    fork_record& one = *those[i];
    if (one.in_hand_.load(std::memory_order_relaxed) != fork_record::in_hand::unwound) continue;
    one.transition_to_told();
    one.frame_ = nullptr;
    one.note_end();
    any_was = true;
    static_cast<void>(enter_end(guard, one, fork_status::stopped, called));
  }
  if (any_was) note_stopped_part();
}

void scope_core::fetch_children(const waiter& self) noexcept {
  prefetch(&static_cast<const scope_core&>(self).env_, sizeof(weft::env));
  for (const atomic<fork_record*>& one : static_cast<const scope_core&>(self).newest_)
    prefetch(one.load(std::memory_order_relaxed), bytes_of_record);  // nobody follows it
}

// The parent was told to stop. A deferred stop counts as live until it runs.
on_stop scope_core::stop_with_parent(waiter& self) noexcept {
  auto& mine = static_cast<scope_core&>(self);
  worker& here = this_worker();
  std::unique_lock guard{mine.lock_};
  if (mine.live_ == 0) return on_stop::forwarded;
  ++mine.live_;
  if (stop_turn::must_defer(here)) [[unlikely]] {
    stop_turn::defer(here, mine);
    return on_stop::forwarded;
  }
  const stop_turn turn{here};
  mine.request_stop_of_live(guard, mine.cause_from_parent());  // mine may be gone after this line
  return on_stop::forwarded;
}

void scope_core::run_deferred_stop(waiter& self) noexcept {
  auto& mine = static_cast<scope_core&>(self);
  std::unique_lock guard{mine.lock_};
  mine.request_stop_of_live(guard, mine.cause_from_parent());
}

stop_cause scope_core::cause_from_parent() const noexcept {
  return {.reason = "the task that awaits the scope was stopped", .where = where_};
}

void scope_core::stop_it::operator()() const noexcept {
  const stop_cause* cause = from.cause();
  target->request_stop(cause != nullptr ? *cause : stop_cause{});
}

}  // namespace weft::detail
