// Coroutines.
#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/datagram_protocol.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstddef>

#include "../harness/net/server.hpp"
#include "workload.hpp"

namespace {

namespace asio = boost::asio;
using protocol = asio::local::datagram_protocol;

asio::awaitable<void> echo(asio::io_context& all) {
  protocol::socket socket{all, protocol{}, bench::listening_socket};
  std::array<char, bench::largest_datagram> buffer;
  for (;;) {
    const std::size_t size = co_await socket.async_receive(asio::buffer(buffer), asio::use_awaitable);
    co_await socket.async_send(asio::buffer(buffer, size), asio::use_awaitable);
  }
}

}  // namespace

int main() {
  asio::io_context all{1};
  asio::co_spawn(all, echo(all), asio::detached);
  all.run();
}
