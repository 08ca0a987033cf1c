// Connections that send numbered messages to a server and check that the same come back.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>

#include "../harness/net/client.hpp"
#include "../harness/net/players.hpp"
#include "workload.hpp"

namespace bench {

/// One connection. It may send several messages before it takes their answers, which come in the same order.
class player {
 public:
  player(const server_process& server, std::size_t number) : at_{server, number}, number_{number} {}

  int socket() const noexcept { return at_.socket(); }

  void send_next() {
    const message next = make_message(++sent_);
    at_.send(next.data(), next.size());
  }

  /// Takes what has come, of at most `most` answers. How many it completes.
  std::size_t receive(std::size_t most = 1) {
    return answers_.receive(at_.socket(), most, [&](const char* answer) {
      const message expected = make_message(++answered_);
      if (std::memcmp(answer, expected.data(), message_bytes) != 0)
        throw wrong_result{"an answer is not what was sent"};
    });
  }

 private:
  using message = std::array<char, message_bytes>;

  message make_message(std::size_t sequence) const noexcept {
    message out{};
    std::memcpy(out.data(), &sequence, sizeof sequence);
    std::memcpy(out.data() + sizeof sequence, &number_, sizeof number_);
    return out;
  }

  connection at_;
  std::size_t number_, sent_ = 0, answered_ = 0;
  equal_answers<4 * message_bytes> answers_{message_bytes};
};

using players = players_of<player>;

}  // namespace bench
