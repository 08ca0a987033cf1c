// Callbacks, the fastest of its ways.
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/udp.hpp>
#include <cstddef>

#include "../harness/net/server.hpp"
#include "workload.hpp"

namespace {

namespace asio = boost::asio;
using asio::ip::udp;

class server {
 public:
  explicit server(asio::io_context& all) : socket_{all, udp::v4(), bench::listening_socket} { receive(); }

 private:
  void receive() {
    socket_.async_receive_from(asio::buffer(buffer_), sender_, [this](const auto& failed, std::size_t size) {
      if (!failed) answer(size);
    });
  }
  void answer(std::size_t size) {
    socket_.async_send_to(asio::buffer(buffer_, size), sender_, [this](const auto&, std::size_t) { receive(); });
  }

  udp::socket socket_;
  udp::endpoint sender_;
  std::array<char, bench::largest_datagram> buffer_;
};

}  // namespace

int main() {
  asio::io_context all{1};
  server one{all};
  all.run();
}
