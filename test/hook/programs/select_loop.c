#include <sys/select.h>

#include "programs.h"

void program_select_loop(FILE* out) {
  int ends[2];
  NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
  const pid_t child = fork_with(ends[1], ends[1]);
  if (child == 0) {
    char got;
    while (read(ends[1], &got, 1) == 1 && got != '.') NEED(write(ends[1], "pong", 4));
    _exit(1);
  }
  close(ends[1]);
  for (int turn = 0; turn != 3; ++turn) {
    write_all(ends[0], "p");
    fd_set in, room;
    FD_ZERO(&in);
    FD_ZERO(&room);
    FD_SET(ends[0], &in);
    const int ready = select(ends[0] + 1, &in, &room, NULL, NULL);
    char got[8] = "";
    NEED(recv(ends[0], got, 4, MSG_WAITALL));
    fprintf(out, "%d %d %s\n", ready, FD_ISSET(ends[0], &in) != 0, got);
    FD_ZERO(&in);
    FD_SET(ends[0], &in);
    FD_SET(ends[0], &room);
    struct timeval limit = {1, 0};
    const int writable = select(ends[0] + 1, &in, &room, NULL, &limit);
    fprintf(out, "%d %d %d\n", writable, FD_ISSET(ends[0], &in) != 0, FD_ISSET(ends[0], &room) != 0);
  }
  fd_set in;
  FD_ZERO(&in);
  FD_SET(ends[0], &in);
  struct timeval limit = {0, 2000};
  fprintf(out, "%d in time\n", select(ends[0] + 1, &in, NULL, NULL, &limit));
  write_all(ends[0], ".");
  FD_SET(ends[0], &in);
  const int ended = select(ends[0] + 1, &in, NULL, NULL, NULL);
  fprintf(out, "end %d, child %d\n", ended, status_of(child));
  close(ends[0]);
}
