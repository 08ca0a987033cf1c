// Sessions by TLS, with a stop at each place of each await, and without memory: what has come is what was written, from its
// beginning, and a side that is gone is told from one that has ended. On local sockets and on pipes in memory.
#include <weft/tls.hpp>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <weft/io.hpp>
#include <weft/net.hpp>
#include <weft/race.hpp>

#include "support/sweep.hpp"
#include "tls/certificates.hpp"
#include "tls/pairs.hpp"

namespace {

using namespace test::in_sweeps;
using weft::tls::client_context;
using weft::tls::server_context;

// Made once, so that each run does the same.
const client_context& client() {
  static const client_context one{{.trust = test::root().trusted(), .resumes = false}};
  return one;
}
const server_context& server() {
  static const server_context one = [] {
    const test::credentials own = test::root().issue();
    return server_context{{.certificate = own.shown(), .resumes = false}};
  }();
  return one;
}

// By what one side finds that the other one is gone: stopped, or without memory.
bool is_of_the_other(const std::error_code& failed) {
  return failed == weft::tls::errc::truncated || failed == weft::errc::closed || failed == std::errc::connection_reset;
}
[[noreturn]] void fail_as(const weft::error& failed) {
  if (failed.code() == std::errc::not_enough_memory) throw std::bad_alloc{};
  throw failed;
}

weft::net::stream adopted(int number) {
  try {
    return weft::net::stream::adopt(number);
  } catch (...) {
    ::close(number);
    throw;
  }
}

// Two ends of a connection by sockets, or by pipes.
struct by_sockets {
  using transport = weft::net::stream;
  transport here, there;
  by_sockets() {
    int both[2];
    test::done(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both) == 0);
    try {
      here = adopted(both[0]);
    } catch (...) {
      ::close(both[1]);
      throw;
    }
    there = adopted(both[1]);
  }
};
struct by_pipes {
  using transport = test::duplex;
  transport here, there;
  by_pipes() {
    test::duplexes both = test::pipes(600);  // less than a flight of the handshake
    here = std::move(both.here);
    there = std::move(both.there);
  }
};

template <class By, class Over>
struct talks : Over {
  using stream = weft::tls::stream<typename Over::transport>;
  std::string got_here, got_there;
  bool here_has_ended = false, there_has_ended = false, here_was_told = false, there_was_told = false;

  talks() {
    got_here.reserve(64);
    got_there.reserve(64);
  }
  part<By> reads(const stream& from, std::string& into, bool& to_the_end) {
    std::array<std::byte, 3> buffer;
    for (;;) {
      const std::size_t got = co_await from.read(buffer);
      if (got == 0) break;
      into.append(reinterpret_cast<const char*>(buffer.data()), got);
    }
    to_the_end = true;
  }
  part<By> writes(const stream& to, bool& told) {
    co_await to.write(std::string_view{"abcd"});
    const std::size_t some = co_await to.write_some(std::as_bytes(std::span{"efgh", 4}));
    require(some == 4, "a record has room for that");
    told = true;  // perhaps
    co_await to.shutdown();
  }
  part<By> connects() {
    try {
      auto connecting = weft::tls::connect(client(), std::move(this->here), "here.test");
      const stream one = co_await std::move(connecting);
      co_await together(writes(one, here_was_told), reads(one, got_here, here_has_ended));
    } catch (const weft::error& failed) {
      if (!is_of_the_other(failed.code())) fail_as(failed);
    }
  }
  part<By> accepts() {
    try {
      auto accepting = weft::tls::accept(server(), std::move(this->there));
      const stream one = co_await std::move(accepting);
      co_await together(reads(one, got_there, there_has_ended), writes(one, there_was_told));
    } catch (const weft::error& failed) {
      if (!is_of_the_other(failed.code())) fail_as(failed);
    }
  }
  part<By> run() { co_await together(connects(), accepts()); }
  void check() {
    constexpr std::string_view all = "abcdefgh";
    require(all.starts_with(got_here) && all.starts_with(got_there), "something else has come than what was written");
    require(!here_has_ended || (there_was_told && got_here == all), "an end that was none has come here");
    require(!there_has_ended || (here_was_told && got_there == all), "an end that was none has come there");
  }
};
template <class By>
using talks_by_sockets = talks<By, by_sockets>;

