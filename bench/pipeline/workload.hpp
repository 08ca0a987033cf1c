// pipeline: eight pipelines side by side on a pool, through each of which 1000 items go, one after the other; a stage
// adds one and awaits the next stage. The program of Coflux's BM_PipelineThroughput, by which its report gives 5 and 20
// stages.
#pragma once

#include "../harness/harness.hpp"

#include <cstddef>

namespace bench {

inline constexpr std::size_t pipelines = 8;
inline constexpr std::size_t items_a_pipeline = 1000;

/// What comes out last of all pipelines, summed up; the n-th is given n, n + 1, …
constexpr long last_items(long stages) {
  long sum = 0;
  for (std::size_t n = 0; n != pipelines; ++n) sum += static_cast<long>(n + items_a_pipeline - 1) + stages;
  return sum;
}

}  // namespace bench
