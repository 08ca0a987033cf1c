#include "programs.h"

enum { size = 3 << 20 };

static unsigned sum_of(const unsigned char* data, size_t count, unsigned sum) {
  for (size_t i = 0; i != count; ++i) sum = sum * 31 + data[i];
  return sum;
}

/* There and back through a child that has a small buffer. */
void program_big_transfer(FILE* out) {
  int there[2], back[2];
  NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, there));
  NEED(pipe(back));
  const pid_t child = fork_with(there[1], back[1]);
  if (child == 0) {
    static unsigned char some[10000];
    unsigned sum = 0;
    for (ssize_t more; (more = read(there[1], some, sizeof some)) > 0;) sum = sum_of(some, (size_t)more, sum);
    NEED(write(back[1], &sum, sizeof sum));
    _exit(0);
  }
  close(there[1]);
  close(back[1]);
  unsigned char* const data = malloc(size);
  for (int i = 0; i != size; ++i) data[i] = (unsigned char)(i * 7 + i / 251);
  const ssize_t wrote = write(there[0], data, size / 2), sent = send(there[0], data + size / 2, size - size / 2, 0);
  close(there[0]);
  unsigned sum = 0;
  NEED(read(back[0], &sum, sizeof sum));
  fprintf(out, "%zd %zd %d\n", wrote, sent, sum == sum_of(data, size, 0));
  free(data);
  close(back[0]);
  fprintf(out, "child %d\n", status_of(child));
}
