// tcp_pingpong_open: the requests of tcp_pingpong, but sent when it is time for them (harness/net/open_loop.hpp); each
// connection sends in its turn. One item is a request, and its time the server's processor time for it. Reported besides: how
// long answers take; how many requests were answered in a second; and the client's processor time for one, which is the same
// work for all servers, but that more answers at once cost it less.
//
// --rate says how many requests there are in a second. The driver finds it at the start of its run, as half of what epoll by
// hand does without --rate, where this client is a closed loop; it is the same for all libraries. --size is the number of
// connections. The servers are those of tcp_pingpong.
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "../harness/net/client.hpp"
#include "../harness/net/open_loop.hpp"
#include "../harness/net/server.hpp"
#include "../tcp_pingpong/players.hpp"
#include "../tcp_pingpong/workload.hpp"

namespace {

constexpr std::size_t most_waiting = 32;  // answers of a connection: what is sent then could fill the system's buffers

/// Each connection's n-th answer is that of its n-th request.
class in_turns {
 public:
  static constexpr bool may_lose = false;

  explicit in_turns(bench::players& all) : all_{all}, answered_(all.size(), 0) {}

  bool try_send(std::size_t number) {
    const std::size_t which = number % all_.size();
    if (number / all_.size() - answered_[which] >= most_waiting) return false;
    all_[which].send_next();
    return true;
  }
  template <class Answered>
  void receive(Answered answered) {
    all_.wait(0, [&](std::size_t which) {
      for (std::size_t left = all_[which].receive(most_waiting); left != 0; --left)
        answered(answered_[which]++ * all_.size() + which);
    });
  }

 private:
  bench::players& all_;
  std::vector<std::size_t> answered_;  // of each connection
};

}  // namespace

void bench::run(state& state) {
  const std::size_t count = connections_of(state.size()), rate = state.option("--rate", 0);
  need_descriptors(count);
  const processors where = find_processors();
  stay_on(where.server);  // which it inherits
  const server_process server{state, {"1", std::to_string(large_buffer), std::to_string(count)}};
  stay_on(where.client);
  players all{server, count};
  if (rate == 0) {
    const std::size_t requests = std::min<std::size_t>(20 * count, 5000);
    state.measure(static_cast<double>(requests), requests, [&] { return all.play(requests); });
    return;
  }
  play_open_loop(state, server, rate, [&] { return in_turns{all}; });
}
