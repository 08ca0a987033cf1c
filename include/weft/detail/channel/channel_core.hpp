// A channel without its values: the lock, the lines of those that wait, and whether it is closed. Part of channel.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <weft/detail/base/config.hpp>
#include <weft/detail/base/peeked.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/core/waiter.hpp>
#include <weft/detail/sync/learning_lock.hpp>
#include <weft/sync_stats.hpp>

namespace weft::detail {

class select_wait;

/// Somebody in a channel's line: a send or receive alone, or a case of a select.
class channel_waiter : public waiter {
 public:
  explicit channel_waiter(const wait_type& type) noexcept : waiter{type} {}

  select_wait* select = nullptr;  // of which this is a case
  std::size_t index = 0;
  bool closed = false;  // woken since the channel was closed

 protected:
  ~channel_waiter() = default;
};

/// A channel without its values. All under the lock, but for its users.
class channel_core {
 public:
  explicit channel_core(bool is_unbounded = false) noexcept : unbounded{is_unbounded} {}
  channel_core(const channel_core&) = delete;

  sync_stats stats() const noexcept;
  bool is_closed() const noexcept;
  void close() noexcept;

  /// The first in line that no stop has claimed, claimed; or null.
  channel_waiter* pop(waiter_line& line) noexcept { return line.empty() ? nullptr : pop_claimed(line); }

  /// Takes the lock; if somebody is in line, claims the first, gives it, and lets go of the lock. Else null, and the caller
  /// has the lock. Who was claimed waits until it is woken, so what it gets may be handed over without the lock.
  channel_waiter* lock_or_claim(waiter_line& line) noexcept;

  /// Takes the lock; if nothing is there to be received, waits, and lets go of the lock: true. `one` may be gone then. Else
  /// the caller has the lock.
  bool lock_or_wait(root& self, channel_waiter& one, const peeked<std::uint32_t>& values) noexcept;

  /// Gets in line and lets go of the lock. `one` may be gone after this.
  void wait(root& self, channel_waiter& one, waiter_line& line) noexcept;
  void leave(waiter& one, waiter_line& line) noexcept;

  // As they lie, most of what a send that finds a receiver, and a receive that waits, touch is in one cache line.
  [[no_unique_address]] mutable learning_lock lock;
  peeked<bool> closed = false;  // in the lock's last word, as the next one
  const bool unbounded;
  bool waits_on_stack = false;  // who got in line last: a fiber does, a task in its frame. To fetch it early; a guess
  waiter_line receivers;
  waiter_line senders;
  std::uint64_t waits = 0;
  peeked<std::uint32_t> changes = 0;  // before what somebody could do becomes what must wait

 private:
  channel_waiter* pop_claimed(waiter_line& line) noexcept;
  void wait_here(root& self, channel_waiter& one, waiter_line& line, std::uintptr_t entrance) noexcept;
  WEFT_SELDOM void end_wait_stopped(root& self, channel_waiter& one, waiter_line& line) noexcept;

 protected:
  /// Waits for who is still inside.
  ~channel_core();
};

}  // namespace weft::detail
