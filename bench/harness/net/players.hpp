// Connections that send requests to a server and check its answers.
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

#include "client.hpp"

namespace bench {

/// The answers on one connection, of `bytes` each; `Room` bytes of them are taken at a time.
template <std::size_t Room>
class equal_answers {
 public:
  explicit equal_answers(std::size_t bytes) : bytes_{bytes} {
    if (bytes > Room) throw wrong_result{"the server's answers are longer than the client expects"};
  }

  /// Takes what has come, of at most `most` answers, and calls `check(answer)` for each that is complete. How many these are.
  template <class Check>
  std::size_t receive(int socket, std::size_t most, Check&& check) {
    const std::size_t wanted = std::min(most, Room / bytes_) * bytes_ - have_;
    const ssize_t size = ::read(socket, buffer_.data() + have_, wanted);
    if (size <= 0) throw wrong_result{"the server has closed a connection"};
    have_ += static_cast<std::size_t>(size);
    const std::size_t complete = have_ / bytes_;
    for (std::size_t i = 0; i != complete; ++i) check(buffer_.data() + i * bytes_);
    have_ -= complete * bytes_;
    std::memmove(buffer_.data(), buffer_.data() + complete * bytes_, have_);
    return complete;
  }

 private:
  std::size_t bytes_, have_ = 0;  // have_: of answers that are not complete
  std::array<char, Room> buffer_{};
};

/// So many of them, in one epoll set. A `Player` is a connection, made of `(server, number)`. It has
///   `int socket()`;
///   `void send_next()`, its next request, also before it has the answers of earlier ones, which come in the same order;
///   `size_t receive(most)`, which takes what has come and blocks where nothing has: how many answers that completes, at most
///   `most`, one if it is not told.
template <class Player>
class players_of {
 public:
  template <class Server>
  players_of(const Server& server, std::size_t count) : set_{::epoll_create1(EPOLL_CLOEXEC)} {
    constexpr std::size_t at_once = 512;  // the system's queue of those that the server has yet to accept ends
    all_.reserve(count);
    for (std::size_t i = 0; i != count; ++i) {
      Player& made = all_.emplace_back(server, i);
      epoll_event wanted{.events = EPOLLIN, .data = {.u64 = i}};
      if (::epoll_ctl(set_, EPOLL_CTL_ADD, made.socket(), &wanted) != 0) throw wrong_result{"epoll_ctl failed"};
      if (i % at_once != at_once - 1) continue;
      made.send_next();
      while (made.receive() == 0) {
      }
    }
  }
  players_of(const players_of&) = delete;
  players_of& operator=(const players_of&) = delete;
  ~players_of() { ::close(set_); }

  std::size_t size() const noexcept { return all_.size(); }
  Player& operator[](std::size_t which) noexcept { return all_[which]; }

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
    for (Player& each : std::span{all_}.first(sent)) each.send_next();
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
  std::vector<Player> all_;
};

}  // namespace bench
