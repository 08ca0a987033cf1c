// A name server of a test's own, by UDP and by TCP on one port of 127.0.0.1, which answers as the test says.
//
//     test::name_server server{[](const test::question& asked) { return test::answer(asked, {"10.0.0.7"}); }};
//     const weft::net::endpoint at[] = {server.at()};
//     co_await weft::net::resolve({.servers = at}, "db.test", "80");
//
// It has a thread, unless it is to be served by a task: serve_in_task(). None of its calls is one that faults are injected into.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>
#include <weft/net.hpp>

namespace test {

// What a server can't go on without; it knows no test framework, so that a fuzzer can have one.
inline void expect(bool holds) noexcept {
  if (holds) return;
  std::perror("a name server of a test");
  std::abort();
}

inline constexpr std::uint16_t a_record = 1, aaaa_record = 28, cname_record = 5;

struct question {
  std::string packet;  // all of it
  std::string name{};  // with dots, as it was asked
  std::uint16_t type = 0;
  bool by_tcp = false;
  std::size_t end = 0;     // where it ends in the packet
  std::uint16_t from = 0;  // the port of who asks, by UDP
};

inline void put16(std::string& into, unsigned value) {
  into += static_cast<char>(value >> 8);
  into += static_cast<char>(value);
}

/// What the packet asks, if it is a question.
inline std::optional<question> parse_question(std::string packet, bool by_tcp) {
  question it{.packet = std::move(packet), .by_tcp = by_tcp};
  const auto at = [&](std::size_t i) -> unsigned {
    return i < it.packet.size() ? static_cast<unsigned char>(it.packet[i]) : 0U;
  };
  constexpr std::size_t header = 12;
  std::size_t i = header;
  for (; at(i) != 0; i += at(i) + 1) {
    if (!it.name.empty()) it.name += '.';
    it.name += it.packet.substr(std::min(i + 1, it.packet.size()), at(i));
  }
  if (it.packet.size() < i + 5) return std::nullopt;
  it.type = static_cast<std::uint16_t>(at(i + 1) << 8 | at(i + 2));
  it.end = i + 5;
  return it;
}

struct answer_options {
  unsigned code = 0;  // 2: the server has failed, 3: no such name, 5: refused
  bool is_truncated = false;
  std::string_view canonical{};  // the name is an alias of that
};

inline std::string name_in_labels(std::string_view name) {
  std::string labels;
  while (!name.empty()) {
    const std::size_t dot = std::min(name.find('.'), name.size());
    labels += static_cast<char>(dot);
    labels += name.substr(0, dot);
    name.remove_prefix(std::min(dot + 1, name.size()));
  }
  return labels + '\0';
}

/// The answer with those of the addresses that are of the type asked for.
inline std::string answer(const question& asked, const std::vector<std::string>& addresses,
                          const answer_options& options = {}) {
  std::string records;
  unsigned count = 0;
  const auto put_record = [&](const std::string& owner, unsigned type, std::string_view data) {
    records += owner;
    put16(records, type);
    put16(records, 1);
    put16(records, 0);
    put16(records, 60);
    put16(records, static_cast<unsigned>(data.size()));
    records += data;
    ++count;
  };
  std::string owner{"\xc0\x0c"};  // the name in the question
  if (!options.canonical.empty()) {
    const std::string canonical = name_in_labels(options.canonical);
    put_record(owner, cname_record, canonical);
    owner = canonical;
  }
  for (const std::string& one : addresses) {
    char bytes[16];
    const bool is_v6 = one.find(':') != one.npos;
    if (asked.type != (is_v6 ? aaaa_record : a_record)) continue;
    expect(::inet_pton(is_v6 ? AF_INET6 : AF_INET, one.c_str(), bytes) == 1);
    put_record(owner, asked.type, {bytes, is_v6 ? 16U : 4U});
  }
  std::string packet = asked.packet.substr(0, 2);
  put16(packet, 0x8180U | options.code | (options.is_truncated ? 0x0200U : 0U));
  put16(packet, 1);
  put16(packet, count);
  put16(packet, 0);
  put16(packet, 0);
  packet += asked.packet.substr(12, asked.end - 12);
  return packet + records;
}

class name_server {
 public:
  /// What it answers; nothing: it says nothing.
  using answers = std::function<std::optional<std::string>(const question&)>;

