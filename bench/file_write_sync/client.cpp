// 4 KiB at random, each of which is on the disk (fdatasync) before it counts. By the programs of file_write.
#include "../file_write/client.hpp"

void bench::run(state& state) { run_writes(state, 4096, "sync", 500); }
