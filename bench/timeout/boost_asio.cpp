// By its awaitable operators; its channels are an extension.
#include "workload.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace {

namespace asio = boost::asio;
using asio::awaitable;
using asio::use_awaitable;
using channel = asio::experimental::channel<void(boost::system::error_code, std::size_t)>;

awaitable<void> echo(channel& there, channel& back) {
  for (std::size_t i = 0; i != bench::timeout_rounds; ++i) {
    const std::size_t number = co_await there.async_receive(use_awaitable);
    co_await back.async_send({}, number + 1, use_awaitable);
  }
}

awaitable<void> call(channel& there, channel& back, std::chrono::seconds limit, std::size_t& number) {
  using namespace asio::experimental::awaitable_operators;
  asio::steady_timer timer{co_await asio::this_coro::executor};
  for (std::size_t i = 0; i != bench::timeout_rounds; ++i) {
    co_await there.async_send({}, number, use_awaitable);
    if (limit.count() != 0) {
      timer.expires_after(limit);
      const auto first = co_await (back.async_receive(use_awaitable) || timer.async_wait(use_awaitable));
      number = std::get<0>(first);
    } else {
      number = co_await back.async_receive(use_awaitable);
    }
  }
}

}  // namespace

void bench::run(bench::state& state) {
  asio::io_context loop{1};
  const std::chrono::seconds limit{state.size()};
  state.measure(timeout_rounds, timeout_rounds, [&] {
    channel there{loop, 0}, back{loop, 0};
    std::size_t number = 0;
    asio::co_spawn(loop, echo(there, back), asio::detached);
    asio::co_spawn(loop, call(there, back, limit, number), asio::detached);
    loop.restart();
    loop.run();
    return number;
  });
}
