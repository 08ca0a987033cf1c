// How a scope is stopped, and stops its forks. Their state and who may touch it stands in scope/fork.hpp.
#include <algorithm>
#include <weft/scope.hpp>

#include "core/claim.hpp"
#include "core/held_locks.hpp"
#include "core/letting_go.hpp"
#include "core/run_loop.hpp"
#include "core/stop_turn.hpp"
#include "core/worker.hpp"
#include "scope/fork_end.hpp"

namespace weft::detail {
namespace {

// So many children are told to stop together.
constexpr std::size_t told_at_once = 16;

// Has these bytes fetched, for who is about to change them. Null: nothing.
void prefetch(const void* at, std::size_t bytes) noexcept {
  if (at == nullptr) return;
  for (std::size_t offset = 0; offset < bytes; offset += 64)
    __builtin_prefetch(static_cast<const std::byte*>(at) + offset, 1);
}

// Of the frame of a fork that waits: those of a small one, or what lies at the front of a large one.
constexpr std::size_t bytes_of_frame = 192;

// Of its record: up to the root's flags.
constexpr std::size_t bytes_of_record = 128;

// Of what such a fork waits in.
constexpr std::size_t bytes_of_wait = 256;

}  // namespace

void fork_record::request_stop_because(const stop_cause& cause) noexcept {
  if (cause_.reason == nullptr) cause_ = cause;
  request_stop();
}

// Counts as live meanwhile: whoever is told may go on here and now, and the scope would end under the stopper's feet.
bool scope_core::request_stop(const stop_cause& cause) noexcept {
  std::unique_lock guard{lock_};
  if (live_ == 0) return false;  // it has ended, and its task has not come by yet
  ++live_;
  return request_stop_of_live(guard, cause);
}

bool scope_core::request_stop_of_live(std::unique_lock<tiny_lock>& guard, const stop_cause& cause) noexcept {
  const bool has_body = !body_is_over_;
  guard.unlock();
  const bool first = source_.request_stop(cause);
  if (first) {
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

// Those that are entered meanwhile find the stop set. Some at a time are taken in hand: the lock is taken twice for all of
// them, and the caches fetch one beside the others. Those that have ended here are entered together.
void scope_core::tell_children(std::unique_lock<tiny_lock>& guard) noexcept {
  fork_record* some[told_at_once];
  if (running_ == nullptr) return;
  telling_ = std::exchange(running_, nullptr);
  telling_->link_ = &telling_;
  while (telling_ != nullptr) {
    const std::size_t count = take_in_hand(some);
    guard.unlock();
    tell(some, count);
    guard.lock();
    called_by_ends called;
    enter_unwound(guard, some, count, called);
    for (std::size_t i = 0; i != count; ++i) {
      some[i]->in_hand_.store(fork_record::in_hand::no, std::memory_order_relaxed);
      if (some[i]->holders_.load(std::memory_order_relaxed) == fork_record::nobody) give_back(*some[i]);
    }
    if (called.any()) [[unlikely]] {
      guard.unlock();
      called.wake(wake_up::stopped);
      guard.lock();
    }
  }
}

// From the front of those that are to be told, to the front of those that run. In the list each names the next alone, so
// what `ahead_` names is fetched, too; it may be gone, since nobody follows it.
inline std::size_t scope_core::take_in_hand(fork_record** some) noexcept {
  fork_record *const first = telling_, *last = nullptr;
  std::size_t count = 0;
  for (fork_record* one = first; one != nullptr && count != told_at_once; one = one->next_) {
    one->in_hand_.store(fork_record::in_hand::told, std::memory_order_relaxed);
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

// First all waits are claimed, and those that can leave do so, together where they are in one line; then all end in their turn.
// None stays claimed without having left while code of the program may run, which may complete what it waits for, and destroy
// it. A scope's wait is the exception: it stands in a frame that is not left meanwhile, and is claimed before its turn so that
// it can be fetched.
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

// Of forks that have left their waits: those that go on wherever they are woken are unwound here and now, one after the
// other; the rest is woken. Within a job of an inline executor their turn comes after it; and where children are limited, the
// end of each makes room for what the next one's cleanup forks.
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
    if (to_its_end) those[i]->in_hand_.store(fork_record::in_hand::unwound, std::memory_order_relaxed);
    expect_no_more_locks(locks);
    if (!is_any(here.next.address(), here.local, here.deferred.first, posted.first)) [[likely]]
      continue;
    // Others run now, perhaps for long: who waits for those that have ended is told before that. None of it is a part of this
    // fork, but what a boundary in it goes on with.
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

// Their frames are gone, and the scope is here, since the stopper counts as live.
void scope_core::enter_unwound(std::unique_lock<tiny_lock>& guard, fork_record* const* those, std::size_t count,
                               called_by_ends& called) noexcept {
  bool any_was = false;
  for (std::size_t i = 0; i != count; ++i) {
    fork_record& one = *those[i];
    if (one.in_hand_.load(std::memory_order_relaxed) != fork_record::in_hand::unwound) continue;
    one.in_hand_.store(fork_record::in_hand::told, std::memory_order_relaxed);
    one.frame_ = nullptr;
    any_was = true;
    static_cast<void>(enter_end(guard, one, fork_status::stopped, called));
  }
  if (any_was) note_stopped_part();
}

void scope_core::fetch_children(const waiter& self) noexcept {
  prefetch(&static_cast<const scope_core&>(self).env_, sizeof(weft::env));
  for (const atomic<fork_record*>& one : static_cast<const scope_core&>(self).newest_)
    prefetch(one.load(std::memory_order_relaxed), bytes_of_record);  // as declared
}

// Counts as live until its turn.
on_stop scope_core::stop_with_parent(waiter& self) noexcept {
  auto& mine = static_cast<scope_core&>(self);
  worker& here = this_worker();
  std::unique_lock guard{mine.lock_};
  if (mine.live_ == 0) return on_stop::forwarded;
  ++mine.live_;
  if (stop_turn::is_put_off(here)) [[unlikely]] {
    stop_turn::put_off(here, mine);
    return on_stop::forwarded;
  }
  const stop_turn turn{here};
  mine.request_stop_of_live(guard, mine.cause_from_parent());  // mine may be gone after this line
  return on_stop::forwarded;
}

void scope_core::stop_in_turn(waiter& self) noexcept {
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
