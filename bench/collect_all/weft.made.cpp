// Each chain is made when it begins, as libfork has it, and not all of them before.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <numeric>
#include <weft/combine.hpp>
#include <weft/task.hpp>

namespace {

weft::task<long> collect() {
  const auto make = [](std::size_t) { return bench::lazy_fn<weft::task, bench::collect_all_levels>(); };
  const std::vector<int> values = co_await weft::when_all(bench::collect_all_tasks, make);
  co_return std::accumulate(values.begin(), values.end(), 0L);
}

}  // namespace

void bench::run(bench::state& state) {
  state.measure(1, collect_all_result, [] { return weft::sync_wait(collect()); });
}
