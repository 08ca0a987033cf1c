#include <fcntl.h>

#include "programs.h"

static void told(FILE* out, const char* what, ssize_t result) {
  fprintf(out, "%s %zd %s\n", what, result, result < 0 ? strerror(errno) : "");
}

void program_close_games(FILE* out) {
  int ends[2];
  char got[8] = "";
  NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
  NEED(write(ends[1], "left", 4));
  NEED(close(ends[1]));
  told(out, "read what is left", read(ends[0], got, sizeof got));
  told(out, "read the end", read(ends[0], got, sizeof got));
  told(out, "send to nobody", send(ends[0], "x", 1, MSG_NOSIGNAL));
  NEED(close(ends[0]));
  told(out, "close none", close(-1));
  told(out, "read none", read(-1, got, 1));
  told(out, "write none", write(-1, got, 1));

  NEED(pipe(ends));
  told(out, "write to the reading end", write(ends[0], "x", 1));
  told(out, "read from the writing end", read(ends[1], got, 1));
  told(out, "no bytes", read(ends[0], got, 0));
  told(out, "send to a pipe", send(ends[1], "x", 1, 0));
  NEED(close(ends[1]));
  told(out, "end of a pipe", read(ends[0], got, 1));
  NEED(close(ends[0]));

  const int null = open("/dev/null", O_RDWR);
  told(out, "null", write(null, "abc", 3));
  told(out, "null", read(null, got, 1));
  close(null);
}
