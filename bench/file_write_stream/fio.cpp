#include "../file_read/fio.hpp"

void bench::run(state& state) { run_fio(state, std::size_t{1} << 20, "write"); }
