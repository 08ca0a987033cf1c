// Coroutines. Its resolver calls getaddrinfo, on a thread of its own.
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "lookups.hpp"

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

struct work {
  std::uint64_t next = 0, right = 0;
};

asio::awaitable<void> look_up(asio::io_context& loop, work& all, std::uint64_t count) {
  tcp::resolver by{loop};
  while (all.next != count) {
    const auto found = co_await by.async_resolve(bench::host_name(all.next++), "80", asio::use_awaitable);
    if (found.size() == 2 && bench::is_right(found.begin()->endpoint().data())) ++all.right;
  }
}

}  // namespace

int main(int count, char** words) {
  const std::size_t at_once = bench::read_server_options(count, words).connections;
  asio::io_context loop{1};
  bench::serve_lookups([&](std::uint64_t lookups) {
    work all;
    for (std::size_t i = 0; i != at_once; ++i) asio::co_spawn(loop, look_up(loop, all, lookups), asio::detached);
    loop.restart();
    loop.run();
    return all.right;
  });
}
