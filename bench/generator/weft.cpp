#include "workload.hpp"

#include "../harness/harness.hpp"

#include <weft/generator.hpp>

template <class T>
using generator = weft::generator<T>;

void bench::run(bench::state& state) {
  state.measure(generator_values, generator_result, [] { return sum_of(count_up<::generator>(generator_values)); });
}
