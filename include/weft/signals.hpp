// Signals of the system, for tasks, fibers and threads that wait for them: Ctrl-C, SIGTERM, SIGHUP.
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
// While somebody waits for a signal, or has a `signals` for it, weft has a handler installed for it. The handler counts the
// signal and writes to an eventfd, and does nothing else: what a program does about a signal it does in its tasks. The
// handler of before is back when the last one who hears that signal has gone, unless the program has installed yet another
// one meanwhile: that stays. No signal is blocked for it. A child process begins with the mask of the thread that starts it: on
// a worker of weft's with all signals blocked, see the book. One that is forked and goes on as the same program has the handler,
// too, which does nothing there until the child hears signals itself.
//
// Two copies of weft in one process, as in plugins, know nothing of each other. Where both hear the same signal, the one that
// was first stays loaded until the other one no longer does: the handler of before, which that one brings back, is the first
// one's code.
//
// The system gives a signal of the process to any of its threads that does not block it. weft's own threads block all of
// them; so a program leaves those that it waits for unblocked in one of its threads, as main() is.
//
// Under the thread sanitizer a signal waits until the thread that has got it calls a function that the sanitizer knows; one that
// sleeps in weft does not.
//
// Rejected: (a) signalfd: the signal would have to be blocked in all threads, also those of other libraries, and child
// processes would begin with it blocked. (b) A thread in sigwait: the same.
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

/// Hears signals from its construction to its destruction, one after the other, so that none is missed between two waits.
///
/// Several may hear the same signal; each is given all of them. A number that is named twice counts once. A signal that comes
/// again before the last one was taken counts once, as in the system itself. While there is one for SIGINT, that signal ends
/// the program only if the program says so.
///
/// Fails     the constructor throws error: invalid_argument for what is no signal, for SIGKILL and SIGSTOP, which nobody can
///           hear, and for SIGSEGV, SIGBUS, SIGFPE and SIGILL, behind which the faulty code would go on; or where the system
///           gives no descriptor. And std::bad_alloc.
/// Threads   any; one task at a time waits. Moves and destruction are for when nobody does.
/// Lifetime  the runtime in which it was made outlives it, as it does a stream.
/// Cost      a descriptor, and six system calls for the construction and the destruction; three more a signal.
class [[nodiscard("it hears signals as long as it lives")]] signals {
 public:
  signals(std::initializer_list<int> numbers);  ///< such as {SIGINT, SIGTERM}
  signals(signals&& other) noexcept : watch_{std::move(other.watch_)}, at_{std::exchange(other.at_, nullptr)} {}
  signals& operator=(signals&& other) noexcept {
    watch_ = std::move(other.watch_);
    at_ = std::exchange(other.at_, nullptr);
    return *this;
  }
  ~signals() = default;

  /// The number of the next signal; where several have come, in the order of the constructor's list. A case of a select, too.
  ///
  /// Suspends  where none has come.
  /// Cancel    has taken none.
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

/// Completes when SIGINT (Ctrl-C) or SIGTERM comes, and gives its number. Any number may wait at once: each is told.
///
/// With the first of either, that signal's default action is back. So a second Ctrl-C ends a program that does not end by
/// itself, unless a `signals` for SIGINT lives.
///
/// Suspends  until then.
/// Cancel    as any wait.
/// Fails     as the constructor of `signals`.
/// Note      only what comes while it is awaited counts. A handler of the program's own is in force again behind it.
task<int> interrupted();

}  // namespace weft
