// The signals of threads that the library makes: those of the process are for the program's own threads, which know what to
// do. What a thread brings upon itself is its own: blocked, a fault would end the program past whoever handles it, also past
// the sentence about a stack that ran over. SIGPROF is sent to whoever uses the processor, and is how profilers find out.
#pragma once

#include <signal.h>

namespace weft::detail {

/// While it lives, threads that this one makes begin with the signals of the process blocked.
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
