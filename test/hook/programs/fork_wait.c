#include <signal.h>

#include "programs.h"

void program_fork_wait(FILE* out) {
  int ends[2];
  NEED(pipe(ends));
  pid_t children[4];
  for (int i = 0; i != 4; ++i) {
    children[i] = fork_with(ends[1], ends[1]);
    if (children[i] != 0) continue;
    usleep(1000);
    if (i == 3) raise(SIGKILL);
    NEED(write(ends[1], "c", 1));
    _exit(10 + i);
  }
  close(ends[1]);
  char got;
  int count = 0;
  while (read(ends[0], &got, 1) == 1) ++count;
  close(ends[0]);
  fprintf(out, "%d wrote\n", count);
  for (int i = 0; i != 4; ++i) fprintf(out, "child %d\n", status_of(children[i]));
}
