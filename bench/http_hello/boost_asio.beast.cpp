// Beast, with coroutines. On several threads one io_context, which all of them run.
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <thread>
#include <utility>

#include "../harness/net/server.hpp"

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;

asio::awaitable<void> talk(beast::tcp_stream peer) {
  beast::flat_buffer buffer;
  try {
    for (bool stays = true; stays;) {
      http::request<http::empty_body> asked;
      co_await http::async_read(peer, buffer, asked, asio::use_awaitable);
      http::response<http::string_body> answer{http::status::ok, asked.version(), "Hello, world\n"};
      answer.set(http::field::content_type, "text/plain");
      answer.keep_alive(asked.keep_alive());
      answer.prepare_payload();
      stays = answer.keep_alive();
      co_await http::async_write(peer, answer, asio::use_awaitable);
    }
  } catch (const boost::system::system_error&) {  // the end is an error, too
  }
}

asio::awaitable<void> serve(asio::io_context& all) {
  tcp::acceptor at{all, tcp::v4(), bench::listening_socket};
  for (;;) asio::co_spawn(all, talk(beast::tcp_stream{co_await at.async_accept(asio::use_awaitable)}), asio::detached);
}

}  // namespace

int main(int count, char** words) {
  const auto options = bench::read_server_options(count, words);
  asio::io_context all{static_cast<int>(options.threads)};
  asio::co_spawn(all, serve(all), asio::detached);
  for (std::size_t i = 1; i != options.threads; ++i) std::thread{[&] { all.run(); }}.detach();
  all.run();
}
