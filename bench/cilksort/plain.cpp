// std::sort, on one thread, however many there are.
#include "workload.hpp"

#include "../harness/harness.hpp"

void bench::run(bench::state& state) {
  state.measure(sorted_numbers, true, unsorted, [&](sort_input& all) {
    std::sort(all.values.begin(), all.values.end());
    return std::is_sorted(all.values.begin(), all.values.end());
  });
}
