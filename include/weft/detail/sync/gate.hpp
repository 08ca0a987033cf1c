// What the primitives of sync.hpp are made of: a lock, a line, places in it, and what their functions return.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <weft/detail/base/lock.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/core/waiter.hpp>
#include <weft/sync_stats.hpp>

namespace weft::detail {

class gate_waiter;
template <class Awaiter, class Primitive, class Argument>
class gate_case;

/// Who has taken something, for who asks what others wait for: a sleeper's address as a number. 0 is nobody.
namespace holder {
// Who took it without waiting for it is not known: try_lock() is told nothing.
inline constexpr std::uintptr_t somebody = wait_layout::somebody;
inline std::uintptr_t is(const sleeper* one) noexcept { return reinterpret_cast<std::uintptr_t>(one); }
inline const void* of(std::uintptr_t taken) noexcept {
  return taken > somebody ? reinterpret_cast<const void*>(taken) : nullptr;
}
}  // namespace holder

/// How many are in line. Under its lock.
std::size_t length(const waiter_line& line) noexcept;

/// Who was let through, in that order, to be woken when the lock is free.
class let_through {
 public:
  let_through() = default;
  let_through(const let_through&) = delete;
  /// Outside of all locks.
  ~let_through() {
    for (waiter* one = first_; one != nullptr;) std::exchange(one, one->next)->wake();  // it may be gone
  }

  /// One that was taken out of its line. False: a stop came first.
  bool add(waiter& one) noexcept {
    if (!one.try_claim()) return false;
    push(one);
    return true;
  }
  /// The same, claimed already.
  void push(waiter& one) noexcept {
    one.next = nullptr;
    (last_ != nullptr ? last_->next : first_) = &one;
    last_ = &one;
  }
  void add_all(waiter_line& line) noexcept {
    while (waiter* one = line.pop()) add(*one);
  }

 private:
  waiter* first_ = nullptr;
  waiter* last_ = nullptr;
};

/// A lock and a line: what every primitive is made of. All members under the lock, but for its own users.
class gate {
 public:
  gate() = default;
  gate(const gate&) = delete;

  /// Costs the lock, and a walk along the line. For people and tests: it is over when it is read.
  sync_stats stats() const noexcept;

 protected:
  friend class gate_waiter;
  template <class Awaiter, class Primitive, class Argument>
  friend class gate_case;
  /// Waits for who is still inside: one that was let through may be the one who destroys this.
  ~gate();

  using let_through = detail::let_through;

  /// Gets in line and lets go of the lock. `one`, and the primitive, may be gone after this.
  void wait(root& self, gate_waiter& one) noexcept;
  void wait(root& self, gate_waiter& one, waiter_line& line) noexcept;
  /// The same where it is in line.
  void wait_on(root& self, gate_waiter& one, waiter_line& line) noexcept;
  /// In line, of one that has parked: as a case of a select.
  void enter(waiter& one, waiter_line& line) noexcept {
    line.push(one);
    ++waits_;
  }

  mutable tiny_lock lock_;
  waiter_line line_;
  std::uint64_t waits_ = 0;
};

/// Somebody's place in line.
class gate_waiter : public waiter {
 public:
  gate_waiter(const gate_waiter&) = delete;

 protected:
  template <class Awaiter, class Primitive, class Argument>
  friend class gate_case;
  gate_waiter(gate& of, const wait_type& type) noexcept : waiter{type}, gate_{&of} {}
  ~gate_waiter() = default;

  static on_stop leave_line(waiter& self) noexcept;
  static std::size_t leave_together(waiter* const* those, std::size_t count) noexcept;
  static void tell(const waiter& self, const char* what, wait_subjects& into) noexcept {
    into.add(what, static_cast<const gate_waiter&>(self).gate_);
  }

  static const wait_layout seen;
  gate* gate_;

 public:
  /// That of a place in a line that a stop leaves.
  static constexpr wait_type type_called(const char* name) noexcept {
    return {.leave = leave_line, .name = name, .tell = tell, .leave_together = leave_together, .layout = &seen};
  }
};
WEFT_LAYOUT(gate_waiter, stored_at(WEFT_BEHIND_WAITER(gate_waiter, gate_)));

/// What an await of a primitive does with its task. One that may find what it wants has two functions besides, for fibers:
/// see detail::may_need_no_wait. One that has no effect before it has what it wants, and so can be a case of a select, has
/// two more, both under the lock:
///   bool try_locked(by)        takes it, if it is there. `by`: as detail::holder
///   void enter_locked()        gets in line; whoever takes it out claims it by let_through
template <class Awaiter>
struct gate_awaiter {
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    return static_cast<Awaiter*>(this)->suspend(suspending(caller));  // the task may be gone after this line
  }
};

/// What a primitive's function returns: nothing happens until it is awaited.
template <class Awaiter, class Primitive, class Argument = std::size_t>
class WEFT_TO_BE_AWAITED("nothing happens until it is awaited") at_gate : public knows_roots {
 public:
  using may_be_a_case = void;
  explicit at_gate(Primitive& at, Argument with = {}) noexcept : at_{&at}, with_{with} {}
  Awaiter operator co_await() const noexcept { return Awaiter{*at_, with_}; }
  gate_case<Awaiter, Primitive, Argument> as_case() const noexcept
    requires(!requires { typename Awaiter::has_arrived; })
  {
    return {*at_, with_};
  }

 private:
  Primitive* at_;
  Argument with_;
};

/// Whether who awaits it has done something already when it waits, which leaving does not undo: it is no case of a select.
template <class Awaitable>
inline constexpr bool arrives = false;
template <class Awaiter, class Primitive, class Argument>
  requires requires { typename Awaiter::has_arrived; }
inline constexpr bool arrives<at_gate<Awaiter, Primitive, Argument>> = true;

}  // namespace weft::detail
