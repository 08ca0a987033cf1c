#include <fcntl.h>

#include "programs.h"

static void told(FILE* out, const char* what, long result) {
  fprintf(out, "%s %ld %s\n", what, result, result < 0 ? strerror(errno) : "");
}

void program_dup_games(FILE* out) {
  int ends[2], other[2];
  char got[8] = "";
  NEED(pipe(ends));
  NEED(pipe(other));
  const int twin = dup(ends[1]), third = fcntl(ends[1], F_DUPFD, 100), fourth = fcntl(ends[1], F_DUPFD_CLOEXEC, 0);
  NEED(close(ends[1]));
  told(out, "twin", write(twin, "a", 1));
  told(out, "third", write(third, "b", 1));
  told(out, "fourth", write(fourth, "c", 1));
  told(out, "read", read(ends[0], got, sizeof got));
  fprintf(out, "%s, %d\n", got, fcntl(fourth, F_GETFD));
  told(out, "dup2 onto another", dup2(other[0], ends[0]) == ends[0]);
  NEED(write(other[1], "other", 5));
  told(out, "read", read(ends[0], got, sizeof got));
  told(out, "dup2 onto itself", dup2(ends[0], ends[0]) == ends[0]);
  told(out, "dup3 onto itself", dup3(ends[0], ends[0], 0));
  told(out, "dup of none", dup(-1));
  told(out, "dup2 of none", dup2(-1, ends[0]));
  close(twin), close(third), close(fourth), close(ends[0]), close(other[0]), close(other[1]);
}
