// Coroutines.
#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstddef>

#include "../harness/net/server.hpp"
#include "workload.hpp"

namespace {

namespace asio = boost::asio;
using asio::ip::udp;

asio::awaitable<void> echo(asio::io_context& all) {
  udp::socket socket{all, udp::v4(), bench::listening_socket};
  std::array<char, bench::largest_datagram> buffer;
  udp::endpoint sender;
  for (;;) {
    const std::size_t size = co_await socket.async_receive_from(asio::buffer(buffer), sender, asio::use_awaitable);
    co_await socket.async_send_to(asio::buffer(buffer, size), sender, asio::use_awaitable);
  }
}

}  // namespace

int main() {
  asio::io_context all{1};
  asio::co_spawn(all, echo(all), asio::detached);
  all.run();
}
