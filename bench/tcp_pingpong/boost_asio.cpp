// Callbacks. On several threads one io_context, which all of them run.
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <cstddef>
#include <memory>
#include <thread>
#include <utility>

#include "../harness/net/server.hpp"

namespace {

namespace asio = boost::asio;

template <class Protocol, std::size_t Bytes>
class session : public std::enable_shared_from_this<session<Protocol, Bytes>> {
  using socket = Protocol::socket;

 public:
  explicit session(socket peer) : peer_{std::move(peer)} {}

  void read() {
    peer_.async_read_some(asio::buffer(buffer_),
                          [self = this->shared_from_this()](boost::system::error_code failed, std::size_t size) {
                            if (!failed) self->write(size);
                          });
  }

 private:
  void write(std::size_t size) {
    asio::async_write(peer_, asio::buffer(buffer_, size),
                      [self = this->shared_from_this()](boost::system::error_code failed, std::size_t) {
                        if (!failed) self->read();
                      });
  }

  socket peer_;
  std::array<char, Bytes> buffer_;
};

template <class Protocol, std::size_t Bytes>
void accept(typename Protocol::acceptor& at) {
  at.async_accept([&at](boost::system::error_code failed, typename Protocol::socket peer) {
    if (!failed) std::make_shared<session<Protocol, Bytes>>(std::move(peer))->read();
    accept<Protocol, Bytes>(at);
  });
}

template <class Protocol>
void serve(Protocol which, const bench::server_options& options) {
  asio::io_context all{static_cast<int>(options.threads)};
  typename Protocol::acceptor at{all, which, bench::listening_socket};
  if (options.buffer == bench::small_buffer)
    accept<Protocol, bench::small_buffer>(at);
  else
    accept<Protocol, bench::large_buffer>(at);
  for (std::size_t i = 1; i != options.threads; ++i) std::thread{[&] { all.run(); }}.detach();
  all.run();
}

}  // namespace

int main(int count, char** words) {
  const auto options = bench::read_server_options(count, words);
  if (options.is_unix)
    serve(asio::local::stream_protocol{}, options);
  else
    serve(asio::ip::tcp::v4(), options);
}
