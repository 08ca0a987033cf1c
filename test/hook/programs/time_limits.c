#include <poll.h>
#include <sys/time.h>
#include <time.h>

#include "programs.h"

static long milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void told(FILE* out, const char* what, long result, long begun, long least) {
  const char* const why = result < 0 ? strerror(errno) : "";
  fprintf(out, "%s %ld %s%s\n", what, result, why, milliseconds() - begun < least ? ", too early" : "");
}

void program_time_limits(FILE* out) {
  int ends[2];
  char got;
  NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
  const struct timeval limit = {0, 8000};
  NEED(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
  NEED(setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit));
  long begun = milliseconds();
  told(out, "read", read(ends[0], &got, 1), begun, 7);
  begun = milliseconds();
  told(out, "recv", recv(ends[0], &got, 1, MSG_WAITALL), begun, 7);
  begun = milliseconds();
  char block[4096];
  memset(block, 0, sizeof block);
  while (send(ends[0], block, sizeof block, 0) > 0) continue;
  told(out, "send", send(ends[0], block, sizeof block, 0), begun, 15);
  begun = milliseconds();
  struct pollfd one = {.fd = ends[0], .events = POLLIN};
  told(out, "poll", poll(&one, 1, 5), begun, 5);
  begun = milliseconds();
  told(out, "nothing", poll(NULL, 0, 5), begun, 5);
  close(ends[0]);
  close(ends[1]);
}
