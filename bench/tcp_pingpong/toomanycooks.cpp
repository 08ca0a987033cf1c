// Boost.Asio through tmc-asio, as in its examples http_server and asio_thread_per_core: a task a connection, which runs on
// the executor of its socket. That has one thread; the first one accepts, and deals the connections out.
#include <array>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <cstddef>
#include <deque>
#include <utility>

#include <tmc/asio/aw_asio.hpp>
#include <tmc/asio/ex_asio.hpp>
#include <tmc/fork_group.hpp>
#include <tmc/sync.hpp>
#include <tmc/task.hpp>

#include "../harness/net/server.hpp"

namespace {

namespace asio = boost::asio;

template <std::size_t Bytes>
tmc::task<void> echo(auto peer) {
  std::array<char, Bytes> buffer;
  for (;;) {
    auto [failed, size] = co_await peer.async_read_some(asio::buffer(buffer), tmc::aw_asio);
    if (failed) co_return;
    auto [failed_too, sent] = co_await asio::async_write(peer, asio::buffer(buffer, size), tmc::aw_asio);
    if (failed_too) co_return;
  }
}

template <std::size_t Bytes, class Protocol>
tmc::task<void> serve(std::deque<tmc::ex_asio>& all, Protocol which) {
  asio::basic_socket_acceptor<Protocol, asio::io_context::executor_type> at{all[0], which, bench::listening_socket};
  auto connections = tmc::fork_group();
  for (std::size_t next = 0;; ++next) {
    tmc::ex_asio& on = all[next % all.size()];
    auto [failed, peer] = co_await at.async_accept(on.ioc, tmc::aw_asio);
    if (!failed) connections.fork(echo<Bytes>(std::move(peer)), on);
  }
}

template <class Protocol>
void run(Protocol which, const bench::server_options& options) {
  std::deque<tmc::ex_asio> all(options.threads);
  for (tmc::ex_asio& each : all) each.init();
  if (options.buffer == bench::small_buffer)
    tmc::post_waitable(all[0], serve<bench::small_buffer>(all, which)).wait();
  else
    tmc::post_waitable(all[0], serve<bench::large_buffer>(all, which)).wait();
}

}  // namespace

int main(int count, char** words) {
  const auto options = bench::read_server_options(count, words);
  if (options.is_unix)
    run(asio::local::stream_protocol{}, options);
  else
    run(asio::ip::tcp::v4(), options);
}
