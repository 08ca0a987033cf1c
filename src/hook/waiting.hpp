// How a hooked call waits.
//
// A call is first tried in a way that does not block: on a socket with MSG_DONTWAIT, on a pipe with RWF_NOWAIT, on everything
// else by poll() and then the call itself. poll() and the call are made under a lock, of the socket or else of the number: of
// several fibers that one connection has woken, all but one would otherwise block in accept(). If the try finds nothing, the
// fiber waits until the descriptor is ready in that direction, and tries again.
//
// A watch registers a descriptor number with the io_service of the fiber's executor. All fibers that wait for one number by one
// service share a watch. It is edge-triggered: a fiber that joins a watch tries once more before it waits, since the last edge
// may have been reported before it joined. A fiber whose attempt succeeds tells the other ones, since it has reset the watch's
// event before the attempt and may have left something. A number may have come to name another file: then the waits of the old
// watch end with EBADF, and a new watch is made.
//
// The watch of a socket outlives a wait, so that the next wait needs no system call to register it. It ends when the number is
// closed, or when the hooks of the last fiber end that has waited by this service, since the runtime may be destroyed after
// that. Such a watch must not keep its file open, or a close that no hook sees (fclose) would not take effect: an epoll set
// keeps none open, and a ring polls the file only during a wait. Before each wait the inode tells whether the number still
// names the same socket; no two sockets share one. Files of other kinds are watched only during a wait.
//
// close() ends the waits for its number with EBADF. The watch is unregistered before the number is freed, since the number may
// name another file right afterwards.
//
// A wait needs no second try if its watch is new, or had no user and was last used by the same thread: then no edge after the
// first try can have been reported to another user. Edges of an earlier connection say nothing about the next one on the same
// socket: so a watch that has reported the end, or that exists when its socket is connected, is replaced.
//
// A ring polls one-shot, and such a poll reports at once what holds already. If that is nothing that the call takes (an urgent
// byte, an error in the socket's queue, bytes that are too few for a peek), polls and attempts would follow each other without
// end. So once an attempt after a report has found nothing, the ring polls multishot, which reports changes. That keeps the file
// open, so the watch ends with its last wait.
//
// An epoll set takes a number only once. If weft itself watches the number in it, the watch is of a duplicate, and ends with its
// last wait.
//
// Lock order: a number's lock, then the lock of a service's list of watches. The last fiber ends the service's watches one by
// one, each under its number's lock, and goes on until the list is empty. So a thread that closes a number removes its watch
// from the list as the last step. If that thread then wakes waiting fibers, without a lock, it holds a visit on the service,
// whose destructor waits until the visit ends.
#pragma once

#include <cerrno>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <weft/clock.hpp>
#include <weft/detail/io/descriptor.hpp>
#include <weft/error.hpp>
#include <weft/hook.hpp>
#include <weft/timed.hpp>

#include "core/lock_watch.hpp"  // it interposes the mutex functions in builds that watch locks
#include "core/worker.hpp"

namespace weft::detail {

// ---- whose calls are hooked -------------------------------------------------------------------------------------------------

/// The hooks of the running fiber; null: it has none, or no fiber runs here. This test is all that a call without hooks costs.
inline hook_state* hooks_here() noexcept {
  const worker* const here = worker_of_thread;
  if (here == nullptr || here->fiber == nullptr) return nullptr;
  return here->fiber->hooks();
}

/// A hooked call in progress. Converts to false if the call is not hooked: the caller then calls the C library's function.
/// While it lives, calls that weft itself makes on this fiber are not hooked. A call that succeeds leaves errno as it was
/// before.
class hooked_call {
 public:
  /// For a call that may wait: hooked if the options have `kind` or `or_kind` on, and the fiber holds no lock.
  explicit hooked_call(bool hook_options::* kind, bool hook_options::* or_kind = nullptr) noexcept : hooked_call{} {
    if (state_ == nullptr) [[likely]]
      return;
    if ((!does(kind) && (or_kind == nullptr || !does(or_kind))) || state_->locks != 0 || holds_locks()) {
      fiber_->set_hooks(state_);
      state_ = nullptr;
    }
  }
  /// For a call that never waits: hooked whatever the options say.
  hooked_call() noexcept : state_{hooks_here()} {
    if (state_ == nullptr) [[likely]]
      return;
    if (state_->is_over) {
      state_ = nullptr;
      return;
    }
    fiber_ = worker_of_thread->fiber;
    fiber_->set_hooks(nullptr);
    errno_ = errno;
  }
  hooked_call(const hooked_call&) = delete;
  ~hooked_call() {
    if (state_ != nullptr) fiber_->set_hooks(state_);
  }
  explicit operator bool() const noexcept { return state_ != nullptr; }

