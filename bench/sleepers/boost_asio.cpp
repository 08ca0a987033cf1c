#include "workload.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <memory>

namespace {

namespace asio = boost::asio;

asio::awaitable<void> sleeper() {
  asio::steady_timer timer{co_await asio::this_coro::executor, bench::asleep};
  co_await timer.async_wait(asio::use_awaitable);
}

std::size_t all(std::size_t count) {
  asio::io_context loop{1};
  const auto stops = std::make_unique<asio::cancellation_signal[]>(count);
  std::size_t ended = 0;
  for (std::size_t i = 0; i != count; ++i)
    asio::co_spawn(loop, sleeper(),
                   asio::bind_cancellation_slot(stops[i].slot(), [&](const std::exception_ptr&) { ++ended; }));
  loop.poll();
  for (std::size_t i = 0; i != count; ++i) stops[i].emit(asio::cancellation_type::terminal);
  loop.run();
  return ended;
}

}  // namespace

void bench::run(bench::state& state) {
  state.measure(state.size(), state.size(), [&] { return all(state.size()); });
}
