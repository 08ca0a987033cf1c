// The signal that asks for a dump. Its handler does no more than to write to an eventfd, which wakes the observer's thread.
#pragma once

namespace weft::detail {

/// One that is heard, as long as this lives; one at a time in a process.
class dump_signal {
 public:
  /// Installs the handler. Throws error, also where another observer has a signal.
  explicit dump_signal(int number);
  dump_signal(const dump_signal&) = delete;
  /// Sets the action back that the signal had, unless the program has set another one since.
  ~dump_signal();

  /// The eventfd, which stays for ever: a handler may be at it whenever. Watched edge-triggered, and never read.
  int number() const noexcept { return event_; }

 private:
  int signal_, event_;
};

// Around a fork. The child's signals ask for nothing, and above all not for its parent's dump.
void hold_dump_signal() noexcept;
void let_go_dump_signal() noexcept;
void forget_dump_signal() noexcept;

}  // namespace weft::detail
