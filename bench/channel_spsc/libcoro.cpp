// ring_buffer, on a thread pool.
#include "workload.hpp"

#include <coro/ring_buffer.hpp>
#include <coro/sync_wait.hpp>
#include <coro/task.hpp>
#include <coro/thread_pool.hpp>
#include <coro/when_all.hpp>

namespace {

using ring = coro::ring_buffer<std::size_t, bench::spsc_room>;

coro::task<std::size_t> send_all(coro::thread_pool& on, ring& to) {
  co_await on.schedule();
  for (std::size_t i = 0; i != bench::spsc_numbers; ++i) co_await to.produce(i);
  co_return 0;
}

coro::task<std::size_t> receive_all(coro::thread_pool& on, ring& from) {
  co_await on.schedule();
  std::size_t sum = 0;
  for (std::size_t i = 0; i != bench::spsc_numbers; ++i) sum += (co_await from.consume()).value();
  co_return sum;
}

}  // namespace

void bench::run(bench::state& state) {
  auto workers = coro::thread_pool::make_unique({.thread_count = static_cast<std::uint32_t>(state.size())});
  state.measure(spsc_numbers, spsc_sum, [&] {
    ring numbers;
    auto both = coro::sync_wait(coro::when_all(send_all(*workers, numbers), receive_all(*workers, numbers)));
    return std::get<1>(both).return_value();
  });
}
