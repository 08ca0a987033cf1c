// ring_buffer, which has room for one at least, on a scheduler that resumes tasks itself: schedule(task, limit). A timer that has lost
// is not taken back, but stays until it is due.
#include "workload.hpp"

#include <coro/coro.hpp>
#include <cstddef>
#include <memory>
#include <tuple>

namespace {

using ring = coro::ring_buffer<std::size_t, 1>;

coro::task<std::size_t> echo(coro::scheduler& on, ring& there, ring& back) {
  co_await on.schedule();
  for (std::size_t i = 0; i != bench::timeout_rounds; ++i)
    co_await back.produce((co_await there.consume()).value() + 1);
  co_return 0;
}

coro::task<std::size_t> receive(ring& from) { co_return (co_await from.consume()).value(); }

coro::task<std::size_t> call(coro::scheduler& on, ring& there, ring& back, std::chrono::seconds limit) {
  co_await on.schedule();
  std::size_t number = 0;
  for (std::size_t i = 0; i != bench::timeout_rounds; ++i) {
    co_await there.produce(number);
    if (limit.count() != 0)
      number = (co_await on.schedule(receive(back), limit)).value();
    else
      number = co_await receive(back);
  }
  co_return number;
}

}  // namespace

void bench::run(bench::state& state) {
  auto on =
      coro::scheduler::make_unique({.execution_strategy = coro::scheduler::execution_strategy_t::process_tasks_inline});
  const std::chrono::seconds limit{state.size()};
  state.measure(timeout_rounds, timeout_rounds, [&] {
    ring there, back;
    auto both = coro::sync_wait(coro::when_all(echo(*on, there, back), call(*on, there, back, limit)));
    return std::get<1>(both).return_value();
  });
}
