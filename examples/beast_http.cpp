// Boost.Beast's HTTP in tasks of weft: sockets, parser and writer are Beast's, and each connection is a fork of a scope, which has
// a deadline and ends with the rest at SIGTERM or Ctrl-C. `example_beast_http`, then `curl http://127.0.0.1:PORT/`.
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <utility>
#include <weft/boost_asio.hpp>
#include <weft/weft.hpp>

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace w = weft;
using namespace std::literals;

w::task<> session(beast::tcp_stream stream) {
  beast::flat_buffer buffer;
  for (bool goes_on = true; goes_on;) {
    http::request<http::string_body> request;
    const auto read = co_await w::as_result(w::timeout(30s, http::async_read(stream, buffer, request, w::use_task)));
    if (!read) co_return;  // the peer has gone, or says nothing
    http::response<http::string_body> response{http::status::ok, request.version()};
    response.set(http::field::content_type, "text/plain");
    response.keep_alive(goes_on = request.keep_alive());
    response.body() = "hello, " + std::string{request.target()} + "\n";
    response.prepare_payload();
    co_await http::async_write(stream, response, w::use_task);
  }
}

w::task<> serve(asio::ip::tcp::acceptor listener) {
  const auto all = [&](w::scope& connections) -> w::task<> {
    for (;;) connections.fork(session(beast::tcp_stream{co_await listener.async_accept(w::use_task)}));
  };
  co_await w::with_scope(all);
}

int main() {
  asio::io_context loop{1};
  asio::ip::tcp::acceptor listener{loop, {asio::ip::address_v4::loopback(), 0}};
  std::printf("listening on 127.0.0.1:%u\n", static_cast<unsigned>(listener.local_endpoint().port()));
  std::fflush(stdout);

  w::stop_source closing;
  asio::signal_set signals{loop, SIGINT, SIGTERM};
  signals.async_wait([&](auto, int) { closing.request_stop({.reason = "a signal"}); });
  w::start(serve(std::move(listener)), [](w::result<void>) {}, closing.token());
  loop.run();  // until nothing is left to wait for
}
