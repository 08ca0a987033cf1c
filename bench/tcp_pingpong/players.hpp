// The clients of a workload: connections that send numbered messages to a server and check that the same come back.
#pragma once

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "../harness/net/client.hpp"
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
    const std::size_t wanted = std::min(most, answers_.size() / message_bytes) * message_bytes - have_;
    const ssize_t size = ::read(at_.socket(), answers_.data() + have_, wanted);
    if (size <= 0) throw wrong_result{"the server has closed a connection"};
    have_ += static_cast<std::size_t>(size);
    const std::size_t complete = have_ / message_bytes;
    for (std::size_t i = 0; i != complete; ++i) {
      const message expected = make_message(++answered_);
      if (std::memcmp(answers_.data() + i * message_bytes, expected.data(), message_bytes) != 0)
        throw wrong_result{"an answer is not what was sent"};
    }
    have_ -= complete * message_bytes;
    std::memmove(answers_.data(), answers_.data() + complete * message_bytes, have_);
    return complete;
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
  std::size_t have_ = 0;  // bytes of answers
  std::array<char, 4 * message_bytes> answers_{};
};

/// So many, in one epoll set.
class players {
 public:
  players(const server_process& server, std::size_t count) : set_{::epoll_create1(EPOLL_CLOEXEC)} {
    constexpr std::size_t at_once = 512;  // the system's queue of those that the server has yet to accept ends
    all_.reserve(count);
    for (std::size_t i = 0; i != count; ++i) {
      player& made = all_.emplace_back(server, i);
      epoll_event wanted{.events = EPOLLIN, .data = {.u64 = i}};
      if (::epoll_ctl(set_, EPOLL_CTL_ADD, made.socket(), &wanted) != 0) throw wrong_result{"epoll_ctl failed"};
      if (i % at_once != at_once - 1) continue;
      made.send_next();
      while (made.receive() == 0) {
      }
    }
  }
  players(const players&) = delete;
  players& operator=(const players&) = delete;
  ~players() { ::close(set_); }

  std::size_t size() const noexcept { return all_.size(); }
  player& operator[](std::size_t which) noexcept { return all_[which]; }

  /// Calls `ready(which)` for each that has got something. `timeout` as epoll_wait's.
  template <class Ready>
  void wait(int timeout, Ready&& ready) {
    std::array<epoll_event, 256> events;
    const int count = ::epoll_wait(set_, events.data(), static_cast<int>(events.size()), timeout);
    if (count < 0 && errno != EINTR) throw wrong_result{"epoll_wait failed"};
    for (int i = 0; i < count; ++i) ready(static_cast<std::size_t>(events[static_cast<std::size_t>(i)].data.u64));
  }

  /// A closed loop: each sends the next message when it has the last one's answer. The number of requests that were answered.
  std::size_t play(std::size_t requests) {
    std::size_t sent = std::min(requests, all_.size());
    std::size_t answered = 0;
    for (player& each : std::span{all_}.first(sent)) each.send_next();
    while (answered != requests) {
      wait(-1, [&](std::size_t which) {
        if (all_[which].receive() == 0) return;
        ++answered;
        if (sent == requests) return;
        ++sent;
        all_[which].send_next();
      });
    }
    return answered;
  }

 private:
  int set_;
  std::vector<player> all_;
};

}  // namespace bench
