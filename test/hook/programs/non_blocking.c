#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>

#include "programs.h"

void program_non_blocking(FILE* out) {
  int ends[2];
  char got[4];
  NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
  const int on = 1, off = 0;
  NEED(ioctl(ends[0], FIONBIO, &on));
  fprintf(out, "flag %d\n", (fcntl(ends[0], F_GETFL) & O_NONBLOCK) != 0);
  const pid_t child = fork_with(ends[1], ends[1]);
  if (child == 0) {
    char what;
    NEED(read(ends[1], &what, 1));
    write_all(ends[1], "abcdef");
    _exit(0);
  }
  close(ends[1]);
  ssize_t size = read(ends[0], got, sizeof got);
  fprintf(out, "%zd %s\n", size, strerror(errno));
  NEED(write(ends[0], "x", 1));
  struct pollfd one = {.fd = ends[0], .events = POLLIN};
  int letters = 0;
  for (;;) {
    size = read(ends[0], got, sizeof got);
    if (size == 0) break;
    if (size > 0) letters += (int)size;
    if (size < 0 && errno == EAGAIN) NEED(poll(&one, 1, -1));
  }
  fprintf(out, "%d letters, child %d\n", letters, status_of(child));
  NEED(ioctl(ends[0], FIONBIO, &off));
  fprintf(out, "flag %d\n", (fcntl(ends[0], F_GETFL) & O_NONBLOCK) != 0);
  close(ends[0]);
}
