// Streams and listeners, with a stop at each place of each await, and without memory: no byte is lost or comes twice. On local
// sockets, which a run of the kit waits for itself.
//
// Long because each operation is a scenario.
#include <weft/net.hpp>

#include <netinet/in.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <weft/io.hpp>
#include <weft/race.hpp>
#include <weft/resolve.hpp>
#include <weft/select.hpp>
#include <weft/serve.hpp>
#include <weft/signals.hpp>

#include "net/name_server.hpp"
#include "net/open_descriptors.hpp"
#include "support/sweep.hpp"

namespace {

using namespace test::in_sweeps;
using weft::net::listener;
using weft::net::stream;

std::string_view text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span{text}); }

void must(bool holds) {
  if (holds) return;
  std::perror("a system call");
  std::abort();
}

// Two ends of a connection; and what was sent from one to the other, where it goes around them.
struct connection {
  stream here, there;
  std::string sent, received;

  connection() {
    int both[2];
    must(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both) == 0);
    here = adopted(both[0]);
    there = adopted(both[1]);
    sent.reserve(64);  // what was passed is noted, also without memory
    received.reserve(64);
  }
  static stream adopted(int number) {
    try {
      return stream::adopt(number);
    } catch (...) {
      ::close(number);
      throw;
    }
  }
  // What nobody has read.
  void drain() {
    char buffer[64];
    for (ssize_t got; (got = ::recv(there.native_handle(), buffer, sizeof buffer, MSG_DONTWAIT)) > 0;)
      received.append(buffer, static_cast<std::size_t>(got));
  }
};

template <class By>
struct reads_and_writes : connection {
  part<By> writes() {
    for (const std::string_view piece : {"ab", "cde", "f"}) {
      const std::size_t written = co_await here.write_some(bytes(piece));
      sent += piece.substr(0, written);
      co_await rest(1);
    }
    here.shutdown();
  }
  part<By> reads() {
    std::array<std::byte, 2> buffer;
    for (;;) {
      const std::size_t got = co_await there.read(buffer);
      if (got == 0) break;
      received += text(std::span{buffer}.first(got));
    }
    require(received == "abcdef", "it has ended too early");
  }
  part<By> run() { co_await together(reads(), writes()); }
  void check() {
    drain();
    require(received == sent, "a byte was lost, or came twice");
  }
};
TEST(sweep, stream) { sweep_both<reads_and_writes>("stream::read, stream::write_some", waits_for_the_other); }

// The same in parts.
template <class By>
struct reads_and_writes_parts : reads_and_writes<By> {
  part<By> writes() {
    for (const std::string_view piece : {"ab", "cde", "f"}) {
      const std::array<std::span<const std::byte>, 3> parts{bytes(piece).first(1), {}, bytes(piece).subspan(1)};
      const std::size_t written = co_await this->here.write_some(parts);
      this->sent += piece.substr(0, written);
      co_await rest(1);
    }
    this->here.shutdown();
  }
  part<By> reads() {
    std::array<std::byte, 2> buffer;
    const std::array<std::span<std::byte>, 2> parts{std::span{buffer}.first(1), std::span{buffer}.subspan(1)};
    for (;;) {
      const std::size_t got = co_await this->there.read(parts);
      if (got == 0) break;
      this->received += text(std::span{buffer}.first(got));
    }
    require(this->received == "abcdef", "it has ended too early");
  }
  part<By> run() { co_await together(reads(), writes()); }
};
TEST(sweep, stream_parts) {
  sweep_both<reads_and_writes_parts>("stream::read(parts), stream::write_some(parts)", waits_for_the_other);
}

template <class By>
struct receives : reads_and_writes<By> {
  part<By> reads() {
    for (;;) {
      weft::net::lent_buffer got;
      try {
        got = co_await this->there.receive();
      } catch (const weft::error& failure) {
        if (failure.code() == std::errc::not_enough_memory) throw std::bad_alloc{};  // for its buffer
        throw;
      }
      if (got.empty()) break;
      this->received += got.text();
    }
    require(this->received == "abcdef", "it has ended too early");
  }
  part<By> run() { co_await together(this->writes(), reads()); }
};
TEST(sweep, receive) { sweep_both<receives>("stream::receive", waits_for_the_other); }

// A stream without room: a write that is ended half-way closes its side.
template <class By>
struct writes_much : connection {
  std::size_t before = 0, got = 0;
  bool was_written = false;
  static constexpr std::size_t size = 3 * 4096;

