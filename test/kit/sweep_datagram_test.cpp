// Datagrams and descriptors that pass, with a stop at each place of each await, and without memory: none is lost or comes twice,
// no descriptor is left. On local sockets, which a run of the kit waits for itself.
#include <weft/unix.hpp>

#include <dirent.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <weft/datagram.hpp>
#include <weft/net.hpp>
#include <weft/timed.hpp>

#include "support/sweep.hpp"

namespace {

using namespace test::in_sweeps;
using weft::net::datagram;
using weft::net::endpoint;
using weft::net::incoming;
using weft::net::listener;
using weft::net::outgoing;
using weft::net::received;
using weft::net::received_from;
using weft::net::stream;
using weft::net::with_descriptors;

std::string_view text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span{text}); }

void must(bool holds) {
  if (holds) return;
  std::perror("a system call");
  std::abort();
}

template <class Socket>
Socket adopted(int number) {
  try {
    return Socket::adopt(number);
  } catch (...) {
    ::close(number);
    throw;
  }
}

// Bound to a name that the system chooses.
datagram bound() {
  const int number = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  must(number >= 0 && ::bind(number, reinterpret_cast<const sockaddr*>(&name), sizeof(sa_family_t)) == 0);
  return adopted<datagram>(number);
}

std::size_t open_descriptors() {
  DIR* const all = ::opendir("/proc/self/fd");
  std::size_t count = 0;
  while (::readdir(all) != nullptr) ++count;
  ::closedir(all);
  return count;
}

constexpr std::array<std::string_view, 3> pieces{"ab", "cde", "f"};

// What was sent from one to the other, and has come.
struct passing {
  datagram here = bound(), there = bound();
  endpoint to = there.local();
  std::string sent, came;

  passing() {
    sent.reserve(256);  // what was passed is noted, also without memory
    came.reserve(256);
  }
  void note(std::string& in, std::string_view one) { (in += one) += '|'; }  // NOLINT: of this one
  // What nobody has received.
  void check() {
    char buffer[64];
    for (ssize_t got; (got = ::recv(there.native_handle(), buffer, sizeof buffer, MSG_DONTWAIT)) >= 0;)
      note(came, {buffer, static_cast<std::size_t>(got)});
    require(came == sent, "a datagram was lost, or came twice");
  }
};

template <class By>
struct to_a_peer : passing {
  to_a_peer() { here.connect(to); }
  part<By> sends() {
    for (const std::string_view piece : pieces) {
      co_await here.send(piece);
      note(sent, piece);
      co_await rest(1);
    }
  }
  part<By> receives() {
    std::array<std::byte, 8> buffer;
    for (std::size_t i = 0; i != pieces.size(); ++i) {
      const received got = co_await there.receive(buffer);
      note(came, text(std::span{buffer}.first(got.size)));
    }
  }
  part<By> run() { co_await together(receives(), sends()); }
};
TEST(sweep, datagram) { sweep_both<to_a_peer>("datagram::receive, datagram::send", waits_for_the_other); }

template <class By>
struct to_whomever : passing {
  endpoint from = here.local();
  part<By> sends() {
    for (const std::string_view piece : pieces) {
      co_await here.send_to(piece, to);
      note(sent, piece);
      co_await rest(1);
    }
  }
  part<By> receives() {
    std::array<std::byte, 8> buffer;
    for (std::size_t i = 0; i != pieces.size(); ++i) {
      const received_from got = co_await there.receive_from(buffer);
      require(got.from == from, "somebody else has sent it");
      note(came, text(std::span{buffer}.first(got.size)));
    }
  }
  part<By> run() { co_await together(receives(), sends()); }
};
TEST(sweep, datagram_to) { sweep_both<to_whomever>("datagram::receive_from, datagram::send_to", waits_for_the_other); }

