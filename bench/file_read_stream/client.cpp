// 1 MiB, one behind the other, from the page cache. By the programs of file_read.
#include "../file_read/client.hpp"

void bench::run(state& state) { run_reads(state, std::size_t{1} << 20, "stream", 500); }