  writes_much() { here.set_send_buffer(4096); }
  part<By> writes() {
    const std::array<std::byte, size> data{};
    co_await here.write(std::span<const std::byte>{data});
    was_written = true;
    here.shutdown();
  }
  part<By> reads() {
    co_await rest(1);
    std::array<std::byte, 1000> buffer;
    for (;;) {
      const std::size_t some = co_await there.read(buffer);
      if (some == 0) break;
      got += some;
    }
  }
  part<By> run() { co_await together(writes(), reads()); }
  void check() {
    std::array<std::byte, 1000> buffer;
    ssize_t some = 1;
    while ((some = ::recv(there.native_handle(), buffer.data(), buffer.size(), MSG_DONTWAIT)) > 0)
      got += static_cast<std::size_t>(some);
    require(was_written ? got == size : got < size + (learns_the_end ? 1 : 0), "a byte was lost, or came twice");
    require(got == 0 || some == 0, "half of it was written, and the other side is not told");
  }
  bool learns_the_end = false;  // only after the last byte: a stop may come between
};
TEST(sweep, stream_write) { sweep_both<writes_much>("stream::write", waits_for_the_other); }

// The same of parts.
template <class By>
struct writes_much_in_parts : writes_much<By> {
  part<By> writes_parts() {
    const std::array<std::byte, writes_much<By>::size> data{};
    const std::span<const std::byte> all{data};
    std::array<std::span<const std::byte>, 4> parts{all.first(1), {}, all.subspan(1, 4096), all.subspan(4097)};
    co_await this->here.write(parts);
    this->was_written = true;
    this->here.shutdown();
  }
  part<By> run() { co_await together(writes_parts(), this->reads()); }
};
TEST(sweep, stream_write_parts) { sweep_both<writes_much_in_parts>("stream::write(parts)", waits_for_the_other); }

// Over TCP, of memory that is lent: what is ended half-way resets the connection.
template <class By>
struct writes_without_a_copy {
  stream here, there;
  std::string data = std::string(stream::zero_copy_least + 1000, 'x');
  std::size_t got = 0;
  bool was_written = false, has_ended = false;

