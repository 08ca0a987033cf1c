// The limit of io_uring: see ring_echo.hpp.
#include <netinet/in.h>

#include "ring_echo.hpp"

int main() { bench::ring_echo{sizeof(sockaddr_in)}.run(); }
