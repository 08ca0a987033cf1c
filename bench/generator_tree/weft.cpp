#include "workload.hpp"

#include "../generator/workload.hpp"  // sum_of
#include "../harness/harness.hpp"

#include <utility>
#include <weft/generator.hpp>

template <class T>
using generator = weft::generator<T>;

void bench::run(bench::state& state) {
  constexpr auto nested = [](auto&& tree) { return weft::elements_of(std::forward<decltype(tree)>(tree)); };
  state.measure(tree_values, tree_result, [&] { return sum_of(walk<::generator>(1, tree_depth, nested)); });
}
