// udp_open: the datagrams of udp, but sent one by one, each when it is time for it (harness/net/open_loop.hpp). One item is a
// datagram that was sent, and its time the server's processor time for it. Reported besides: how long answers take; how many
// came in a second; and how many of a million never came, since a server that is not run for a while has no room for more.
//
// --rate says how many are sent in a second. The driver finds it as for tcp_pingpong_open: without it, this client sends --size
// datagrams, gets all of them back, and sends the next. The servers are those of udp.
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>

#include "../harness/net/client.hpp"
#include "../harness/net/open_loop.hpp"
#include "../harness/net/server.hpp"
#include "../udp/exchange.hpp"

namespace {

/// Each has its number, so that those of the warm-up that come late count for nothing.
class numbered {
 public:
  static constexpr bool may_lose = true;

  numbered(int socket, std::size_t first) : socket_{socket}, first_{first} {}

  bool try_send(std::size_t number) {
    const std::size_t sent = first_ + number;
    std::memcpy(bytes_.data(), &sent, sizeof sent);
    return ::send(socket_, bytes_.data(), bytes_.size(), MSG_DONTWAIT) == static_cast<ssize_t>(bytes_.size());
  }
  template <class Answered>
  void receive(Answered answered) {
    std::array<char, bench::datagram_bytes> got;
    while (::recv(socket_, got.data(), got.size(), MSG_DONTWAIT) == static_cast<ssize_t>(got.size())) {
      std::size_t number = 0;
      std::memcpy(&number, got.data(), sizeof number);
      if (number >= first_) answered(number - first_);
    }
  }

 private:
  int socket_;
  std::size_t first_;
  std::array<char, bench::datagram_bytes> bytes_{};
};

}  // namespace

void bench::run(state& state) {
  const std::size_t rate = state.option("--rate", 0);
  const processors where = find_processors();
  stay_on(where.server);  // which it inherits
  const server_process server{state, {"1", std::to_string(largest_datagram)}, serves::datagrams};
  stay_on(where.client);
  const int socket = connect_datagrams(server);
  if (rate == 0) {
    exchange{socket, state.size()}.measure(state);
    return;
  }
  std::size_t next = 0;
  play_open_loop(state, server, rate, [&] {
    const std::size_t first = next;
    next += std::size_t{1} << 40;
    return numbered{socket, first};
  });
  ::close(socket);
}
