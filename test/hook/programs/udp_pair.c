#include <netinet/in.h>

#include "programs.h"

void program_udp_pair(FILE* out) {
  int both[2];
  struct sockaddr_in where[2];
  for (int i = 0; i != 2; ++i) {
    both[i] = socket(AF_INET, SOCK_DGRAM, 0);
    where[i] = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof where[i];
    NEED(bind(both[i], (struct sockaddr*)&where[i], size));
    NEED(getsockname(both[i], (struct sockaddr*)&where[i], &size));
  }
  for (int i = 0; i != 3; ++i) {
    char text[16], got[16] = "";
    snprintf(text, sizeof text, "number %d", i);
    NEED(sendto(both[i % 2], text, strlen(text), 0, (struct sockaddr*)&where[1 - i % 2], sizeof where[0]));
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    const ssize_t came = recvfrom(both[1 - i % 2], got, 6 + 4 * (size_t)(i % 2), 0, (struct sockaddr*)&from, &size);
    fprintf(out, "%zd %s %d\n", came, got, from.sin_port == where[i % 2].sin_port);
  }
  NEED(connect(both[0], (struct sockaddr*)&where[1], sizeof where[1]));
  NEED(send(both[0], "", 0, 0));
  char byte;
  fprintf(out, "empty %zd\n", recv(both[1], &byte, 1, 0));
  close(both[0]);
  close(both[1]);
}
