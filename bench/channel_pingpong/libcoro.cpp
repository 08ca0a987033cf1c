// ring_buffer, which has room for one at least, on a thread pool.
#include "workload.hpp"

#include <coro/ring_buffer.hpp>
#include <coro/sync_wait.hpp>
#include <coro/task.hpp>
#include <coro/thread_pool.hpp>
#include <coro/when_all.hpp>

namespace {

using ring = coro::ring_buffer<std::size_t, 1>;

coro::task<std::size_t> echo(coro::thread_pool& on, ring& there, ring& back) {
  co_await on.schedule();
  for (std::size_t i = 0; i != bench::pingpong_rounds; ++i)
    co_await back.produce((co_await there.consume()).value() + 1);
  co_return 0;
}

coro::task<std::size_t> call(coro::thread_pool& on, ring& there, ring& back) {
  co_await on.schedule();
  std::size_t number = 0;
  for (std::size_t i = 0; i != bench::pingpong_rounds; ++i) {
    co_await there.produce(number);
    number = (co_await back.consume()).value();
  }
  co_return number;
}

}  // namespace

void bench::run(bench::state& state) {
  auto workers = coro::thread_pool::make_unique({.thread_count = static_cast<std::uint32_t>(state.size())});
  state.measure(pingpong_rounds, pingpong_rounds, [&] {
    ring there, back;
    auto both = coro::sync_wait(coro::when_all(echo(*workers, there, back), call(*workers, there, back)));
    return std::get<1>(both).return_value();
  });
}
