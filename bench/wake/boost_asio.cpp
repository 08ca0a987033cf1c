#include "workload.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>

void bench::run(bench::state& state) {
  using boost::asio::ip::tcp;
  boost::asio::io_context all{1};
  tcp::acceptor at{all, tcp::endpoint{boost::asio::ip::address_v4::loopback(), 0}};
  at.async_accept([](boost::system::error_code, const tcp::socket&) {});
  std::thread server{[&] { all.run(); }};
  wake_ups(state, [&](std::atomic<bool>& ran) {
    boost::asio::post(all, [&ran] { ran.store(true, std::memory_order_release); });
  });
  all.stop();
  server.join();
}
