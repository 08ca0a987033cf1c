#include "programs.h"

void program_wait_for_all(FILE* out) {
  int ends[2];
  NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
  const pid_t child = fork_with(ends[1], ends[1]);
  if (child == 0) {
    for (int i = 0; i != 9; ++i) {
      const char letter = (char)('a' + i);
      NEED(send(ends[1], &letter, 1, 0));
      usleep(200);
    }
    _exit(0);
  }
  close(ends[1]);
  char got[16] = "";
  ssize_t size = recv(ends[0], got, 4, MSG_PEEK | MSG_WAITALL); /* a local socket does not wait for all then */
  fprintf(out, "look %d %c\n", size > 0, got[0]);
  size = recv(ends[0], got, 5, MSG_WAITALL);
  fprintf(out, "take %zd %.5s\n", size, got);
  size = recv(ends[0], got, 10, MSG_WAITALL);
  fprintf(out, "rest %zd %.4s\n", size, got);
  fprintf(out, "end %zd, child %d\n", recv(ends[0], got, 1, MSG_WAITALL), status_of(child));
  close(ends[0]);
}
