#include "workload.hpp"

#include "../harness/harness.hpp"

#include <cppcoro/static_thread_pool.hpp>
#include <cppcoro/sync_wait.hpp>
#include <cppcoro/task.hpp>
#include <cppcoro/when_all.hpp>
#include <numeric>
#include <vector>

namespace {

cppcoro::task<std::size_t> hop(cppcoro::static_thread_pool& one, cppcoro::static_thread_pool& other) {
  co_await one.schedule();
  for (std::size_t i = 0; i != bench::hop_rounds; ++i) {
    co_await other.schedule();
    co_await one.schedule();
  }
  co_return bench::hop_rounds;
}

}  // namespace

void bench::run(bench::state& state) {
  cppcoro::static_thread_pool one{1}, other{1};
  const std::size_t hops = hop_tasks * hop_rounds;
  state.measure(hops, hops, [&] {
    std::vector<cppcoro::task<std::size_t>> all;
    for (std::size_t i = 0; i != hop_tasks; ++i) all.push_back(hop(one, other));
    const auto each = cppcoro::sync_wait(cppcoro::when_all(std::move(all)));
    return std::accumulate(each.begin(), each.end(), std::size_t{0});
  });
}