  explicit name_server(answers how, bool has_thread = true) : how_{std::move(how)} {
    // A port that is free for both.
    for (int tries = 0; tcp_ < 0 && tries != 100; ++tries) {
      if (udp_ >= 0) ::close(udp_);
      udp_ = bound(SOCK_DGRAM, 0);
      sockaddr_in its{};
      socklen_t size = sizeof its;
      expect(::getsockname(udp_, reinterpret_cast<sockaddr*>(&its), &size) == 0);
      port_ = ntohs(its.sin_port);
      tcp_ = bound(SOCK_STREAM, port_);
    }
    expect(tcp_ >= 0);
    expect(::listen(tcp_, 64) == 0);
    if (has_thread) thread_ = std::thread{[this] { serve(); }};
  }
  name_server(const name_server&) = delete;
  ~name_server() {
    if (thread_.joinable()) {
      ends_ = true;
      expect(::eventfd_write(wake_, 1) == 0);
      thread_.join();
    }
    for (const int one : {udp_, tcp_, wake_}) ::close(one);
    for (const connection& one : connections_) ::close(one.number);
  }

  std::uint16_t port() const noexcept { return port_; }
  weft::net::endpoint at() const { return {"127.0.0.1", port_}; }
  int asked() const noexcept { return asked_; }  // so many questions so far
  int asked_by_tcp() const noexcept { return by_tcp_; }

  /// Until it is stopped: by UDP only.
  weft::task<> serve_in_task() {
    for (;;) {
      co_await weft::net::ready(udp_, weft::net::readiness::readable);
      answer_datagrams();
    }
  }

  /// A packet to whoever asked last.
  void send_again(std::string_view packet) const {
    ::sendto(udp_, packet.data(), packet.size(), 0, reinterpret_cast<const sockaddr*>(&last_), sizeof last_);
  }

 private:
  struct connection {
    int number;
    std::string received{};
  };

  static int bound(int type, std::uint16_t port) {
    const int number = ::socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::bind(number, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0) return number;
    ::close(number);
    return -1;
  }

  std::optional<std::string> answer_to(std::string packet, bool by_tcp) {
    auto parsed = parse_question(std::move(packet), by_tcp);
    if (!parsed) return std::nullopt;
    if (!by_tcp) parsed->from = ntohs(last_.sin_port);
    ++asked_;
    if (by_tcp) ++by_tcp_;
    return how_(*parsed);
  }

  void answer_datagrams() {
    char buffer[2048];
    for (;;) {
      iovec part{.iov_base = buffer, .iov_len = sizeof buffer};
      msghdr message{};
      message.msg_name = &last_;
      message.msg_namelen = sizeof last_;
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      const ssize_t got = ::recvmsg(udp_, &message, 0);
      if (got < 0) return;
      if (const auto back = answer_to({buffer, static_cast<std::size_t>(got)}, false)) send_again(*back);
    }
  }

  // False: it is over.
  bool answer_by(connection& one) {
    char buffer[2048];
    const ssize_t got = ::read(one.number, buffer, sizeof buffer);
    if (got <= 0) return got < 0 && errno == EAGAIN;
    one.received.append(buffer, static_cast<std::size_t>(got));
    for (;;) {
      const auto byte = [&](std::size_t i) {
        return static_cast<std::size_t>(static_cast<unsigned char>(one.received[i]));
      };
      if (one.received.size() < 2 || one.received.size() < 2 + (byte(0) << 8 | byte(1))) return true;
      const std::size_t size = byte(0) << 8 | byte(1);
      const auto back = answer_to(one.received.substr(2, size), true);
      one.received.erase(0, 2 + size);
      if (!back) continue;
      std::string framed;
      put16(framed, static_cast<unsigned>(back->size()));
      framed += *back;
      if (::write(one.number, framed.data(), framed.size()) != static_cast<ssize_t>(framed.size())) return false;
    }
  }

  void serve() {
    while (!ends_) {
      std::vector<pollfd> all{{wake_, POLLIN, 0}, {udp_, POLLIN, 0}, {tcp_, POLLIN, 0}};
      for (const connection& one : connections_) all.push_back({one.number, POLLIN, 0});
      if (::ppoll(all.data(), all.size(), nullptr, nullptr) < 0) continue;
      if (all[1].revents != 0) answer_datagrams();
      for (std::size_t i = all.size(); i-- != 3;)
        if (all[i].revents != 0 && !answer_by(connections_[i - 3])) {
          ::close(connections_[i - 3].number);
          connections_.erase(connections_.begin() + static_cast<std::ptrdiff_t>(i - 3));
        }
      if (all[2].revents != 0)
        if (const int number = ::accept(tcp_, nullptr, nullptr); number >= 0) connections_.push_back({number});
    }
  }

  const answers how_;
  int udp_ = -1, tcp_ = -1;
  std::uint16_t port_ = 0;
  const int wake_ = ::eventfd(0, EFD_CLOEXEC);
  std::atomic<bool> ends_{false};
  std::atomic<int> asked_{0}, by_tcp_{0};
  sockaddr_in last_{};
  std::vector<connection> connections_;
  std::thread thread_;
};

}  // namespace test
