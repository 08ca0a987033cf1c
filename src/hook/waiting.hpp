// How a hooked call waits.
//
// A call is tried in a way that does not block: a socket by MSG_DONTWAIT, a pipe by RWF_NOWAIT, everything else by poll() and
// then the call itself, under a lock of the descriptor's number, so that of the fibers that were woken for one connection none
// blocks in accept(). Where the try finds nothing, the fiber waits until the number is ready in that direction, and tries again.
//
// A number is watched by the io_service of the fiber's executor. Several that wait for one number at a time share the watch. It
// reports changes: who joins it late tries once more before it waits, since what was reported may be another one's. Where the
// number is another file's by then, the watch is none of it: it ends with EBADF, and a new one begins.
//
// The watch of a socket stays between waits, so that the next wait makes no call of the system for it, until the number is
// closed or the last fiber with hooks ends that has waited by this service: a runtime is free to end when its fibers have. A
// watch that stays must not keep its file open, or what closes that where no hook sees it (fclose) would close nothing: an epoll
// set does not, and a ring polls each time anew. Whether the number is still of the same socket is asked before each wait, by
// its inode, which no two sockets share; all other kinds of files are watched while somebody waits, and no longer.
//
// close() ends those who wait for its number with EBADF: the watch lets go of the number first, which may be another file's
// after that.
//
// A wait that finds its watch unused, and last used by the same thread, needs no second try: what comes after its first one is
// reported to nobody else. What was reported of a connection says nothing of the next one of that socket: a watch that has
// ended, or that stands when a socket is connected, is made anew.
//
// Numbers are locked before the list of a service's watches. The last fiber ends them one by one, each under its number's lock.
// So who closes a number on another thread takes its watch out of that list at last, and where it wakes somebody outside of the
// lock, it visits the service, whose destructor waits for it.
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

#include "core/lock_watch.hpp"  // which has the functions of mutexes in builds that watch locks
#include "core/worker.hpp"

namespace weft::detail {

// ---- whose calls are hooked ---------------------------------------------------------------------------------------------------

/// Of the running fiber; null: it has none, or this is no fiber. All that a hook costs outside of one.
inline hook_state* hooks_here() noexcept {
  const worker* const here = worker_of_thread;
  if (here == nullptr || here->fiber == nullptr) return nullptr;
  return here->fiber->hooks();
}

/// A hooked call, while it is under way. False: this is none, and the function that comes next is to be called. What weft
/// itself calls meanwhile is not hooked. The errno of a call that succeeds is what it was before.
class hooked_call {
 public:
  /// A call of that kind, or of the other one, which may wait.
  explicit hooked_call(bool hook_options::* kind, bool hook_options::* or_kind = nullptr) noexcept : hooked_call{} {
    if (state_ == nullptr) [[likely]]
      return;
    if ((!does(kind) && (or_kind == nullptr || !does(or_kind))) || state_->locks != 0 || holds_locks()) {
      fiber_->set_hooks(state_);
      state_ = nullptr;
    }
  }
  /// One that does not wait.
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
  /// Whether the fiber was told to stop: then no call that may wait begins.
  bool is_stopped() const noexcept { return current_root()->sleeper::stop_requested(); }

  /// What it returns: -1 and errno where it has failed.
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

/// As weft::await, but that a stop throws nothing. No value: it was stopped.
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
  ready,  ///< the try has found what it wanted, whatever that is
  timed_out,
  stopped,
  closed,      ///< its number was
  impossible,  ///< weft can't wait for that: the call itself is to be made, which may block the thread
  no_memory,   ///< there was none for the wait, and nothing has happened
};

inline constexpr clock::time_point without_end = clock::time_point::max();

/// The errno of one that ended otherwise than ready; `late`: where its time was over.
inline int error_of(waited how, int late) noexcept {
  switch (how) {
    case waited::stopped: return ECANCELED;
    case waited::closed: return EBADF;
    case waited::no_memory: return ENOMEM;
    default: return late;
  }
}

/// Lets others run where the fiber has had many calls in a row that needed no wait. False: it was stopped.
bool take_turns() noexcept;

/// That somebody waits for a number. Watches it, unless it is watched.
class watch_of_number {
 public:
  watch_of_number(hook_state& whose, int number) noexcept;
  watch_of_number(const watch_of_number&) = delete;
  ~watch_of_number();

  /// Whether it can be waited for.
  explicit operator bool() const noexcept { return watch_ != nullptr; }
  bool has_no_memory() const noexcept { return has_no_memory_; }
  /// Whether nobody else can have been told, between a try of this thread and now, of what comes after that try.
  bool is_alone() const noexcept { return is_alone_; }
  /// Whether something was reported that no try has followed.
  bool has_changed(direction which) const noexcept;
  void expect_change(direction which) noexcept;
  bool has_ended(direction which) const noexcept;
  /// Until a change is reported, or the time is over.
  waited wait(direction which, clock::time_point until) noexcept;

 private:
  struct number_entry* entry_ = nullptr;
  struct number_watch* watch_ = nullptr;
  bool is_alone_ = false, has_no_memory_ = false;
};

/// How a wait with a time limit has ended, of what as_result() gives; no value: it was stopped.
template <class Result>
waited ended_by(const std::optional<Result>& ended) noexcept {
  if (!ended || ended->is_stopped()) return waited::stopped;
  if (ended->has_value()) return waited::ready;
  if (ended->error() == errc::timed_out) return waited::timed_out;
  return ended->error() ? waited::impossible : waited::no_memory;  // std::bad_alloc has no code
}

/// Before the number is given back: ends those who wait for it. In a child that shares this process's memory (vfork) it does
/// nothing: its numbers are its own, but who waits is in the parent.
void end_waits_for(int number) noexcept;

/// Before a socket is connected: what was reported of it before is no longer so.
void forget_changes_of(int number) noexcept;

/// At the end of its hooks: its fiber waits no more.
void end_stay(hook_state& its) noexcept;

/// Held over poll() and the call after it, of one number; see above.
std::unique_lock<std::mutex> lock_number(int number) noexcept;

/// Waits until `attempt()` is true, which was tried before in vain. It is called when something has changed.
template <class Attempt>
waited wait_until(const hooked_call& call, int number, direction which, clock::time_point until,
                  Attempt attempt) noexcept {
  watch_of_number watched{call.state(), number};
  if (!watched) return watched.has_no_memory() ? waited::no_memory : waited::impossible;
  for (bool tries = !watched.is_alone() || watched.has_changed(which);; tries = true) {
    if (tries) {
      watched.expect_change(which);
      if (attempt()) return waited::ready;
      // Nothing more will be reported, and a call that blocks returns at once.
      if (watched.has_ended(which)) return waited::impossible;
    }
    if (const waited how = watched.wait(which, until); how != waited::ready) return how;
  }
}

/// So much from now on; below zero: without end.
inline clock::time_point after(clock::duration d) noexcept {
  return d < clock::duration::zero() ? without_end : later(current_clock().now(), d);
}

}  // namespace weft::detail