  hook_state& state() const noexcept { return *state_; }
  bool does(bool hook_options::* kind) const noexcept { return state_->kinds.*kind; }
  /// Whether the fiber was told to stop. Then no call begins that may wait.
  bool is_stopped() const noexcept { return current_root()->sleeper::stop_requested(); }

  /// give() and fail() return what the hook returns. If the call succeeded, give() restores errno; fail() sets it.
  template <class Result>
  Result give(Result result) const noexcept {
    if (result >= 0) errno = errno_;
    return result;
  }
  int fail(int error) const noexcept {
    errno = error;
    return -1;
  }

 private:
  hook_state* state_;
  fiber* fiber_ = nullptr;
  int errno_ = 0;
};

// ---- waits ------------------------------------------------------------------------------------------------------------------

/// Awaits as weft::await does, but a stop does not throw: it gives an empty optional, or false if the result is void.
template <class Awaitable>
auto await_unless_stopped(Awaitable&& awaitable) {
  fiber& self = fiber::running();
  auto&& known = known_to_root(std::forward<Awaitable>(awaitable));
  auto&& awaiter = get_awaiter(std::forward<decltype(known)>(known));
  using given = decltype(awaiter.await_resume());
  if constexpr (std::is_void_v<given>) {
    if (!awaiter.await_ready() && !self.suspend(awaiter)) return false;
    awaiter.await_resume();
    return true;
  } else {
    using kept = std::optional<std::remove_cvref_t<given>>;
    if (!awaiter.await_ready() && !self.suspend(awaiter)) return kept{};
    return kept{awaiter.await_resume()};
  }
}

/// How a wait has ended.
enum class waited : std::uint8_t {
  ready,  ///< the attempt succeeded
  timed_out,
  stopped,
  closed,      ///< the descriptor was closed
  impossible,  ///< weft can't wait for this descriptor: the plain call is to be made, which may block the thread
  no_memory,   ///< there was no memory for the wait; nothing was changed
};

inline constexpr clock::time_point without_end = clock::time_point::max();

/// The errno for a wait that did not end as `ready`; `late` is the errno of one that timed out.
inline int error_of(waited how, int late) noexcept {
  switch (how) {
    case waited::stopped: return ECANCELED;
    case waited::closed: return EBADF;
    case waited::no_memory: return ENOMEM;
    default: return late;
  }
}

/// False in a child of vfork(), which shares the parent's memory: no fiber may be suspended there.
bool may_suspend() noexcept;

/// Yields if the fiber has made so many calls in a row without waiting that others must run. False: the fiber was stopped.
bool yield_if_due() noexcept;

/// One fiber's use of the watch of a number; makes the watch if there is none.
class watch_of_number {
 public:
  watch_of_number(hook_state& whose, int number) noexcept;
  watch_of_number(const watch_of_number&) = delete;
  ~watch_of_number();

  /// False: this number can't be waited for.
  explicit operator bool() const noexcept { return watch_ != nullptr; }
  bool has_no_memory() const noexcept { return has_no_memory_; }
  /// Whether it is of a socket. A socket's end is final; another file may be opened again by a peer.
  bool is_of_socket() const noexcept;
  /// Whether no edge after this thread's last try can have been reported to another user of the watch: no second try is needed.
  bool is_alone() const noexcept { return is_alone_; }
  /// Whether an edge was reported since the last try.
  bool has_changed(direction which) const noexcept;
  void expect_change(direction which) noexcept;
  bool has_ended(direction which) const noexcept;
  /// To be called when an attempt has succeeded, behind expect_change(): there may be more, for the watch's other users.
  void leaves_more(direction which) noexcept;
  /// To be called when an attempt after a report has found nothing, so that the same is not reported again at once.
  void report_changes() noexcept;
  /// Waits until an edge is reported, or the time is over.
  waited wait(direction which, clock::time_point until) noexcept;

