// spawn_many of ten, on the library's own pool.
#include "workload.hpp"

#include "../harness/harness.hpp"

#define TMC_PRIORITY_COUNT 1
#define TMC_TRIVIAL_TASK
#define TMC_IMPL
#include <array>
#include <numeric>
#include <tmc/all_headers.hpp>

static tmc::task<long> skynet(long number, int depth) {
  if (depth == 0) co_return number;
  std::array<tmc::task<long>, bench::skynet_width> below;
  for (std::size_t i = 0; i != below.size(); ++i) below[i] = skynet(number * 10 + static_cast<long>(i), depth - 1);
  const std::array<long, bench::skynet_width> sums = co_await tmc::spawn_many<bench::skynet_width>(below.begin());
  co_return std::accumulate(sums.begin(), sums.end(), 0L);
}

void bench::run(bench::state& state) {
  tmc::cpu_executor().set_thread_count(state.size()).init();
  state.measure(1, skynet_result,
                [&] { return tmc::post_waitable(tmc::cpu_executor(), skynet(0, skynet_depth), 0).get(); });
  tmc::cpu_executor().teardown();
}