// The receiver has no room, which the sender waits for by another socket, unless it is its peer.
template <class By, bool is_peer>
struct without_room : passing {
  static constexpr int count = 14;  // more than a receiver has room for, by net.unix.max_dgram_qlen
  std::size_t open = 0;
  without_room() {
    if constexpr (is_peer) here.connect(to);
  }
  part<By> sends() {
    for (int i = 0; i != count; ++i) {
      if constexpr (is_peer)
        co_await here.send("x");
      else
        co_await here.send_to("x", to);
      note(sent, "x");
    }
  }
  part<By> receives() {
    std::array<std::byte, 8> buffer;
    for (int i = 0; i != count; ++i) {
      if (i % 4 == 0) co_await rest(1);
      const received got = co_await there.receive(buffer);
      note(came, text(std::span{buffer}.first(got.size)));
    }
  }
  part<By> run() {
    open = open_descriptors();
    co_await together(receives(), sends());
  }
  void check() {
    passing::check();
    require(open == 0 || open_descriptors() == open, "a descriptor is left");
  }
};
template <class By>
using to_who_has_no_room = without_room<By, false>;
template <class By>
using to_a_peer_without_room = without_room<By, true>;
TEST(sweep, datagram_without_room) {
  sweep_both<to_who_has_no_room>("datagram::send_to", waits_for_the_other);
  sweep_both<to_a_peer_without_room>("datagram::send", waits_for_the_other);
}

template <class By>
struct by_batches : passing {
  part<By> sends() {
    std::array<outgoing, pieces.size()> those{};
    for (std::size_t i = 0; i != those.size(); ++i) those[i] = {.data = bytes(pieces[i]), .to = to};
    for (int i = 0; i != 2; ++i) {
      for (std::span<const outgoing> left = those; !left.empty();) {
        const std::size_t some = co_await here.send_batch(left);
        for (const outgoing& one : left.first(some)) note(sent, text(one.data));
        left = left.subspan(some);
      }
      co_await rest(1);
    }
  }
  part<By> receives() {
    std::array<std::array<std::byte, 8>, 2> memory;
    std::array<incoming, 2> buffers;
    for (std::size_t i = 0; i != buffers.size(); ++i) buffers[i].into = memory[i];
    for (std::size_t count = 0; count != 2 * pieces.size();) {
      const std::size_t some = co_await there.receive_batch(buffers);
      for (std::size_t i = 0; i != some; ++i) note(came, text(buffers[i].bytes()));
      count += some;
    }
  }
  part<By> run() { co_await together(receives(), sends()); }
};
TEST(sweep, datagrams) { sweep_both<by_batches>("datagram::receive_batch, datagram::send_batch", waits_for_the_other); }

template <class By>
struct by_segments : passing {
  by_segments() { here.connect(to); }
  part<By> sends() {
    constexpr std::string_view all = "abcdefghijklm";
    for (std::string_view left = all; !left.empty();) {
      std::size_t some = 0;
      if (left.size() == all.size())
        some = co_await here.send_segments(bytes(left.substr(0, 6)), 3);
      else
        some = co_await here.send_segments_to(bytes(left), 3, to);
      for (std::size_t i = 0; i < some; i += 3) note(sent, left.substr(0, some).substr(i, 3));
      left.remove_prefix(some);
      co_await rest(1);
    }
  }
  part<By> receives() {
    std::array<std::byte, 8> buffer;
    for (int i = 0; i != 5; ++i) {
      const received got = co_await there.receive(buffer);
      note(came, text(std::span{buffer}.first(got.size)));
    }
  }
  part<By> run() { co_await together(receives(), sends()); }
};
TEST(sweep, datagram_segments) {
  sweep_both<by_segments>("datagram::send_segments, datagram::send_segments_to", waits_for_the_other);
}

// A path that was made is gone with its socket, or with the attempt.
template <class By>
struct binds {
  std::array<char, 64> path{};
  std::size_t open = 0;

  binds() { std::snprintf(path.data(), path.size(), "/tmp/weft-sweep-%d", ::getpid()); }
  part<By> run() {
    open = open_descriptors();
    const endpoint where = endpoint::unix_path(path.data());
    auto binding = weft::net::bind({.replace_stale = true}, where);
    const datagram at = co_await std::move(binding);
    auto connecting = weft::net::connect_datagram(where);
    const datagram to = co_await std::move(connecting);
    auto second = weft::net::bind(where);
    const auto refused = co_await as_result(std::move(second));
    require(!refused.has_value(), "two have one path");
    co_await rest(1);
    require(::access(path.data(), F_OK) == 0, "it has no file");
  }
  void check() const {
    require(::access(path.data(), F_OK) != 0, "its file is left");
    require(open == 0 || open_descriptors() == open, "a descriptor is left");
  }
};
TEST(sweep, bind) {
  weft::test::run([]() -> task<> { co_await weft::net::bind(endpoint{"127.0.0.1", 0}); });  // what is made once
  sweep_both<binds>("net::bind, net::connect_datagram");
}

