// Coroutines. On several threads one io_context, which all of them run.
#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cstddef>
#include <thread>
#include <utility>

#include "../harness/net/server.hpp"

namespace {

namespace asio = boost::asio;

template <std::size_t Bytes>
asio::awaitable<void> echo(auto peer) {
  std::array<char, Bytes> buffer;
  try {
    for (;;) {
      const std::size_t size = co_await peer.async_read_some(asio::buffer(buffer), asio::use_awaitable);
      co_await asio::async_write(peer, asio::buffer(buffer, size), asio::use_awaitable);
    }
  } catch (const boost::system::system_error&) {  // the end is an error, too
  }
}

template <std::size_t Bytes, class Protocol>
asio::awaitable<void> serve(asio::io_context& all, Protocol which) {
  typename Protocol::acceptor at{all, which, bench::listening_socket};
  for (;;) asio::co_spawn(all, echo<Bytes>(co_await at.async_accept(asio::use_awaitable)), asio::detached);
}

template <class Protocol>
void run(Protocol which, const bench::server_options& options) {
  asio::io_context all{static_cast<int>(options.threads)};
  if (options.buffer == bench::small_buffer)
    asio::co_spawn(all, serve<bench::small_buffer>(all, which), asio::detached);
  else
    asio::co_spawn(all, serve<bench::large_buffer>(all, which), asio::detached);
  for (std::size_t i = 1; i != options.threads; ++i) std::thread{[&] { all.run(); }}.detach();
  all.run();
}

}  // namespace

int main(int count, char** words) {
  const auto options = bench::read_server_options(count, words);
  if (options.is_unix)
    run(asio::local::stream_protocol{}, options);
  else
    run(asio::ip::tcp::v4(), options);
}
