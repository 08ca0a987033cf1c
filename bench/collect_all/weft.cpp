#include "workload.hpp"

#include "../harness/harness.hpp"

#include <numeric>
#include <weft/combine.hpp>
#include <weft/task.hpp>

namespace {

weft::task<long> collect() {
  const std::vector<int> values = co_await weft::when_all(bench::make_chains<weft::task>());
  co_return std::accumulate(values.begin(), values.end(), 0L);
}

}  // namespace

void bench::run(bench::state& state) {
  state.measure(1, collect_all_result, [] { return weft::sync_wait(collect()); });
}
