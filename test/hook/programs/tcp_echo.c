#include <arpa/inet.h>
#include <netinet/in.h>

#include "programs.h"

/* A server of one connection at a time, and a child that makes three. */
void program_tcp_echo(FILE* out) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof where;
  NEED(bind(listener, (struct sockaddr*)&where, size));
  NEED(listen(listener, 4));
  NEED(getsockname(listener, (struct sockaddr*)&where, &size));
  const pid_t child = fork_with(listener, listener);
  if (child == 0) {
    int right = 0;
    for (int i = 0; i != 3; ++i) {
      const int mine = socket(AF_INET, SOCK_STREAM, 0);
      NEED(connect(mine, (struct sockaddr*)&where, sizeof where));
      char got[16] = "";
      write_all(mine, "hello");
      shutdown(mine, SHUT_WR);
      NEED(recv(mine, got, 5, MSG_WAITALL));
      right += strcmp(got, "hello") == 0;
      close(mine);
    }
    _exit(right);
  }
  for (int i = 0; i != 3; ++i) {
    struct sockaddr_in from;
    socklen_t from_size = sizeof from;
    const int peer = accept(listener, (struct sockaddr*)&from, &from_size);
    NEED(peer);
    char got[4], all[32] = "";
    for (ssize_t more; (more = read(peer, got, sizeof got)) > 0;) {
      strncat(all, got, (size_t)more);
      NEED(send(peer, got, (size_t)more, MSG_NOSIGNAL));
    }
    fprintf(out, "%s from %s\n", all, inet_ntoa(from.sin_addr));
    close(peer);
  }
  fprintf(out, "child %d\n", status_of(child));

  close(listener);

  const int nobody = socket(AF_INET, SOCK_STREAM, 0), mine = socket(AF_INET, SOCK_STREAM, 0);
  where.sin_port = 0;
  NEED(bind(nobody, (struct sockaddr*)&where, sizeof where)); /* and does not listen */
  NEED(getsockname(nobody, (struct sockaddr*)&where, &size));
  const int refused = connect(mine, (struct sockaddr*)&where, sizeof where);
  fprintf(out, "connect %d %s\n", refused, strerror(errno));
  close(mine);
  close(nobody);
}
