#include "programs.h"

/* Through two children, each of which adds a letter to what passes. */
void program_pipe_chain(FILE* out) {
  int in[2], middle[2], end[2];
  NEED(pipe(in));
  NEED(pipe(middle));
  NEED(pipe(end));
  pid_t children[2];
  const int from[] = {in[0], middle[0]}, to[] = {middle[1], end[1]};
  for (int i = 0; i != 2; ++i) {
    children[i] = fork_with(from[i], to[i]);
    if (children[i] != 0) continue;
    char got;
    while (read(from[i], &got, 1) == 1) {
      const char both[2] = {got, (char)('x' + i)};
      NEED(write(to[i], both, 2));
    }
    _exit(i);
  }
  close(in[0]), close(middle[0]), close(middle[1]), close(end[1]);
  write_all(in[1], "abc");
  close(in[1]);
  char got[64];
  size_t size = 0;
  for (ssize_t more; (more = read(end[0], got + size, sizeof got - size)) > 0;) size += (size_t)more;
  fprintf(out, "%.*s\n", (int)size, got);
  close(end[0]);
  const int first = status_of(children[0]), second = status_of(children[1]);
  fprintf(out, "children %d %d\n", first, second);
}
