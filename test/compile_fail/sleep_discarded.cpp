// expect-warning: a task sleeps when it awaits this
#include <chrono>
#include <weft/clock.hpp>

void hurries() { weft::sleep_for(std::chrono::seconds{1}); }
