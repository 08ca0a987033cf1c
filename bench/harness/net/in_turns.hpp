// Connections of which each sends in its turn, when it is time for that (open_loop.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "open_loop.hpp"
#include "players.hpp"

namespace bench {

/// Each connection's n-th answer is that of its n-th request.
template <class Player>
class in_turns {
 public:
  static constexpr bool may_lose = false;

  explicit in_turns(players_of<Player>& all) : all_{all}, answered_(all.size(), 0) {}

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
  static constexpr std::size_t most_waiting =
      32;  // answers of a connection: what is sent then could fill the system's buffers

  players_of<Player>& all_;
  std::vector<std::size_t> answered_;  // of each connection
};

/// An open loop of so many requests in a second. Without a rate a closed one, by which the driver finds it.
template <class Player>
void play_in_turns(state& to, const server_process& server, players_of<Player>& all, std::size_t rate) {
  if (rate != 0) return play_open_loop(to, server, rate, [&] { return in_turns{all}; });
  const std::size_t requests = std::min<std::size_t>(20 * all.size(), 5000);
  to.measure(static_cast<double>(requests), requests, [&] { return all.play(requests); });
}

}  // namespace bench
