// A call of the system's about a file, as data: so that a ring, or a thread that may block, does it.
//
// While a ring does one, the kernel has its caller's memory, and the call lies in the caller's frame. So its wait is ended by its
// completion alone. A stop is forwarded: the ring's owner asks the kernel to cancel it. Who stops it may be on another thread, and
// puts it into the owner's inbox; then a completion that comes first must not end the wait, since the call lies in the inbox
// still. The word `state` decides between the two:
//
//   stopper  sets `asked`; unless it finds `ended`, puts the call into the inbox, and wakes the owner
//   owner    at the completion: sets `ended`; unless it finds `asked`, ends the wait
//            at the inbox: clears `asked`; if it finds `ended`, ends the wait, else asks the kernel to cancel
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/core/waiter.hpp>

namespace weft::detail {

struct file_request {
  enum class kind : std::uint8_t { read, write, append, sync, sync_data, allocate, open, close, stat, truncate, lock };
  /// Whether a ring does it, too.
  bool is_for_ring() const noexcept { return what != kind::truncate && what != kind::lock; }

  kind what;
  int number = -1;
  std::uint64_t offset = 0, size = 0;
  void* memory = nullptr;  // an array of `count` iovec; a struct statx; a struct flock
  unsigned count = 0;      // of iovec
  const char* path = nullptr;
  int flags = 0;
  unsigned permissions = 0;
};

/// Does it, and blocks where it has to: what it gives, or an error number below zero.
int perform(const file_request& what) noexcept;
/// The same of a read or a write, only where it need not wait: else -EAGAIN; or -EOPNOTSUPP where the file can't tell.
int perform_at_once(const file_request& what) noexcept;

class ring_call;

/// A ring that does calls for its owner.
class call_ring {
 public:
  /// By its owner, for a coroutine that suspends in `self`: begins a call, which ends that wait. False: the ring takes none just
  /// now, and nothing has happened.
  virtual bool begin(ring_call& one, root& self) noexcept = 0;
  /// Any thread: of a call whose wait is claimed.
  virtual void cancel(ring_call& one) noexcept = 0;

 protected:
  ~call_ring() = default;
};

class ring_call final : public waiter {
 public:
  explicit ring_call(const file_request& what) noexcept : waiter{type}, request{what} {}

  const file_request request;
  int result = 0;                                // by the ring's owner, before it ends the wait
  bool is_cancelled = false;                     // the ring's owner's: the kernel was asked to cancel it
  bool is_missing = false;                       // the ring's owner's: the kernel, asked for it, did not know it
  call_ring* of = nullptr;                       // before it waits
  ring_call *above = nullptr, *below = nullptr;  // the ring's owner's: in its list of those that the kernel does

  /// By a stopper. False: it has ended, and nothing needs to be done.
  bool is_asked_for() noexcept {
    return (state_.fetch_or(asked, std::memory_order_relaxed) & ended) == 0;  // as declared
  }
  /// By the ring's owner: of one whose completion has come. False: it is in the inbox, or about to be.
  bool may_end() noexcept {
    return (state_.fetch_or(ended, std::memory_order_relaxed) & asked) == 0;  // as declared
  }
  /// By the ring's owner, that has taken it out of the inbox: whether its completion has come.
  bool has_ended() noexcept {
    return (state_.fetch_and(~asked, std::memory_order_relaxed) & ended) != 0;  // as declared
  }
  /// Ends its wait: it may be gone after this.
  void end() noexcept;

 private:
  static on_stop leave(waiter& self) noexcept;
  static constexpr wait_type type{.leave = leave, .name = "file"};

  static constexpr std::uint32_t asked = 1, ended = 2;
  // Changed by read-modify-writes alone, of which the second one finds the bit of the first. Relaxed: what either side did with
  // the call goes to the other one by the claim of the wait, or by the inbox. test/model/ring_call_model.cpp has the protocol.
  atomic<std::uint32_t> state_{0};
};

/// To be awaited: whether the ring took the call.
struct ring_wait : knows_roots {
  ring_wait(ring_call& call, call_ring& ring) noexcept : one{&call} { call.of = &ring; }
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    // The task may run elsewhere, or be gone, where this returns true.
    if (one->of->begin(*one, suspending(caller))) return true;
    was_taken = false;
    return false;
  }
  bool await_resume() const noexcept { return was_taken; }

  ring_call* one;
  bool was_taken = true;
};

}  // namespace weft::detail
