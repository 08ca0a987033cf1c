// A chain of a hundred levels, each of whose callees stands in another translation unit, so that nothing is elided: the
// bench workload of this name, and a tenth of its size. Compiled three times, as the bench is.
#include <weft/task.hpp>

#include "../../bench/chain_opaque/workload.hpp"

#ifdef BENCH_HALF
template struct bench::chain_half<weft::task, BENCH_HALF>;
#else
#include "measure.hpp"

int main() {
  using bench::chain_levels;
  cost::instructions("level of a chain of 100 across files", chain_levels,
                     [] { weft::sync_wait(bench::level<weft::task, chain_levels>::call()); });
}
#endif
