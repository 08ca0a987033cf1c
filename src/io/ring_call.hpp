// A system call on a file, as data, so that a ring or a thread that may block can make it.
//
// While a ring makes a call, the kernel uses the caller's memory, and the ring_call lies in the caller's coroutine frame. So
// only the completion ends the caller's wait. A stop is forwarded: the ring's owner asks the kernel to cancel the call. A stop
// on another thread puts the call into the owner's inbox. If the completion comes while the call lies in the inbox, it must not
// end the wait, since the frame would go with the call still in the inbox. The word `state_` decides between the two:
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
  /// Whether a ring makes this call. io_uring has no operation for the others, or only newer kernels have; and it makes a close
  /// on the thread that enters the ring, which a long close would block.
  bool is_for_ring() const noexcept {
    return what != kind::truncate && what != kind::lock && !(what == kind::close && may_take_long);
  }

  kind what;
  int number = -1;
  std::uint64_t offset = 0, size = 0;
  void* memory = nullptr;  // an array of `count` iovec; a struct statx; a struct flock
  unsigned count = 0;      // of iovec
  const char* path = nullptr;
  int flags = 0;
  unsigned permissions = 0;
  bool may_take_long = false;  // of a close: the file was opened to be written, or has no name any more
};

/// Makes the call, and blocks as long as it takes. Returns its result, or a negative error number.
int perform(const file_request& what) noexcept;
/// Makes a read or a write only if it need not wait (RWF_NOWAIT): else returns -EAGAIN, or -EOPNOTSUPP if the file system
/// has no such call.
int perform_at_once(const file_request& what) noexcept;

class ring_call;

/// A ring that makes calls for its owner's tasks.
class call_ring {
 public:
  /// By its owner, for a coroutine of `self` that suspends: begins a call, whose completion ends the wait. False: the ring
  /// takes no call now, and nothing has happened.
  virtual bool begin(ring_call& one, root& self) noexcept = 0;
  /// Any thread: cancels a call, after a stop has claimed its wait.
  virtual void cancel(ring_call& one) noexcept = 0;

 protected:
  ~call_ring() = default;
};

class ring_call final : public waiter {
 public:
  explicit ring_call(const file_request& what) noexcept : waiter{type}, request{what} {}

  const file_request request;
  // Used by the ring's owner alone, except `of` and, after the wait, `result`.
  int result = 0;             // written before the wait ends
  bool is_cancelled = false;  // the kernel was asked to cancel it
  bool is_missing = false;    // used by find_lost(): the kernel, asked to cancel the call, did not have it
  call_ring* of = nullptr;    // the ring that makes it; set before the wait
  ring_call *above = nullptr, *below = nullptr;  // in the owner's list of the calls that the kernel has

  /// By the stopping thread, before it puts the call into the inbox. False: the completion has come; there is nothing to
  /// cancel.
  bool is_asked_for() noexcept {
    return (state_.fetch_or(asked, std::memory_order_relaxed) & ended) == 0;  // as declared
  }
  /// By the ring's owner, when the completion has come: whether to end the wait now. False: the call is in the inbox, or will
  /// be.
  bool may_end() noexcept {
    return (state_.fetch_or(ended, std::memory_order_relaxed) & asked) == 0;  // as declared
  }
  /// By the ring's owner, after it has taken the call out of the inbox: whether the completion has come.
  bool has_ended() noexcept {
    return (state_.fetch_and(~asked, std::memory_order_relaxed) & ended) != 0;  // as declared
  }
  /// Ends the wait: the call may be gone after this.
  void end() noexcept;

 private:
  static on_stop leave(waiter& self) noexcept;
  static constexpr wait_type type{.leave = leave, .name = "file"};

  static constexpr std::uint32_t asked = 1, ended = 2;
  // Changed by read-modify-writes alone, so that whichever side comes second finds the bit of the first. Relaxed: what each
  // side did with the call is ordered by the claim of the wait, or by the inbox. test/model/ring_call_model.cpp checks the
  // protocol.
  atomic<std::uint32_t> state_{0};
};

/// To be awaited: whether the ring took the call.
struct ring_wait : knows_roots {
  ring_wait(ring_call& call, call_ring& ring) noexcept : one{&call} { call.of = &ring; }
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    // If this returns true, the task may run elsewhere, or be gone.
    if (one->of->begin(*one, suspending(caller))) return true;
    was_taken = false;
    return false;
  }
  bool await_resume() const noexcept { return was_taken; }

  ring_call* one;
  bool was_taken = true;
};

}  // namespace weft::detail
