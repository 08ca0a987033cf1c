// 4 KiB at random, into the page cache.
#include "client.hpp"

void bench::run(state& state) { run_writes(state, 4096, "cached", 50'000); }
