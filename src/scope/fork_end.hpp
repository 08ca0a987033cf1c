// What the sources of scopes share, where each must see it: records of forks, who holds them, and the end of one, which the
// fork itself enters or a stopper for it. Their state and who may touch it stands in scope/fork.hpp.
#pragma once

#include <mutex>
#include <weft/detail/scope/fork.hpp>

#include "core/letting_go.hpp"
#include "core/worker.hpp"

namespace weft::detail {

inline constexpr std::uintptr_t has_record = 1;

inline constexpr const char* scope_has_ended = "fork or go was called on a scope that has ended";

// Of a coroutine that has not run.
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

// Records have nothing to destroy but the env of a fork_on. By this it is not looked for where a stop has no line of it.
// Not null: nobody has it any more.
inline fork_record::own_env* scope_core::let_go_of_env(fork_record& one) const noexcept {
  return one.env != &env_ ? let_go_of_env(one.env_of_fork_on_) : nullptr;
}
inline fork_record::own_env* scope_core::let_go_of_env(fork_record::own_env* one) const noexcept {
  const std::size_t users = one->users - 1;
  one->users = users;
  return users == 0 ? one : nullptr;
}

inline void scope_core::give_back(fork_record& one) noexcept {
  --held_;
  one.next_ = free_;
  free_ = &one;
}

// A holder goes. Whoever is the last destroys the frame, under no lock; that may be one of a row, if what held it was a frame
// that goes.
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
  one.holders_.store(fork_record::nobody, std::memory_order_relaxed);  // under the lock, as what asks for it
  if (one.in_hand_.load(std::memory_order_relaxed) == fork_record::in_hand::no) give_back(one);
}

inline void scope_core::unlink(fork_record& one) noexcept {
  if (one.link_ == nullptr) return;
  *one.link_ = one.next_;
  if (one.next_ != nullptr) one.next_->link_ = one.link_;
  one.link_ = nullptr;
}

// ---- ends -----------------------------------------------------------------------------------------------------------

// Outside is who awaits the scope, or is awaited further out, and what the scope was given. Asked for by the parts that end
// stopped, so who tells notes nothing; but a deadline is no word that could be read. The roots further out wait for this
// scope, so they are here.
inline bool scope_core::is_stopped_from_outside() const noexcept {
  return past_deadline_ || options_.stop.stop_requested() || parent_->stop_requested();
}

// A part ends stopped: whoever has told it, a stop from outside that is in force then has cut the scope short.
inline void scope_core::note_stopped_part() noexcept {
  if (!cut_short_) cut_short_ = is_stopped_from_outside();
}

inline wake_up scope_core::how() const noexcept {
  return (body_was_stopped_ || cut_short_) && !failure_ ? wake_up::stopped : wake_up::completed;
}

// Who is to be woken because forks have ended, when the lock is free.
struct scope_core::called_by_ends {
  waiter_line awaited, with_room;

  bool any() const noexcept { return !awaited.empty() || !with_room.empty(); }
  void wake(wake_up how) noexcept {
    while (waiter* in = awaited.pop()) in->wake_as_ended(how);
    while (waiter* in = with_room.pop()) in->wake();
  }
};

inline bool scope_core::is_room_free() const noexcept { return children_ + places_ < options_.max_children; }

// True: nobody is left that the scope waits for.
inline bool scope_core::enter_end(std::unique_lock<tiny_lock>& guard, fork_record& one, fork_status how,
                                  called_by_ends& called) noexcept {
  one.status_.store(how, std::memory_order_release);  // -> ended
  while (waiter* in = one.line_.pop())
    if (in->try_claim()) called.awaited.push(*in);
  const bool counted = one.link_ != nullptr;  // else whoever started it is still in link()
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
