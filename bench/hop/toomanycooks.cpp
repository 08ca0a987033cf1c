#include "workload.hpp"

#include "../harness/harness.hpp"

#define TMC_PRIORITY_COUNT 1
#define TMC_TRIVIAL_TASK
#define TMC_IMPL
#include <numeric>
#include <tmc/all_headers.hpp>
#include <vector>

namespace {

tmc::task<std::size_t> hop(tmc::ex_cpu& one, tmc::ex_cpu& other) {
  for (std::size_t i = 0; i != bench::hop_rounds; ++i) {
    co_await tmc::resume_on(other);
    co_await tmc::resume_on(one);
  }
  co_return bench::hop_rounds;
}

tmc::task<std::size_t> all(tmc::ex_cpu& one, tmc::ex_cpu& other) {
  std::vector<tmc::task<std::size_t>> tasks;
  for (std::size_t i = 0; i != bench::hop_tasks; ++i) tasks.push_back(hop(one, other));
  const auto each = co_await tmc::spawn_many(tasks.begin(), tasks.end());
  co_return std::accumulate(each.begin(), each.end(), std::size_t{0});
}

}  // namespace

void bench::run(bench::state& state) {
  tmc::ex_cpu one, other;
  one.set_thread_count(1).init();
  other.set_thread_count(1).init();
  const std::size_t hops = hop_tasks * hop_rounds;
  state.measure(hops, hops, [&] { return tmc::post_waitable(one, all(one, other), 0).get(); });
}
