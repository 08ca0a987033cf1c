// 4 KiB at random, from the page cache.
#include "client.hpp"

void bench::run(state& state) { run_reads(state, 4096, "cached", 50'000); }
