#include "workload.hpp"

#include "../harness/harness.hpp"

#include <coro/sync_wait.hpp>
#include <coro/task.hpp>
#include <coro/thread_pool.hpp>
#include <coro/when_all.hpp>
#include <vector>

namespace {

coro::task<std::size_t> hop(coro::thread_pool& one, coro::thread_pool& other) {
  co_await one.schedule();
  for (std::size_t i = 0; i != bench::hop_rounds; ++i) {
    co_await other.schedule();
    co_await one.schedule();
  }
  co_return bench::hop_rounds;
}

}  // namespace

void bench::run(bench::state& state) {
  const auto one = coro::thread_pool::make_unique({.thread_count = 1});
  const auto other = coro::thread_pool::make_unique({.thread_count = 1});
  const std::size_t hops = hop_tasks * hop_rounds;
  state.measure(hops, hops, [&] {
    std::vector<coro::task<std::size_t>> all;
    for (std::size_t i = 0; i != hop_tasks; ++i) all.push_back(hop(*one, *other));
    const auto ended = coro::sync_wait(coro::when_all(std::move(all)));
    std::size_t sum = 0;
    for (const auto& each : ended) sum += each.return_value();
    return sum;
  });
}
