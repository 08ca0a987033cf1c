// collect_all: 5000 chains of 50 awaits, started together and joined. One item is the whole of it.
//
// The second program of async_simple's performance report. Each library joins with the call that the report uses for
// it, or the nearest one it has; the sum of the results is checked.
#pragma once

#include "../chain/workload.hpp"

#include <cstddef>
#include <vector>

namespace bench {

inline constexpr std::size_t collect_all_tasks = 5000;
inline constexpr int collect_all_levels = 50;
inline constexpr long collect_all_result = 5000L * 1276;  // each chain gives 1 + 1 + 2 + … + 50

/// The tasks to join, not started yet where the library is lazy.
template <template <class> class Task>
std::vector<Task<int>> make_chains() {
  std::vector<Task<int>> chains;
  for (std::size_t i = 0; i != collect_all_tasks; ++i) chains.push_back(lazy_fn<Task, collect_all_levels>());
  return chains;
}

}  // namespace bench
