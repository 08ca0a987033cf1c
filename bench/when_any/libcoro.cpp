#include "workload.hpp"

#include <coro/event.hpp>
#include <coro/sync_wait.hpp>
#include <coro/task.hpp>
#include <coro/when_any.hpp>
#include <stop_token>

namespace {

// Nothing in libcoro waits for a stop alone.
coro::task<std::size_t> slow(std::stop_token stop) {
  coro::event told;
  const std::stop_callback at_stop{std::move(stop), [&] { told.set(); }};
  co_await told;
  co_return 0;
}
coro::task<std::size_t> quick() { co_return 1; }

// Whoever awaits when_any goes on before it has stopped the others; here the stop itself ends them.
coro::task<std::size_t> race() {
  std::size_t won = 0;
  for (std::size_t i = 0; i != bench::races; ++i) {
    std::stop_source stop;
    won += (co_await coro::when_any(stop, slow(stop.get_token()), quick())).index();
  }
  co_return won;
}

}  // namespace

void bench::run(bench::state& state) {
  state.measure(races, races, [] { return coro::sync_wait(race()); });
}
