// Callbacks, the fastest of its ways.
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/datagram_protocol.hpp>
#include <cstddef>

#include "../harness/net/server.hpp"
#include "workload.hpp"

namespace {

namespace asio = boost::asio;
using protocol = asio::local::datagram_protocol;

class server {
 public:
  explicit server(asio::io_context& all) : socket_{all, protocol{}, bench::listening_socket} { receive(); }

 private:
  void receive() {
    socket_.async_receive(asio::buffer(buffer_), [this](const auto& failed, std::size_t size) {
      if (!failed) answer(size);
    });
  }
  void answer(std::size_t size) {
    socket_.async_send(asio::buffer(buffer_, size), [this](const auto&, std::size_t) { receive(); });
  }

  protocol::socket socket_;
  std::array<char, bench::largest_datagram> buffer_;
};

}  // namespace

int main() {
  asio::io_context all{1};
  server one{all};
  all.run();
}
