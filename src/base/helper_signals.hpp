// Which signals threads of the library block: those sent to the process, which are for the program's own threads. Signals
// that a thread causes itself stay unblocked: a blocked fault would end the program without calling its handlers, among
// them the one that reports an overflow of a stack. So does SIGPROF, by which profilers sample the threads that use a
// processor.
#pragma once

#include <signal.h>

namespace weft::detail {

/// While it lives, threads that this one makes begin with those signals blocked.
class helper_signals {
 public:
  helper_signals() noexcept {
    sigset_t of_the_process;
    sigfillset(&of_the_process);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF})
      sigdelset(&of_the_process, own);
    ::pthread_sigmask(SIG_BLOCK, &of_the_process, &before_);
  }
  helper_signals(const helper_signals&) = delete;
  ~helper_signals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace weft::detail
