#include "workload.hpp"

#include "../generator/workload.hpp"  // sum_of
#include "../harness/harness.hpp"

#include <async_simple/coro/Generator.h>
#include <utility>

template <class T>
using generator = async_simple::coro::Generator<T>;

void bench::run(bench::state& state) {
  constexpr auto nested = [](auto&& tree) {
    return async_simple::ranges::elements_of{std::forward<decltype(tree)>(tree)};
  };
  state.measure(tree_values, tree_result, [&] { return sum_of(walk<::generator>(1, tree_depth, nested)); });
}
