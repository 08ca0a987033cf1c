#include <sys/uio.h>

#include "programs.h"

void program_vectored(FILE* out) {
  for (int kind = 0; kind != 2; ++kind) {
    int ends[2];
    if (kind == 0)
      NEED(pipe(ends));
    else
      NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    const pid_t child = fork_with(ends[1], ends[1]);
    if (child == 0) {
      char a[] = "first", b[] = "", c[] = "second";
      const struct iovec parts[] = {{a, 5}, {b, 0}, {c, 6}};
      usleep(500);
      _exit((int)writev(ends[1], parts, 3));
    }
    close(ends[1]);
    char got[3][5];
    memset(got, 0, sizeof got);
    const struct iovec into[] = {{got[0], 2}, {got[1], 4}, {got[2], 4}};
    ssize_t size = readv(ends[0], into, 3);
    fprintf(out, "%zd %s %s %s\n", size, got[0], got[1], got[2]);
    size = readv(ends[0], into, 1);
    fprintf(out, "%zd %.1s\n", size, got[0]);
    fprintf(out, "%zd, child %d\n", readv(ends[0], into, 1), status_of(child));
    size = readv(ends[0], into, 0);
    fprintf(out, "%zd\n", size);
    close(ends[0]);
  }
}
