// Waiting for signals such as SIGINT (Ctrl-C), SIGTERM and SIGHUP, in tasks, in fibers and on plain threads.
//
//     int main() { return w::run_main(w::when_any(serve(), w::interrupted())); }
//
//     w::task<> reload_on_hangup() {
//       for (w::signals hangups{SIGHUP};;) {
//         co_await hangups.next();
//         co_await reload();
//       }
//     }
//
// While a `signals` for a signal exists, or interrupted() is awaited, weft has a handler installed for that signal. The handler
// counts the signal and writes to an eventfd; all else is done by the tasks that wait. When the last of them is gone, the
// former handler is put back, unless the program has installed another one meanwhile, which stays. No signal is blocked for
// this. A child process begins with the signal mask of the thread that starts it, and weft's workers block all signals: see the
// book. A child of fork() that runs the same program has the handler, too, which does nothing until the child makes a `signals`
// of its own.
//
// Two copies of weft in one process, as in plugins, do not know of each other. If both wait for the same signal, do not unload
// the one that installed its handler first before the other one is done: the other one puts back the first one's handler, which
// is code of that copy.
//
// The system delivers a signal of the process to any thread that does not block it. weft's threads block all signals, so the
// program leaves those that it waits for unblocked in one of its own threads, such as that of main().
//
// Under the thread sanitizer a signal is handled only when its thread calls a function that the sanitizer intercepts; a thread
// that sleeps in weft does not.
//
// Rejected: (a) signalfd: the signal would have to be blocked in all threads, also in those of other libraries, and child
// processes would begin with it blocked. (b) A thread in sigwait(): the same.
#pragma once

#include <csignal>
#include <initializer_list>
#include <memory>
#include <utility>
#include <weft/detail/io/descriptor.hpp>
#include <weft/detail/net/operation.hpp>
#include <weft/task.hpp>

namespace weft::detail {

class signal_watch;
struct delete_signal_watch {
  void operator()(signal_watch* one) const noexcept;
};

struct awaiting_signal {
  using value_type = int;
  static constexpr const char* name = "wait for a signal";
  static constexpr const char* if_taken =
      "two tasks wait for the next signal of one `signals` at once: which of them gets it would be chance";
  static constexpr direction which() noexcept { return direction::in; }
  bool may_try() const noexcept;  // also where what has come was not reported yet
  tried attempt() const noexcept;
  static int give(const tried& got) noexcept { return static_cast<int>(got.size); }

  signal_watch* watch;
  descriptor* at;
};

}  // namespace weft::detail

namespace weft {

/// Collects signals from its construction to its destruction, so that none is missed between two waits.
///
/// Several may collect the same signal; each gets every one. A signal that comes again before the last one was taken counts
/// once, as in the system. While one for SIGINT exists, Ctrl-C does not end the program.
///
/// Fails     the constructor throws error: invalid_argument for what is no signal, for SIGKILL and SIGSTOP, which can't be
///           handled, and for SIGSEGV, SIGBUS, SIGFPE and SIGILL, after which the faulty code would run on; an error of the
///           system's where it gives no descriptor; and std::bad_alloc.
/// Threads   any thread may wait, one task at a time. Move or destroy it only while nobody waits.
/// Lifetime  the runtime in which it was made outlives it.
/// Cost      a descriptor, and six system calls for the construction and the destruction; three more for each signal.
class [[nodiscard("it hears signals as long as it lives")]] signals {
 public:
  signals(std::initializer_list<int> numbers);  ///< such as {SIGINT, SIGTERM}; repeated numbers count once
  signals(signals&& other) noexcept : watch_{std::move(other.watch_)}, at_{std::exchange(other.at_, nullptr)} {}
  signals& operator=(signals&& other) noexcept {
    watch_ = std::move(other.watch_);
    at_ = std::exchange(other.at_, nullptr);
    return *this;
  }
  ~signals() = default;

  /// Waits for the next signal and gives its number. If several have come, they are given in the order of the constructor's
  /// list. May be a case of a select.
  ///
  /// Suspends  where none has come.
  /// Cancel    a stopped call has taken no signal.
  /// Misuse    two tasks that wait at once end the program with a sentence.
  detail::operation<detail::awaiting_signal> next() const noexcept {
    return detail::awaiting_signal{watch_.get(), at_};
  }

 private:
  friend task<int> interrupted();
  signals(std::initializer_list<int> numbers, bool are_for_once);

  std::unique_ptr<detail::signal_watch, detail::delete_signal_watch> watch_;
  detail::descriptor* at_ = nullptr;  // the watch's
};

/// Waits for SIGINT (Ctrl-C) or SIGTERM, and gives the signal's number. Any number of tasks may wait at once: all are woken.
///
/// The first signal restores that signal's default action. So a second Ctrl-C ends a program that does not end by itself,
/// unless a `signals` for SIGINT exists.
///
/// Suspends  always, until a signal comes while it is awaited.
/// Cancel    ends the wait.
/// Fails     as the constructor of `signals`.
/// Note      afterwards a handler that the program had installed is in force again.
task<int> interrupted();

}  // namespace weft
