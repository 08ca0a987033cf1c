#include <sys/epoll.h>

#include "programs.h"

void program_epoll_loop(FILE* out) {
  int ends[2];
  NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
  const pid_t child = fork_with(ends[1], ends[1]);
  if (child == 0) {
    char got;
    while (read(ends[1], &got, 1) == 1) NEED(write(ends[1], &got, 1));
    _exit(0);
  }
  close(ends[1]);
  const int set = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event each = {.events = EPOLLIN | EPOLLRDHUP, .data = {.u32 = 11}}, got[4];
  NEED(epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &each));
  for (int i = 0; i != 3; ++i) {
    const char letter = (char)('a' + i);
    NEED(write(ends[0], &letter, 1));
    const int ready = epoll_wait(set, got, 4, -1);
    char what;
    NEED(read(ends[0], &what, 1));
    fprintf(out, "%d %u %x %c\n", ready, got[0].data.u32, got[0].events, what);
  }
  fprintf(out, "%d in time\n", epoll_wait(set, got, 4, 3));
  shutdown(ends[0], SHUT_WR);
  const int status = status_of(child);
  const int ready = epoll_wait(set, got, 4, -1);
  fprintf(out, "%d %x, child %d\n", ready, got[0].events, status);
  close(set);
  close(ends[0]);
}
