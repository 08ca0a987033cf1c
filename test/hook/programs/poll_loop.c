#include <poll.h>

#include "programs.h"

/* Three pipes; what is read from one is what has the child write to the next. */
void program_poll_loop(FILE* out) {
  int pipes[3][2], ask[2];
  pid_t children[3];
  for (int i = 0; i != 3; ++i) {
    NEED(pipe(pipes[i]));
    NEED(pipe(ask));
    children[i] = fork_with(ask[0], pipes[i][1]);
    if (children[i] == 0) {
      char what;
      while (read(ask[0], &what, 1) == 1) NEED(write(pipes[i][1], &what, 1));
      _exit(0);
    }
    close(ask[0]);
    close(pipes[i][1]);
    pipes[i][1] = ask[1];
  }
  struct pollfd those[3];
  for (int i = 0; i != 3; ++i) those[i] = (struct pollfd){.fd = pipes[i][0], .events = POLLIN};
  for (int turn = 0; turn != 6; ++turn) {
    const char letter = (char)('a' + turn);
    NEED(write(pipes[turn % 3][1], &letter, 1));
    const int ready = poll(those, 3, -1);
    for (int i = 0; i != 3; ++i)
      if (those[i].revents != 0) {
        char got = 0;
        NEED(read(those[i].fd, &got, 1));
        fprintf(out, "%d: %d gives %c, %hx\n", ready, i, got, those[i].revents);
      }
  }
  fprintf(out, "%d in time\n", poll(those, 3, 3));
  for (int i = 0; i != 3; ++i) {
    close(pipes[i][1]);
    const int ready = poll(&those[i], 1, -1);
    fprintf(out, "%d: %hx\n", ready, those[i].revents);
    close(pipes[i][0]);
    fprintf(out, "child %d\n", status_of(children[i]));
  }
}