// The listener has no room until it accepts.
template <class By>
struct connects_without_room {
  listener at;
  endpoint where;
  std::size_t open = 0;

  connects_without_room() {
    const int number = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    must(number >= 0 && ::bind(number, reinterpret_cast<const sockaddr*>(&name), sizeof(sa_family_t)) == 0 &&
         ::listen(number, 0) == 0);
    at = adopted<listener>(number);
    where = at.local();
  }
  part<By> connects() {
    for (int i = 0; i != 2; ++i) {
      // With a limit: while nobody accepts it is tried again, and the time goes on.
      auto connecting = weft::timeout(100ms, weft::net::connect(where));
      auto how = as_result(std::move(connecting));
      const auto one = co_await std::move(how);
      if (test::lacked_memory(one)) throw std::bad_alloc{};
      require(one.has_value() || one.is_stopped() || one.error() == weft::errc::timed_out, "it failed");
      co_await rest(1);
    }
  }
  part<By> accepts() {
    co_await rest(3);
    for (int i = 0; i != 2; ++i) {
      const stream one = co_await at.accept();
      require(one.is_open(), "it is closed");
    }
  }
  part<By> run() {
    open = open_descriptors();
    co_await together(accepts(), connects());
  }
  void check() const { require(open == 0 || open_descriptors() == open, "a descriptor is left"); }
};
TEST(sweep, connect_without_room) { sweep_both<connects_without_room>("net::connect", waits_for_the_other); }

// ---- descriptors --------------------------------------------------------------------------------------------------------------

template <class By, class Socket>
struct passes_descriptors {
  Socket here, there;
  std::size_t open = 0;
  int sent = 0, came = 0;

  passes_descriptors() {
    int both[2];
    constexpr int kind = std::is_same_v<Socket, stream> ? SOCK_STREAM : SOCK_DGRAM;
    must(::socketpair(AF_UNIX, kind | SOCK_CLOEXEC, 0, both) == 0);
    struct closes {
      int number;
      ~closes() {
        if (number >= 0) ::close(number);
      }
    } second{both[1]};
    here = adopted<Socket>(both[0]);
    there = adopted<Socket>(std::exchange(second.number, -1));
    open = open_descriptors();
  }
  part<By> sends() {
    for (int i = 0; i != 3; ++i) {
      const std::array<int, 2> those{here.native_handle(), there.native_handle()};
      co_await weft::net::send_descriptors(here, those, bytes("x"));
      ++sent;
      co_await rest(1);
    }
  }
  part<By> receives() {
    std::array<std::byte, 1> buffer;
    for (int i = 0; i != 3; ++i) {
      with_descriptors got;
      try {
        got = co_await weft::net::receive_descriptors(there, buffer, 2);
      } catch (const weft::error& failure) {
        if (failure.code() == std::errc::not_enough_memory) throw std::bad_alloc{};
        throw;
      }
      require(got.size == 1 && got.descriptors.size() == 2 && !got.lost_descriptors, "something was lost");
      ++came;
    }
  }
  part<By> run() { co_await together(receives(), sends()); }
  void check() {
    require(open_descriptors() == open, "a descriptor is left");
    char buffer[8];
    for (ssize_t got; (got = ::recv(there.native_handle(), buffer, 1, MSG_DONTWAIT)) > 0;) ++came;
    require(came == sent, "one was lost, or came twice");
  }
};
template <class By>
struct by_stream : passes_descriptors<By, stream> {};
template <class By>
struct by_datagram : passes_descriptors<By, datagram> {};
TEST(sweep, descriptors) {
  sweep_both<by_stream>("net::send_descriptors, net::receive_descriptors", waits_for_the_other);
  sweep_both<by_datagram>("net::send_descriptors, net::receive_descriptors", waits_for_the_other);
}

}  // namespace
