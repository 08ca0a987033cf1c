#include "programs.h"

void program_half_close(FILE* out) {
  int ends[2];
  char got[16] = "";
  NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
  const pid_t child = fork_with(ends[1], ends[1]);
  if (child == 0) {
    char one;
    int count = 0;
    while (read(ends[1], &one, 1) == 1) ++count;
    write_all(ends[1], count == 5 ? "five" : "other");
    _exit(0);
  }
  close(ends[1]);
  write_all(ends[0], "12345");
  NEED(shutdown(ends[0], SHUT_WR));
  NEED(recv(ends[0], got, sizeof got - 1, 0));
  const ssize_t end = recv(ends[0], got + 8, 1, 0), refused = send(ends[0], "x", 1, MSG_NOSIGNAL);
  fprintf(out, "%s %zd %zd %s, child %d\n", got, end, refused, strerror(errno), status_of(child));
  close(ends[0]);
}
