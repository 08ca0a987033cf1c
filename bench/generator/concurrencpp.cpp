#include "workload.hpp"

#include "../harness/harness.hpp"

#include <concurrencpp/concurrencpp.h>

void bench::run(bench::state& state) {
  state.measure(generator_values, generator_result,
                [] { return sum_of(count_up<concurrencpp::generator>(generator_values)); });
}
