#include "workload.hpp"

#include "../harness/harness.hpp"

#include <cppcoro/generator.hpp>

void bench::run(bench::state& state) {
  state.measure(generator_values, generator_result,
                [] { return sum_of(count_up<cppcoro::generator>(generator_values)); });
}
