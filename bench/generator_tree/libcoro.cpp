// These generators don't nest: each level passes on the values of the levels below.
#include "workload.hpp"

#include "../generator/workload.hpp"  // sum_of
#include "../harness/harness.hpp"

#include <coro/generator.hpp>

void bench::run(bench::state& state) {
  state.measure(tree_values, tree_result, [] { return sum_of(walk_by_hand<coro::generator>(1, tree_depth)); });
}
