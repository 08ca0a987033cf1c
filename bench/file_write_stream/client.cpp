// 1 MiB, one behind the other, into the page cache. By the programs of file_write.
#include "../file_write/client.hpp"

void bench::run(state& state) { run_writes(state, std::size_t{1} << 20, "stream", 500); }
