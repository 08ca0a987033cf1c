// forkJoin of the two.
#include "by_functions.hpp"

#include "../harness/harness.hpp"

#include <citor/thread_pool.h>

void bench::run(bench::state& state) {
  citor::ThreadPool pool{state.size()};
  const auto both = [&](const auto& f, const auto& g) { pool.forkJoin<citor::CcdLocalForkJoinHints>(f, g); };
  state.measure(sorted_numbers, true, unsorted, [&](sort_input& all) {
    sort_by(both, all.values.data(), all.room.data(), sorted_numbers, false);
    return std::is_sorted(all.values.begin(), all.values.end());
  });
}
