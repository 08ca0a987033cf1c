// What the sources of scopes share and inline: the records of forks, the count of their holders, the entering of a fork that has
// waited, and that of a fork's end, by the fork itself or by the stopper that has unwound it. The state of a fork, and who may read and write it, is
// described in scope/scope_core.hpp.
#pragma once

#include <mutex>
#include <weft/detail/scope/scope_core.hpp>

#include "core/end_causes.hpp"
#include "core/letting_go.hpp"
#include "core/worker.hpp"

namespace weft::detail {

inline constexpr std::uintptr_t has_record = 1;

inline constexpr const char* scope_has_ended = "fork or go was called on a scope that has ended";

// The code of a coroutine that has not run.
inline const void* code_of(std::coroutine_handle<> of) noexcept {
  return reinterpret_cast<const void*>(static_cast<const frame*>(of.address())->resume);
}

// Whether any of the pointers is not null, in one branch.
template <class... Pointers>
bool is_any(Pointers*... pointers) noexcept {
  return (reinterpret_cast<std::uintptr_t>(pointers) | ...) != 0;
}

// ---- records --------------------------------------------------------------------------------------------------------

inline fork_record::fork_record(scope_core& of) noexcept : root{&of.env_, &of.body_, scope_core::fork_ended} {
  is_fork = true;
  ends_in(scope_core::fork_returned);
}

// Gives up a record's use of an environment that fork_on made: whoever has changed a root's env has changed it back by the
// end of the fork. Whoever gets a result that is not null deletes it: that was the last use.
inline const fork_record::own_env* scope_core::let_go_of_env(const fork_record& one) const noexcept {
  return one.env != &env_ ? let_go_of_env(static_cast<const fork_record::own_env*>(one.env)) : nullptr;
}
inline const fork_record::own_env* scope_core::let_go_of_env(const fork_record::own_env* one) const noexcept {
  const std::size_t users = one->users - 1;
  one->users = users;
  return users == 0 ? one : nullptr;
}

inline void scope_core::give_back(fork_record& one) noexcept {
  --held_;
  one.next_ = free_;
  free_ = &one;
}

// Gives up one hold on a record. The last holder destroys the frame, after unlocking. `in_row`: the frame may be one of a
// long chain of frames that own each other, and is destroyed as such.
template <bool in_row>
void scope_core::let_go(std::unique_lock<tiny_lock>& guard, fork_record& one) noexcept {
  const unsigned holders = one.holders_.load(std::memory_order_relaxed) - 1;  // under the lock
  one.holders_.store(holders, std::memory_order_release);                     // -> gone (no model: see its declaration)
  if (holders != 0) return;
  if (one.frame_) {
    guard.unlock();
    if constexpr (in_row)
      letting_go::destroy(this_worker(), one.frame_);
    else
      one.frame_.destroy();
    guard.lock();
  }
  one.holders_.store(fork_record::nobody, std::memory_order_relaxed);  // under the lock, where it is read
  if (one.in_hand_.load(std::memory_order_relaxed) == fork_record::in_hand::no) give_back(one);
}

inline void scope_core::unlink(fork_record& one) noexcept {
  if (one.link_ == nullptr) return;
  *one.link_ = one.next_;
  if (one.next_ != nullptr) one.next_->link_ = one.link_;
  one.link_ = nullptr;
}

// ---- starts ---------------------------------------------------------------------------------------------------------

inline void scope_core::begin(fork_record& one, std::coroutine_handle<> frame, promise_base& promise,
                              failure_function failure_of) noexcept {
  one.adopt(frame, promise);
  one.frame_ = frame;
  one.failure_of_ = failure_of;
  one.function_.store(code_of(frame), std::memory_order_relaxed);  // as declared
}

// Under the lock, or before others know of its end.
inline void fork_record::note_end() noexcept {
  if (cause_.reason == nullptr) cause_ = cause_of_end(*this);
}

inline void scope_core::add_running(fork_record& one) noexcept {
  one.next_ = running_;
  one.link_ = &running_;
  if (running_ != nullptr) running_->link_ = &one.next_;
  running_ = &one;
}

inline void scope_core::count_in(fork_record& one) noexcept {
  WEFT_EXPECTS(live_ != 0, scope_has_ended);
  ++held_;
  if (one.status_.load(std::memory_order_relaxed) != fork_status::running) return;  // under the lock
  atomic<fork_record*>& entered = newest_[children_ % std::size(newest_)];
  one.ahead_ = entered.load(std::memory_order_relaxed);  // under the lock
  entered.store(&one, std::memory_order_relaxed);        // under the lock: others only fetch what it names
  ++live_, ++children_;
  add_running(one);
}

// All of a list, to an empty one.
inline void scope_core::move_list(fork_record*& to, fork_record*& from) noexcept {
  to = std::exchange(from, nullptr);
  if (to != nullptr) to->link_ = &to;
}

// ---- ends -----------------------------------------------------------------------------------------------------------

// Whether a stop from outside is in force: of the task that awaits the scope or of one further out, by the scope's token,
// or by its deadline. A part that ends stopped asks this, so a stopper need not note anything; only the deadline is noted,
// since there is nothing that could be read for it. The roots further out wait for this scope, and so are alive.
inline bool scope_core::is_stopped_from_outside() const noexcept {
  return past_deadline_ || options_.stop.stop_requested() || parent_->stop_requested();
}

// Called when a part ends stopped. If a stop from outside is in force then, it has cut the scope short, whoever has stopped
// the part.
inline void scope_core::note_stopped_part() noexcept {
  if (!cut_short_) cut_short_ = is_stopped_from_outside();
}

inline wake_up scope_core::how() const noexcept {
  return (body_was_stopped_ || cut_short_) && !failure_ ? wake_up::stopped : wake_up::completed;
}

// The waiters to be woken, after unlocking, because forks have ended.
struct scope_core::called_by_ends {
  waiter_line awaited, with_room;

  bool any() const noexcept { return !awaited.empty() || !with_room.empty(); }
  void wake(wake_up how) noexcept {
    while (waiter* in = awaited.pop()) in->wake_as_ended(how);
    while (waiter* in = with_room.pop()) in->wake();
  }
};

inline bool scope_core::is_room_free() const noexcept { return children_ + places_ < options_.max_children; }

// Enters the end of a fork. True: it was the last part that the scope waits for.
inline bool scope_core::enter_end(std::unique_lock<tiny_lock>& guard, fork_record& one, fork_status how,
                                  called_by_ends& called) noexcept {
  one.status_.store(how, std::memory_order_release);  // -> ended
  while (waiter* in = one.line_.pop())
    if (in->try_claim()) called.awaited.push(*in);
  const bool counted = one.link_ != nullptr;  // else the forker has not entered it yet, in link()
  if (counted) {
    unlink(one);
    --children_;
    if (!room_.empty()) [[unlikely]]
      give_room(called);
  }
  let_go(guard, one);
  return counted && --live_ == 0;
}

}  // namespace weft::detail
