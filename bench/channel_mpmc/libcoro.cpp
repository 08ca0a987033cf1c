// ring_buffer, on a thread pool.
#include "workload.hpp"

#include <coro/ring_buffer.hpp>
#include <coro/sync_wait.hpp>
#include <coro/task.hpp>
#include <coro/thread_pool.hpp>
#include <coro/when_all.hpp>
#include <vector>

namespace {

using ring = coro::ring_buffer<std::size_t, bench::mpmc_room>;

coro::task<std::size_t> send(coro::thread_pool& on, ring& to, std::size_t first, std::size_t end) {
  co_await on.schedule();
  for (; first != end; ++first) co_await to.produce(first);
  co_return 0;
}

coro::task<std::size_t> receive(coro::thread_pool& on, ring& from, std::size_t count) {
  co_await on.schedule();
  std::size_t sum = 0;
  for (; count != 0; --count) sum += (co_await from.consume()).value();
  co_return sum;
}

std::size_t all(coro::thread_pool& on, std::size_t count) {
  ring numbers;
  std::vector<coro::task<std::size_t>> tasks;
  const std::size_t sent = count / bench::mpmc_senders, received = count / bench::mpmc_receivers;
  for (std::size_t i = 0; i != bench::mpmc_senders; ++i) tasks.push_back(send(on, numbers, i * sent, (i + 1) * sent));
  for (std::size_t i = 0; i != bench::mpmc_receivers; ++i) tasks.push_back(receive(on, numbers, received));
  std::size_t sum = 0;
  auto ended = coro::sync_wait(coro::when_all(std::move(tasks)));
  for (auto& one : ended) sum += one.return_value();
  return sum;
}

}  // namespace

void bench::run(bench::state& state) {
  auto workers = coro::thread_pool::make_unique({.thread_count = mpmc_threads});
  state.measure(state.size(), sum_of_numbers(state.size()), [&] { return all(*workers, state.size()); });
}
