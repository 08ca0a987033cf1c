// A loop, on one thread, however many there are.
#include "workload.hpp"

#include "../harness/harness.hpp"

void bench::run(bench::state& state) {
  measure_loops(
      state,
      [](numbers& all) {
        for (std::uint32_t& each : all) hash_it(each);
      },
      [](const numbers& all) {
        std::uint64_t sum = 0;
        for (const std::uint32_t each : all) sum += hash_of(each);
        return sum;
      });
}
