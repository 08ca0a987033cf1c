// The client of a server of datagrams: a socket whose peer that is.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <vector>

#include "../harness/net/client.hpp"
#include "workload.hpp"

namespace bench {

/// Of UDP.
inline int connect_datagrams(const server_process& to) {
  const int made = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (made < 0 || ::connect(made, to.address(), to.address_size()) != 0) throw std::runtime_error{"no socket"};
  return made;
}

/// Sends so many at once, and receives as many.
class exchange {
 public:
  /// The socket is its own.
  exchange(int socket, std::size_t at_once) : socket_{socket}, out_(at_once), in_(at_once) {
    const timeval patience{.tv_sec = 5, .tv_usec = 0};  // one that is lost is never answered
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    for (std::size_t i = 0; i != at_once; ++i) {
      out_[i].bytes.fill(static_cast<char>(i));
      messages_out_.push_back(out_[i].message());
      messages_in_.push_back(in_[i].message());
    }
  }
  exchange(const exchange&) = delete;
  ~exchange() { ::close(socket_); }

  /// How many came back right.
  std::size_t play(std::size_t rounds) {
    std::size_t right = 0;
    for (; rounds != 0; --rounds) {
      call(messages_out_, ::sendmmsg);
      call(messages_in_, [](int by, mmsghdr* those, unsigned count, int) {
        return ::recvmmsg(by, those, count, MSG_WAITFORONE, nullptr);
      });
      for (std::size_t i = 0; i != in_.size(); ++i) right += in_[i].bytes == out_[i].bytes ? 1 : 0;
    }
    return right;
  }

  /// In the clock, some ten thousand datagrams a call. Reports how many are answered in a second of the wall clock, too, in which
  /// the client and the server take turns.
  void measure(state& in) {
    constexpr std::size_t datagrams = 20'000;
    const std::size_t rounds = datagrams / out_.size(), expected = rounds * out_.size();
    double answered = 0;
    std::chrono::duration<double> taken{0};
    in.measure(static_cast<double>(expected), expected, [&] {
      const auto start = std::chrono::steady_clock::now();
      const std::size_t right = play(rounds);
      taken += std::chrono::steady_clock::now() - start;
      answered += static_cast<double>(right);
      return right;
    });
    if (answered != 0) in.report("answers in a second", answered / taken.count());
  }

 private:
  struct datagram {
    std::array<char, datagram_bytes> bytes{};
    iovec part{};
    mmsghdr message() noexcept {
      part = {.iov_base = bytes.data(), .iov_len = bytes.size()};
      mmsghdr one{};
      one.msg_hdr.msg_iov = &part;
      one.msg_hdr.msg_iovlen = 1;
      return one;
    }
  };
  template <class Call>
  void call(std::vector<mmsghdr>& those, Call each) const {
    for (std::size_t done = 0; done != those.size();) {
      const int some = each(socket_, &those[done], static_cast<unsigned>(those.size() - done), 0);
      if (some <= 0) throw std::runtime_error{"a datagram was lost"};
      done += static_cast<std::size_t>(some);
    }
  }

  int socket_;
  std::vector<datagram> out_, in_;
  std::vector<mmsghdr> messages_out_, messages_in_;
};

}  // namespace bench
