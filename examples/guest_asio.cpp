// weft inside Asio's loop: an HTTP server whose tasks run on the thread of an io_context, between Asio's own handlers.
// `example_guest_asio 8080`, then `curl http://127.0.0.1:8080/`; `/ticks` is answered when a timer of Asio's has ticked three
// times. Ends at SIGTERM or Ctrl-C, which Asio handles.
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <weft/weft.hpp>

namespace asio = boost::asio;
namespace w = weft;
using namespace std::literals;

// All of the glue: weft's descriptor is readable when there is something to run.
class guest {
 public:
  explicit guest(asio::io_context& loop) : watched_{loop, weft_.descriptor()} { watch(); }
  guest(const guest&) = delete;
  ~guest() { watched_.release(); }  // it is weft's, and not Asio's to close

  w::runtime& weft() noexcept { return weft_; }

 private:
  void watch() {
    watched_.async_wait(asio::posix::descriptor_base::wait_read, [this](const boost::system::error_code& failed) {
      if (failed) return;
      weft_.run_ready(64);  // then it is the loop's turn; what is left keeps the descriptor readable
      watch();
    });
  }

  w::runtime weft_{{.guest = true}};
  asio::posix::stream_descriptor watched_;
};

// A timer of Asio's, whose ticks tasks can wait for.
class ticker {
 public:
  explicit ticker(asio::io_context& loop) : timer_{loop} { wait(); }
  w::watch<int>& ticks() noexcept { return ticks_; }

 private:
  void wait() {
    timer_.expires_after(20ms);
    timer_.async_wait([this](const boost::system::error_code& failed) {
      if (failed) return;
      ticks_.set(ticks_.get() + 1);
      wait();
    });
  }

  asio::steady_timer timer_;
  w::watch<int> ticks_{0};
};

w::task<> answer(w::net::stream peer, w::watch<int>& ticks) {
  w::io::buffered_reader in{peer};
  w::io::buffered_writer out{peer};
  while (const auto request = co_await in.read_until("\r\n\r\n"sv)) {
    std::string_view body = "hello\n"sv;
    if (request->starts_with("GET /ticks ")) {
      auto timer = ticks.subscribe();
      for (int i = 0; i != 1 + 3; ++i) co_await timer.receive();  // the first one is as it is now
      body = "Asio's timer has ticked three times\n"sv;
    }
    co_await out.print("HTTP/1.1 200 OK\r\nContent-Length: ", body.size(), "\r\n\r\n", body);
    co_await out.flush();
  }
}

w::task<> serve(std::uint16_t port, w::watch<int>& ticks) {
  w::net::listener at = co_await w::net::listen(w::net::endpoint{"127.0.0.1", port});
  std::printf("listening on %s\n", at.local().to_string().c_str());
  std::fflush(stdout);
  const auto handler = [&ticks](w::net::stream peer) { return answer(std::move(peer), ticks); };
  co_await w::net::serve({.grace = 1s}, std::move(at), handler);
}

int main(int count, char** arguments) {
  std::uint16_t port = 0;  // 0: the system chooses one
  if (count > 1) {
    const std::string_view text = arguments[1];
    std::from_chars(text.data(), text.data() + text.size(), port);
  }
  asio::io_context loop{1};
  ticker timer{loop};
  guest in_loop{loop};
  w::stop_source stop;
  asio::signal_set signals{loop, SIGINT, SIGTERM};
  signals.async_wait([&stop](const boost::system::error_code& failed, int) {
    if (!failed) stop.request_stop();
  });
  int status = 0;
  const auto ended = [&](const w::result<void>& how) {
    if (how.exception()) std::fprintf(stderr, "%s\n", how.error().message().c_str());
    status = how.is_stopped() ? 0 : 1;
    loop.stop();
  };
  w::start(in_loop.weft(), serve(port, timer.ticks()), ended, stop.token());
  loop.run();
  return status;
}
