// In the clock: what the server's process does from a datagram's coming to its answer, the system's work in its calls included.
// Not in it: the client.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "../harness/net/client.hpp"
#include "../harness/net/server.hpp"
#include "workload.hpp"

namespace {

// A socket whose peer is the server.
class client {
 public:
  client(const bench::server_process& to, std::size_t at_once)
      : socket_{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)} {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(to.port());
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (socket_ < 0 || ::connect(socket_, reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0)
      throw std::runtime_error{"no socket"};
    const timeval patience{.tv_sec = 5, .tv_usec = 0};  // one that is lost is never answered
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    out_.resize(at_once);
    in_.resize(at_once);
    for (std::size_t i = 0; i != at_once; ++i) {
      out_[i].bytes.fill(static_cast<char>(i));
      messages_out_.push_back(out_[i].message());
      messages_in_.push_back(in_[i].message());
    }
  }
  client(const client&) = delete;
  ~client() { ::close(socket_); }

  /// How many came back right.
  std::size_t play(std::size_t rounds) {
    std::size_t right = 0;
    for (; rounds != 0; --rounds) {
      exchange(messages_out_, ::sendmmsg);
      exchange(messages_in_, [](int by, mmsghdr* those, unsigned count, int) {
        return ::recvmmsg(by, those, count, MSG_WAITFORONE, nullptr);
      });
      for (std::size_t i = 0; i != in_.size(); ++i) right += in_[i].bytes == out_[i].bytes ? 1 : 0;
    }
    return right;
  }

 private:
  struct datagram {
    std::array<char, bench::datagram_bytes> bytes{};
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
  void exchange(std::vector<mmsghdr>& those, Call call) const {
    for (std::size_t done = 0; done != those.size();) {
      const int some = call(socket_, &those[done], static_cast<unsigned>(those.size() - done), 0);
      if (some <= 0) throw std::runtime_error{"a datagram was lost"};
      done += static_cast<std::size_t>(some);
    }
  }

  int socket_;
  std::vector<datagram> out_, in_;
  std::vector<mmsghdr> messages_out_, messages_in_;
};

}  // namespace

void bench::run(state& state) {
  constexpr std::size_t datagrams = 20'000;  // in one call
  const server_process server{state, {"1", std::to_string(largest_datagram)}, serves::datagrams};
  client one{server, state.size()};
  const std::size_t rounds = datagrams / state.size(), expected = rounds * state.size();
  state.measure(static_cast<double>(expected), expected, [&] { return one.play(rounds); });
}