  writes_without_a_copy() {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof name;
    auto* const any = reinterpret_cast<sockaddr*>(&name);
    const int at = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
              to = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(::bind(at, any, size) == 0 && ::listen(at, 1) == 0 && ::getsockname(at, any, &size) == 0);
    must(::connect(to, any, size) == 0);
    const int from = ::accept4(at, nullptr, nullptr, SOCK_CLOEXEC);
    must(from >= 0);
    ::close(at);
    try {
      here = connection::adopted(to);
    } catch (...) {
      ::close(from);
      throw;
    }
    there = connection::adopted(from);
  }
  part<By> writes() {
    co_await here.write_zero_copy(bytes(data));
    was_written = true;
    here.shutdown();
  }
  part<By> reads() {
    co_await rest(1);
    std::array<std::byte, 10'000> buffer;
    try {
      for (;;) {
        const std::size_t some = co_await there.read(buffer);
        if (some == 0) break;
        got += some;
      }
    } catch (const weft::error& failure) {
      if (failure.code() != std::errc::connection_reset) throw;
    }
    has_ended = true;
  }
  part<By> run() { co_await together(reads(), writes()); }
  void check() {
    std::array<std::byte, 10'000> buffer;
    ssize_t some = 1;
    if (has_ended) some = 0;
    while (some > 0) {
      some = ::recv(there.native_handle(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      got += static_cast<std::size_t>(std::max<ssize_t>(some, 0));
    }
    require(was_written ? got == data.size() : got <= data.size(), "a byte was lost, or came twice");
    require(got == 0 || some == 0 || errno == ECONNRESET, "it has ended half-way, and the other side is not told");
  }
};
TEST(sweep, write_zero_copy) { sweep_both<writes_without_a_copy>("stream::write_zero_copy", waits_for_the_other); }

// The same of a file.
template <class By>
struct sends_a_file : writes_much<By> {
  const int file = ::memfd_create("sent", MFD_CLOEXEC);
  sends_a_file() {
    must(file >= 0 && ::ftruncate(file, writes_much<By>::size) == 0);
    this->learns_the_end = true;
  }
  ~sends_a_file() { ::close(file); }
  part<By> sends() {
    const std::uint64_t sent = co_await this->here.send_file(file);
    require(sent == writes_much<By>::size, "it has sent less than the file");
    this->was_written = true;
    this->here.shutdown();
  }
  part<By> run() { co_await together(sends(), this->reads()); }
};
TEST(sweep, send_file) { sweep_both<sends_a_file>("stream::send_file", waits_for_the_other); }

// A connection that is not taken stays to be taken.
template <class By>
struct accepts {
  listener at;
  sockaddr_un name{};
  int connected = 0, accepted = 0;

  accepts() {
    const int number = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    name.sun_family = AF_UNIX;  // a name that the system chooses
    socklen_t size = sizeof(sa_family_t);
    must(number >= 0 && ::bind(number, reinterpret_cast<const sockaddr*>(&name), size) == 0 &&
         ::listen(number, 8) == 0);
    size_ = sizeof name;
    must(::getsockname(number, reinterpret_cast<sockaddr*>(&name), &size_) == 0);
    at = listener::adopt(number);
  }
  part<By> connects() {
    for (int i = 0; i != 2; ++i) {
      co_await rest(1);
      const int number = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      must(number >= 0 && ::connect(number, reinterpret_cast<const sockaddr*>(&name), size_) == 0);
      ::close(number);
      ++connected;
    }
  }
  part<By> takes() {
    for (int i = 0; i != 2; ++i) {
      const stream one = co_await at.accept();
      ++accepted;
      require(one.is_open(), "it is closed");
    }
  }
  part<By> run() { co_await together(takes(), connects()); }
  void check() {
    for (int number; (number = ::accept4(at.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;
         ::close(number))
      ++accepted;
    require(accepted == connected, "a connection was lost");
  }

 private:
  socklen_t size_ = 0;
};
TEST(sweep, accept) { sweep_both<accepts>("listener::accept", waits_for_the_other); }

template <class By>
struct listens {
  part<By> run() {
    auto listening = weft::net::listen(weft::net::endpoint{"127.0.0.1", 0});
    const listener at = co_await std::move(listening);
    require(at.local().port() != 0, "it listens nowhere");
    co_await rest(1);
  }
};
template <class By>
struct listens_thrice {
  part<By> run() {
    auto listening = weft::net::listen_many({}, weft::net::endpoint{"127.0.0.1", 0}, 3);
    const std::vector<listener> at = co_await std::move(listening);
    require(at.size() == 3 && at.back().local() == at.front().local(), "they share no port");
    co_await rest(1);
  }
};
TEST(sweep, listen_many) { sweep_both<listens_thrice>("net::listen_many"); }

TEST(sweep, listen) { sweep_both<listens>("net::listen"); }

template <class By>
struct waits_until_ready {
  const int number = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  ~waits_until_ready() { ::close(number); }
  part<By> waits() {
    const auto got = co_await weft::net::ready(number, weft::net::readiness::readable);
    require(got == weft::net::readiness::readable, "it is ready for something else");
  }
  part<By> sets() {
    co_await rest(1);
    must(::eventfd_write(number, 1) == 0);
  }
  part<By> run() { co_await together(waits(), sets()); }
};
TEST(sweep, ready) { sweep_both<waits_until_ready>("net::ready", waits_for_the_other); }

// Heard from the construction on: so what a stop leaves is there for the next wait. A signal that is not heard is ignored, as
// it was before.
template <class By>
struct hears_signals {
  weft::signals of{SIGUSR1};
  int sent = 0, got = 0;
  part<By> sends() {
    for (int i = 0; i != 2; ++i) {
      co_await rest(2);
      must(::raise(SIGUSR1) == 0);
      ++sent;
    }
  }
  part<By> takes() {
    for (int i = 0; i != 2; ++i) {
      const int number = co_await of.next();
      require(number == SIGUSR1, "it is another one");
      ++got;
    }
  }
  part<By> run() { co_await together(takes(), sends()); }
  void check() {
    const auto left = weft::sync_wait(as_result(weft::timeout(0ms, of.next())));
    got += left.has_value() ? 1 : 0;
    require(sent == 0 ? got == 0 : got >= 1 && got <= sent, "a signal was lost, or came twice");
  }
};
TEST(sweep, signals) { sweep_both<hears_signals>("signals::next", waits_for_the_other); }

template <class By>
struct is_interrupted {
  struct sigaction before{};
  is_interrupted() {
    struct sigaction ignored{};
    ignored.sa_handler = SIG_IGN;
    must(::sigaction(SIGTERM, &ignored, &before) == 0);
  }
  ~is_interrupted() { ::sigaction(SIGTERM, &before, nullptr); }
  part<By> sends() {
    co_await rest(2);
    must(::raise(SIGTERM) == 0);
  }
  part<By> run() { co_await together(weft::interrupted(), sends()); }
  void check() {
    struct sigaction now{};
    must(::sigaction(SIGTERM, nullptr, &now) == 0);
    require(now.sa_handler == SIG_IGN, "the handler of before is not back");
  }
};
TEST(sweep, interrupted) { sweep_both<is_interrupted>("interrupted", waits_for_the_other); }

// A server and its clients: each of which gets its answer, unless the server was told to stop, or lacked memory, before. What
// was accepted has ended, however that came.
template <class By>
struct serves {
  sockaddr_un name{};
  socklen_t size = sizeof name;
  weft::net::server_stats stats;
  listener at;
  int answered = 0;

  serves() {
    const int number = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    name.sun_family = AF_UNIX;  // a name that the system chooses
    must(number >= 0 && ::bind(number, any(), sizeof(sa_family_t)) == 0 && ::listen(number, 8) == 0);
    must(::getsockname(number, any(), &size) == 0);
    try {
      at = listener::adopt(number);
    } catch (...) {
      ::close(number);
      throw;
    }
  }
  sockaddr* any() noexcept { return reinterpret_cast<sockaddr*>(&name); }
  static task<> handle(stream peer) {
    std::array<std::byte, 1> request;
    const auto next = co_await weft::select(weft::on(peer.read(request)), weft::on(weft::net::draining()));
    if (next.index == 1 || std::get<0>(next.value) == 0) co_return;
    weft::net::handshake_done();
    co_await rest(1);
    co_await peer.write("y");
  }
  part<By> asks() {
    for (int i = 0; i != 2; ++i) {
      const int number = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      must(number >= 0);
      if (::connect(number, any(), size) != 0) {  // the server was told to stop
        ::close(number);
        co_return;
      }
      const stream to = connection::adopted(number);
      auto writing = as_result(to.write("x"));
      const auto sent = co_await std::move(writing);
      if (sent.error()) co_return;  // the server has closed what it had not accepted
      std::array<std::byte, 1> answer;
      auto reading = as_result(to.read(answer));
      const auto got = co_await std::move(reading);
      if (got.error()) co_return;  // the server has dropped it
      answered += got.has_value() ? static_cast<int>(*got) : 0;
    }
  }
  part<By> run() {
    const auto ignores = [](const weft::net::endpoint&, const std::exception_ptr&) {};  // want of memory
    weft::net::serve_options options{.max_connections = 1,
                                     .idle_timeout = 1h,
                                     .handshake_timeout = 1h,
                                     .min_rate = 1,
                                     .grace = 1s,
                                     .on_error = ignores,
                                     .stats = &stats};
    std::vector<listener> all;
    all.push_back(std::move(at));
    auto server = weft::net::serve(options, std::move(all), handle);
    auto clients = test::as_played(asks());
    co_await weft::when_any(std::move(server), std::move(clients));
  }
  void check() const {
    require(stats.active() == 0, "a handler has not ended");
    require(answered <= static_cast<int>(stats.accepted()), "somebody else has answered");
  }
};
TEST(sweep, serve) { sweep_both<serves>("net::serve, net::draining", waits_for_the_other); }

// ---- names ----------------------------------------------------------------------------------------------------------------

#if defined(WEFT_WITH_CARES)
// Two lookups at once, of which one receives for both, and the name server, which is stopped when they have ended. One that is
// stopped takes nothing from the other one.
template <class By>
struct looks_up {
  test::name_server server{[](const test::question& asked) { return test::answer(asked, {"10.0.0.7", "::1"}); }, false};
  const std::size_t open = test::open_descriptors();
  std::vector<weft::net::endpoint> found[2];

  part<By> asks(int index, std::string_view name) {
    const weft::net::endpoint at[] = {server.at()};
    found[index] = co_await weft::net::resolve({.servers = at, .timeout = 1h}, name, "80");
    require(found[index].size() == 2, "an address is lost");
  }
  part<By> run() {
    auto both = together(asks(0, "one.test."), asks(1, "two.test."));
    auto serves = server.serve_in_task();
    co_await weft::when_any(std::move(both), std::move(serves));
  }
  void check() const { require(test::open_descriptors() == open, "a descriptor is left"); }
};
TEST(sweep, resolve) {
  weft::test::run([]() -> task<> { co_await weft::net::listen(weft::net::endpoint{"127.0.0.1", 0}); });  // made once
  sweep_both<looks_up>("net::resolve", waits_for_the_other);
}

// The name has one address. What is ended half-way has left no descriptor, and nothing was written.
template <class By>
struct connects_to_a_name {
  test::name_server server{[](const test::question& asked) { return test::answer(asked, {"127.0.0.1"}); }, false};
  const int at = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  std::string port;
  std::size_t open = 0;
  std::optional<stream> made;

  connects_to_a_name() {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof name;
    auto* const any = reinterpret_cast<sockaddr*>(&name);
    must(::bind(at, any, size) == 0 && ::listen(at, 8) == 0 && ::getsockname(at, any, &size) == 0);
    port = std::to_string(ntohs(name.sin_port));
    open = test::open_descriptors();
  }
  ~connects_to_a_name() { ::close(at); }
  part<By> connects() {
    const weft::net::endpoint ask[] = {server.at()};
    const weft::net::connect_options options{.names = {.servers = ask, .timeout = 1h}};
    made.emplace(co_await weft::net::connect(options, "db.test.", port));
    co_await made->write("x");
  }
  part<By> run() {
    auto connecting = test::as_played(connects());
    auto serves = server.serve_in_task();
    co_await weft::when_any(std::move(connecting), std::move(serves));
  }
  void check() {
    const bool is_connected = made.has_value();
    made.reset();
    require(test::open_descriptors() == open, "a descriptor is left");
    bool has_written = false;
    for (int number; (number = ::accept4(at, nullptr, nullptr, SOCK_CLOEXEC)) >= 0; ::close(number)) {
      char letter = 0;
      has_written = ::recv(number, &letter, 1, 0) == 1 || has_written;
    }
    require(!has_written || is_connected, "there is a connection that nobody has");
  }
};
TEST(sweep, connect_to_a_name) {
  weft::test::run([]() -> task<> { co_await weft::net::listen(weft::net::endpoint{"127.0.0.1", 0}); });  // made once
  sweep_both<connects_to_a_name>("net::connect(service)", waits_for_the_other);
}
#endif

// ---- the kit itself -------------------------------------------------------------------------------------------------------

// Time goes on when nothing is on its way: so a read that is answered in time does not time out, however long that takes.
TEST(sockets_of_a_run, come_before_time_goes_on) {
  weft::test::run([]() -> task<> {
    connection both;
    const auto answers = [](const stream& end) -> task<> {
      std::array<std::byte, 4> buffer;
      for (int i = 0; i != 100; ++i) {
        const std::size_t got = co_await end.read(buffer);
        co_await end.write(std::span{buffer}.first(got));
      }
    };
    const auto asks = [](const stream& end) -> task<> {
      std::array<std::byte, 4> buffer;
      for (int i = 0; i != 100; ++i) {
        co_await end.write("ask");
        const std::size_t got = co_await weft::timeout(1ns, end.read(buffer));
        EXPECT_EQ(got, 3U);
      }
      EXPECT_EQ(weft::test::elapsed(), 0ns);
      const auto late = co_await as_result(weft::timeout(1h, end.read(buffer)));
      EXPECT_EQ(late.error(), weft::errc::timed_out);
      EXPECT_EQ(weft::test::elapsed(), 1h);
    };
    co_await weft::when_all(asks(both.here), answers(both.there));
  });
}

TEST(sockets_of_a_run, may_outlive_it) {
  std::optional<connection> both;
  weft::test::run([&]() -> task<> {
    both.emplace();
    co_await both->here.write("kept");
  });
  weft::test::run([&]() -> task<> {
    std::array<std::byte, 4> buffer;
    const std::size_t got = co_await both->there.read(buffer);
    EXPECT_EQ(got, 4U);
  });
}

TEST(sockets_of_a_run, that_nobody_answers_hang_and_are_told_of) {
  try {
    weft::test::run({.patience = 1ms}, []() -> task<> {
      const connection both;
      std::array<std::byte, 4> buffer;
      static_cast<void>(co_await both.here.read(buffer));
    });
    ADD_FAILURE() << "it has ended";
  } catch (const weft::test::failure& hang) {
    EXPECT_NE(std::string_view{hang.what()}.find("hangs"), std::string_view::npos) << hang.what();
  }
}

TEST(sockets_of_a_run, are_the_processs_again_behind_it) {
  weft::test::run([]() -> task<> {
    const connection both;
    co_await both.here.write("x");
  });
  const auto body = []() -> task<std::size_t> {
    const connection both;
    const auto later = [](const stream& end) -> task<> {
      co_await weft::sleep_for(1ms);
      co_await end.write("abc");
    };
    std::array<std::byte, 4> buffer;
    const auto [got, none] = co_await weft::when_all(both.here.read(buffer), later(both.there));
    co_return got;
  };
  EXPECT_EQ(weft::sync_wait(body()), 3U);
}

}  // namespace