TEST(tls_sweep, sockets) {
  sweep_both<talks_by_sockets>("tls::connect, tls::accept, stream::shutdown", waits_for_the_other);
}
TEST(tls_sweep, pipes) {
  sweep<talks<test::by_task, by_pipes>>("stream::read, stream::write, stream::write_some", waits_for_the_other);
}

// A stopped read has taken nothing; a stopped write closes the stream, of which the peer hears.
template <class By>
struct is_full : by_sockets {
  std::size_t got = 0;
  bool was_written = false, has_ended = false;
  static constexpr std::size_t size = 16 * 1024;
  std::string data = std::string(size, 'x');

  is_full() { here.set_send_buffer(8192); }
  part<By> writes() {
    auto connecting = weft::tls::connect(client(), std::move(here), "here.test");
    weft::tls::stream<> one = co_await std::move(connecting);
    co_await one.write(std::string_view{data});
    was_written = true;
    co_await one.shutdown();
  }
  part<By> reads() {
    auto accepting = weft::tls::accept(server(), std::move(there));
    try {
      const weft::tls::stream<> one = co_await std::move(accepting);
      co_await rest(1);
      std::array<std::byte, 10'000> buffer;
      for (;;) {
        const std::size_t some = co_await one.read(buffer);
        if (some == 0) break;
        got += some;
      }
      has_ended = true;
    } catch (const weft::error& failed) {
      if (!is_of_the_other(failed.code())) fail_as(failed);
    }
  }
  part<By> run() {
    try {
      co_await together(writes(), reads());
    } catch (const weft::error& failed) {
      if (!is_of_the_other(failed.code())) fail_as(failed);
    }
  }
  void check() const {
    require(got <= size, "more has come than was written");
    require(!has_ended || (was_written && got == size), "an end that was none has come");
  }
};
TEST(tls_sweep, write_of_much) { sweep<is_full<test::by_task>>("stream::write, stream::read", waits_for_the_other); }

// A server and its client, which gets its answer, unless the server was told to stop, or lacked memory, before.
template <class By>
struct serves {
  sockaddr_un name{};
  socklen_t size = sizeof name;
  weft::net::server_stats stats;
  weft::net::listener at;
  bool was_answered = false;

  serves() {
    const int number = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    name.sun_family = AF_UNIX;  // a name that the system chooses
    test::done(::bind(number, any(), sizeof(sa_family_t)) == 0 && ::listen(number, 8) == 0);
    test::done(::getsockname(number, any(), &size) == 0);
    try {
      at = weft::net::listener::adopt(number);
    } catch (...) {
      ::close(number);
      throw;
    }
  }
  sockaddr* any() noexcept { return reinterpret_cast<sockaddr*>(&name); }
  static task<> handle(weft::tls::stream<> peer) {
    std::array<std::byte, 8> buffer;
    const std::size_t got = co_await peer.read(buffer);
    co_await peer.write(std::span<const std::byte>{buffer}.first(got));
    co_await peer.shutdown();
  }
  part<By> asks() {
    const int number = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(number, any(), size) != 0) {  // the server was told to stop
      ::close(number);
      co_return;
    }
    weft::net::stream raw = adopted(number);
    try {
      auto connecting = weft::tls::connect(client(), std::move(raw), "here.test");
      const weft::tls::stream<> one = co_await std::move(connecting);
      co_await one.write(std::string_view{"hello"});
      auto reading = test::read_to_end(one);
      const std::string answer = co_await std::move(reading);
      require(answer == "hello", "another answer has come");
      was_answered = true;
    } catch (const weft::error& failed) {
      if (!is_of_the_other(failed.code())) fail_as(failed);
    }
  }
  part<By> run() {
    const auto ignores = [](const weft::net::endpoint&, const std::exception_ptr&) {};  // want of memory
    weft::tls::serve_options options{.net = {.grace = 1h, .on_error = ignores, .stats = &stats}, .max_handshakes = 1};
    auto serving = weft::tls::serve(options, server(), std::move(at), handle);
    auto clients = test::as_played(asks());
    co_await weft::when_any(std::move(serving), std::move(clients));
  }
  void check() const {
    require(stats.active() == 0, "a handler has not ended");
    require(!was_answered || stats.accepted() == 1, "somebody else has answered");
  }
};
TEST(tls_sweep, serve) { sweep_both<serves>("tls::serve", waits_for_the_other); }

}  // namespace
