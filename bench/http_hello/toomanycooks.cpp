// Boost.Asio through tmc-asio, as in tcp_pingpong.
#include "workload.hpp"

#include <array>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
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
using asio::ip::tcp;

tmc::task<void> talk(auto peer) {
  std::array<char, bench::large_buffer> buffer;
  bench::requests all;
  for (;;) {
    auto [failed, size] = co_await peer.async_read_some(asio::buffer(buffer), tmc::aw_asio);
    if (failed) co_return;
    int complete = all.feed({buffer.data(), size});
    if (complete < 0) co_return;
    for (; complete != 0; --complete) {
      auto [failed_too, sent] = co_await asio::async_write(peer, asio::buffer(bench::hello), tmc::aw_asio);
      if (failed_too) co_return;
    }
  }
}

tmc::task<void> serve(std::deque<tmc::ex_asio>& all) {
  asio::basic_socket_acceptor<tcp, asio::io_context::executor_type> at{all[0], tcp::v4(), bench::listening_socket};
  auto connections = tmc::fork_group();
  for (std::size_t next = 0;; ++next) {
    tmc::ex_asio& on = all[next % all.size()];
    auto [failed, peer] = co_await at.async_accept(on.ioc, tmc::aw_asio);
    if (!failed) connections.fork(talk(std::move(peer)), on);
  }
}

}  // namespace

int main(int count, char** words) {
  std::deque<tmc::ex_asio> all(bench::read_server_options(count, words).threads);
  for (tmc::ex_asio& each : all) each.init();
  tmc::post_waitable(all[0], serve(all)).wait();
}
