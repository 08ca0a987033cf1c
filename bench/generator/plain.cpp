// The limit: a loop.
#include "workload.hpp"

#include "../harness/harness.hpp"

void bench::run(bench::state& state) {
  state.measure(generator_values, generator_result, [] {
    std::uint64_t sum = 0;
    for (std::uint64_t value = 0; value != generator_values; ++value) {
      keep(value);
      sum += value;
    }
    return sum;
  });
}
