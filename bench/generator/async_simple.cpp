#include "workload.hpp"

#include "../harness/harness.hpp"

#include <async_simple/coro/Generator.h>

template <class T>
using generator = async_simple::coro::Generator<T>;

void bench::run(bench::state& state) {
  state.measure(generator_values, generator_result, [] { return sum_of(count_up<::generator>(generator_values)); });
}