 private:
  struct number_entry* entry_ = nullptr;
  struct number_watch* watch_ = nullptr;
  bool is_alone_ = false, has_no_memory_ = false;
};

/// How a wait with a time limit has ended, by its as_result(); an empty optional: it was stopped.
template <class Result>
waited ended_by(const std::optional<Result>& ended) noexcept {
  if (!ended || ended->is_stopped()) return waited::stopped;
  if (ended->has_value()) return waited::ready;
  if (ended->error() == errc::timed_out) return waited::timed_out;
  return ended->error() ? waited::impossible : waited::no_memory;  // std::bad_alloc has no code
}

/// Waits until the service reports a change of `at`, or the time is over.
waited wait_for_change(descriptor& at, direction which, clock::time_point until) noexcept;

/// By a wait for several numbers, for each of them: hears that the number is about to be closed.
class close_listener {
 public:
  close_listener() = default;
  close_listener(const close_listener&) = delete;
  ~close_listener();

  /// `woken`: by what the wait is woken. It must outlive this.
  void begin(int number, descriptor& woken) noexcept;
  /// If it is false, the wait is woken once that changes.
  bool is_closed() const noexcept;

 private:
  friend void end_waits_for(int number) noexcept;
  struct number_entry* entry_ = nullptr;
  descriptor* woken_ = nullptr;
  // The number's lock guards the rest. Also held while a wait is woken, so that the wait can't end meanwhile.
  bool is_closed_ = false;
  close_listener* next_ = nullptr;
};

/// Ends the waits for a number with EBADF. To be called before the number is closed. Does nothing in a child of vfork(), which
/// shares the parent's memory: the child has descriptors of its own, but the waits are the parent's.
void end_waits_for(int number) noexcept;

/// Ends the unused watches of a socket. To be called before it is connected: edges reported before then are stale.
void end_unused_watches_of(int number) noexcept;

/// To be called when a fiber's hooks end. The last fiber that has waited by a service ends the service's watches.
void end_idle_watches(hook_state& its) noexcept;

/// Locks a file against other hooked fibers. Held over a poll() and the call that it permits, so that none of them takes what
/// poll() reports. Of a socket, the lock is that of all its numbers.
std::unique_lock<std::mutex> lock_calls_on(int number, bool is_socket) noexcept;

/// Waits until `attempt()` gives true. The caller has tried before and found nothing. Calls attempt() after each edge, and once
/// more when the time is over: this thread may have been delayed, and what came in time counts.
template <class Attempt>
waited wait_until(const hooked_call& call, int number, direction which, clock::time_point until,
                  Attempt attempt) noexcept {
  std::optional<watch_of_number> watched;
  bool has_waited = false, is_renewed = false;
  const auto begin_watch = [&] {
    watched.reset();
    watched.emplace(call.state(), number);
    return !watched->is_alone() || watched->has_changed(which);
  };
  bool tries = begin_watch();
  for (;;) {
    if (!*watched) return watched->has_no_memory() ? waited::no_memory : waited::impossible;
    if (tries) {
      watched->expect_change(which);
      if (attempt()) {
        watched->leaves_more(which);
        return waited::ready;
      }
      if (watched->has_ended(which)) {
        // After the end no edge is reported any more. A blocking call on a socket then returns at once: the caller makes it. A
        // FIFO may have been opened again, and a new watch reports its present state.
        if (watched->is_of_socket() || std::exchange(is_renewed, true)) return waited::impossible;
        tries = begin_watch();
        continue;
      }
      if (has_waited) watched->report_changes();
    }
    const waited how = watched->wait(which, until);
    if (how == waited::timed_out && attempt()) return waited::ready;
    if (how != waited::ready) return how;
    tries = has_waited = true;
    is_renewed = false;
  }
}

/// The deadline that is `d` from now; if `d` is negative, there is none.
inline clock::time_point after(clock::duration d) noexcept {
  return d < clock::duration::zero() ? without_end : later(current_clock().now(), d);
}

}  // namespace weft::detail
