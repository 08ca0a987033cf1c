#include "workload.hpp"

#include "../harness/harness.hpp"

#include <folly/coro/Generator.h>

void bench::run(bench::state& state) {
  state.measure(generator_values, generator_result,
                [] { return sum_of(count_up<folly::coro::Generator>(generator_values)); });
}
