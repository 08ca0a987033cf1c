#include "../file_read/fio.hpp"

// Each write is on the disk when it has returned (O_DSYNC), which is what a write and a fdatasync come to.
void bench::run(state& state) { run_fio(state, 4096, "randwrite", {"--sync=dsync"}); }
