#include "programs.h"

/* A child that echoes each message in capitals. */
void program_echo_pair(FILE* out) {
  int ends[2];
  NEED(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends));
  const pid_t child = fork_with(ends[1], ends[1]);
  if (child == 0) {
    char got[16];
    for (ssize_t size; (size = read(ends[1], got, sizeof got)) > 0;) {
      for (ssize_t i = 0; i != size; ++i)
        if (got[i] >= 'a') got[i] -= 'a' - 'A';
      NEED(write(ends[1], got, (size_t)size));
    }
    _exit(3);
  }
  close(ends[1]);
  const char* const words[] = {"one", "two", "three"};
  for (int i = 0; i != 3; ++i) {
    char got[16] = "";
    write_all(ends[0], words[i]);
    const ssize_t size = read(ends[0], got, sizeof got - 1);
    fprintf(out, "%zd %s\n", size, got);
  }
  close(ends[0]);
  fprintf(out, "child %d\n", status_of(child));
}
