// A child of process_test: says "ready", and at SIGTERM how often SIGRTMIN had been sent to it. One of these is not lost where
// another one is pending, as a SIGTERM would be. With an argument it leaves its process group first.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>

int main(int argc, char**) {
  if (argc > 1) {
    // The leader of a session can't leave its group, and one of a group only for another group of its session.
    ::setpgid(0, ::getpgid(::getppid()));
  }
  sigset_t awaited;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGRTMIN);
  sigaddset(&awaited, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &awaited, nullptr);
  std::puts("ready");
  std::fflush(stdout);
  sigset_t end;
  sigemptyset(&end);
  sigaddset(&end, SIGTERM);
  ::sigwaitinfo(&end, nullptr);
  sigdelset(&awaited, SIGTERM);
  int count = 0;
  const std::timespec at_once{};
  while (::sigtimedwait(&awaited, nullptr, &at_once) > 0) ++count;
  std::printf("%d\n", count);
  return 0;
}
