// Knows nothing of an observer; WEFT_OBSERVE gives it one. Uses weft, says so, and goes on until its input ends. With an argument, it
// does not use weft at all.
#include <unistd.h>

#include <cstdio>
#include <weft/task.hpp>

namespace {

weft::task<> work() { co_return; }

}  // namespace

int main(int count, char**) {
  if (count == 1) weft::sync_wait(work());
  std::puts("ready");
  std::fflush(stdout);
  char none;
  while (::read(STDIN_FILENO, &none, 1) > 0) continue;
}
