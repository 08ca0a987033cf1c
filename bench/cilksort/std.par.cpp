// The standard's parallel sort, which libstdc++ runs on oneTBB.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <algorithm>
#include <execution>

void bench::run(bench::state& state) {
  const tbb::global_control limit{tbb::global_control::max_allowed_parallelism, state.size()};
  tbb::task_arena arena{static_cast<int>(state.size())};
  state.measure(sorted_numbers, true, unsorted, [&](sort_input& all) {
    arena.execute([&] { std::sort(std::execution::par, all.values.begin(), all.values.end()); });
    return std::is_sorted(all.values.begin(), all.values.end());
  });
}
