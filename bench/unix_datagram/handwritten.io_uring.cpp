// The limit of io_uring: see ring_echo.hpp of udp.
#include "../udp/ring_echo.hpp"

int main() { bench::ring_echo{0}.run(); }
