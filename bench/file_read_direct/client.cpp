// 4 KiB at random, from the disk (O_DIRECT). By the programs of file_read.
#include "../file_read/client.hpp"

void bench::run(state& state) { run_reads(state, 4096, "direct", 5'000); }
