// The signal that requests a dump. Its handler only writes to an eventfd, which wakes the observer's thread.
#pragma once

namespace weft::detail {

/// Handles the signal while it lives. One at a time in a process.
class dump_signal {
 public:
  /// Installs the handler. Throws error, also if another observer has installed one.
  explicit dump_signal(int number);
  dump_signal(const dump_signal&) = delete;
  /// Restores the signal's old action, unless the program has set another one meanwhile.
  ~dump_signal();

  /// The eventfd. It is never closed, since a handler may use it at any time. It is watched edge-triggered, and not read.
  int number() const noexcept { return event_; }

 private:
  int signal_, event_;
};

// Called around a fork(). A signal in the child requests nothing, in particular not a dump of its parent.
void hold_dump_signal() noexcept;
void let_go_dump_signal() noexcept;
void forget_dump_signal() noexcept;

}  // namespace weft::detail
