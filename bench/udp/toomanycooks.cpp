// Boost.Asio through tmc-asio: one task, on the executor of its socket.
#include <array>
#include <boost/asio/basic_datagram_socket.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/udp.hpp>
#include <cstddef>

#include <tmc/asio/aw_asio.hpp>
#include <tmc/asio/ex_asio.hpp>
#include <tmc/sync.hpp>
#include <tmc/task.hpp>

#include "../harness/net/server.hpp"
#include "workload.hpp"

namespace {

namespace asio = boost::asio;
using asio::ip::udp;

tmc::task<void> echo(tmc::ex_asio& on) {
  asio::basic_datagram_socket<udp, asio::io_context::executor_type> socket{on.ioc, udp::v4(), bench::listening_socket};
  std::array<char, bench::largest_datagram> buffer;
  udp::endpoint sender;
  for (;;) {
    auto [failed, size] = co_await socket.async_receive_from(asio::buffer(buffer), sender, tmc::aw_asio);
    if (failed) co_return;
    auto [failed_too, sent] = co_await socket.async_send_to(asio::buffer(buffer, size), sender, tmc::aw_asio);
    if (failed_too) co_return;
  }
}

}  // namespace

int main() {
  tmc::ex_asio on;
  on.init();
  tmc::post_waitable(on, echo(on)).wait();
}
