#include "workload.hpp"

#include "../generator/workload.hpp"  // sum_of
#include "../harness/harness.hpp"

#include <cppcoro/recursive_generator.hpp>
#include <utility>

void bench::run(bench::state& state) {
  constexpr auto nested = [](auto&& tree) -> auto&& { return std::forward<decltype(tree)>(tree); };
  state.measure(tree_values, tree_result,
                [&] { return sum_of(walk<cppcoro::recursive_generator>(1, tree_depth, nested)); });
}
