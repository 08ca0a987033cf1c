#include "fio.hpp"

void bench::run(state& state) { run_fio(state, 4096, "randread"); }
