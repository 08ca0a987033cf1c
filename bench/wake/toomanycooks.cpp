#include "workload.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <utility>

#include <tmc/asio/aw_asio.hpp>
#include <tmc/asio/ex_asio.hpp>
#include <tmc/sync.hpp>
#include <tmc/task.hpp>

namespace {

tmc::task<void> sets(std::atomic<bool>& flag) {
  flag.store(true, std::memory_order_release);
  co_return;
}

}  // namespace

void bench::run(bench::state& state) {
  using boost::asio::ip::tcp;
  tmc::ex_asio all;
  all.init();
  tcp::acceptor at{all.ioc, tcp::endpoint{boost::asio::ip::address_v4::loopback(), 0}};
  at.async_accept([](boost::system::error_code, const tcp::socket&) {});
  wake_ups(state, [&](std::atomic<bool>& ran) { tmc::post(all, sets(ran)); });
  all.teardown();
}
