#include <sys/un.h>

#include "programs.h"

void program_unix_stream(FILE* out) {
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  struct sockaddr_un where = {.sun_family = AF_UNIX};
  NEED(bind(listener, (struct sockaddr*)&where, sizeof where.sun_family)); /* the system chooses a name */
  NEED(listen(listener, 1));
  socklen_t size = sizeof where;
  NEED(getsockname(listener, (struct sockaddr*)&where, &size));
  const pid_t child = fork_with(listener, listener);
  if (child == 0) {
    for (int i = 0; i != 5; ++i) {
      const int mine = socket(AF_UNIX, SOCK_STREAM, 0);
      NEED(connect(mine, (struct sockaddr*)&where, size));
      const char letter = (char)('a' + i);
      NEED(write(mine, &letter, 1));
      close(mine);
    }
    _exit(0);
  }
  for (int i = 0; i != 5; ++i) {
    const int peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    char got = 0, none;
    NEED(read(peer, &got, 1));
    fprintf(out, "%c %zd\n", got, read(peer, &none, 1));
    close(peer);
  }
  fprintf(out, "child %d\n", status_of(child));
  close(listener);
}
