// parallel_invoke of the two.
#include "by_functions.hpp"

#include "../harness/harness.hpp"

#include <tbb/global_control.h>
#include <tbb/parallel_invoke.h>
#include <tbb/task_arena.h>

void bench::run(bench::state& state) {
  const tbb::global_control limit{tbb::global_control::max_allowed_parallelism, state.size()};
  tbb::task_arena arena{static_cast<int>(state.size())};
  const auto both = [](const auto& f, const auto& g) { tbb::parallel_invoke(f, g); };
  state.measure(sorted_numbers, true, unsorted, [&](sort_input& all) {
    arena.execute([&] { sort_by(both, all.values.data(), all.room.data(), sorted_numbers, false); });
    return std::is_sorted(all.values.begin(), all.values.end());
  });
}
