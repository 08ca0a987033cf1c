#include <arpa/inet.h>
#include <netdb.h>

#include "programs.h"

static void look_up(FILE* out, const char* host, const char* service, const struct addrinfo* hints) {
  struct addrinfo* list = NULL;
  const int failed = getaddrinfo(host, service, hints, &list);
  fprintf(out, "%s %s: %s\n", host ? host : "-", service ? service : "-", failed ? gai_strerror(failed) : "found");
  if (failed) return;
  for (const struct addrinfo* one = list; one; one = one->ai_next) {
    char text[64] = "", port[16] = "";
    getnameinfo(one->ai_addr, one->ai_addrlen, text, sizeof text, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
    fprintf(out, "  %d %d %s %s %s\n", one->ai_family, one->ai_socktype, text, port,
            one->ai_canonname ? one->ai_canonname : "-");
  }
  freeaddrinfo(list);
}

void program_names(FILE* out) {
  const struct addrinfo stream = {.ai_socktype = SOCK_STREAM}, v4 = {.ai_family = AF_INET, .ai_flags = AI_CANONNAME},
                        number = {.ai_flags = AI_NUMERICHOST}, wrong = {.ai_family = 77};
  look_up(out, "localhost", "80", &stream);
  look_up(out, "localhost", NULL, &v4);
  look_up(out, "127.0.0.1", "443", &stream);
  look_up(out, "::1", NULL, &number);
  look_up(out, "localhost", NULL, &number);
  look_up(out, NULL, "25", &stream);
  look_up(out, "localhost", NULL, &wrong);
  look_up(out, "localhost", "no-such-service", &stream);
}
