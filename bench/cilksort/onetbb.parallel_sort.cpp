// Its own sort, a quicksort in place.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <tbb/global_control.h>
#include <tbb/parallel_sort.h>
#include <tbb/task_arena.h>

void bench::run(bench::state& state) {
  const tbb::global_control limit{tbb::global_control::max_allowed_parallelism, state.size()};
  tbb::task_arena arena{static_cast<int>(state.size())};
  state.measure(sorted_numbers, true, unsorted, [&](sort_input& all) {
    arena.execute([&] { tbb::parallel_sort(all.values.begin(), all.values.end()); });
    return std::is_sorted(all.values.begin(), all.values.end());
  });
}
