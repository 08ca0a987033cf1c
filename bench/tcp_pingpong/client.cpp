// In the clock: what the server's process does from a request's coming to its answer, the system's work in its calls
// included. Not in it: connecting, the client.
#include "../harness/net/client.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <vector>

#include "../harness/net/server.hpp"
#include "workload.hpp"

namespace {

/// Sends, and checks the answers.
class player {
 public:
  player(const bench::server_process& server, std::size_t number) : at_{server, number}, number_{number} {}

  int socket() const noexcept { return at_.socket(); }

  void send_next() {
    std::memcpy(sent_.data(), &++sequence_, sizeof sequence_);
    std::memcpy(sent_.data() + sizeof sequence_, &number_, sizeof number_);
    at_.send(sent_.data(), sent_.size());
  }

  /// True: an answer is complete.
  bool receive() {
    const ssize_t size = ::read(at_.socket(), answer_.data() + have_, answer_.size() - have_);
    if (size <= 0) throw bench::wrong_result{"the server has closed a connection"};
    have_ += static_cast<std::size_t>(size);
    if (have_ != answer_.size()) return false;
    have_ = 0;
    if (answer_ != sent_) throw bench::wrong_result{"an answer is not what was sent"};
    return true;
  }

 private:
  using message = std::array<char, bench::message_bytes>;

  bench::connection at_;
  std::size_t number_, sequence_ = 0, have_ = 0;
  message sent_{}, answer_{};
};

class players {
 public:
  players(const bench::server_process& server, std::size_t count) : set_{::epoll_create1(EPOLL_CLOEXEC)} {
    all_.reserve(count);
    for (std::size_t i = 0; i != count; ++i) {
      all_.emplace_back(server, i);
      epoll_event wanted{.events = EPOLLIN, .data = {.ptr = &all_.back()}};
      if (::epoll_ctl(set_, EPOLL_CTL_ADD, all_.back().socket(), &wanted) != 0)
        throw bench::wrong_result{"epoll_ctl failed"};
    }
  }
  players(const players&) = delete;
  ~players() { ::close(set_); }

  std::size_t play(std::size_t requests) {
    std::size_t sent = std::min(requests, all_.size());
    std::size_t answered = 0;
    for (player& each : std::span{all_}.first(sent)) each.send_next();
    std::array<epoll_event, 256> events;
    while (answered != requests) {
      const int count = ::epoll_wait(set_, events.data(), static_cast<int>(events.size()), -1);
      if (count < 0 && errno != EINTR) throw bench::wrong_result{"epoll_wait failed"};
      for (int i = 0; i < count; ++i) {
        player& each = *static_cast<player*>(events[static_cast<std::size_t>(i)].data.ptr);
        if (!each.receive()) continue;
        ++answered;
        if (sent == requests) continue;
        ++sent;
        each.send_next();
      }
    }
    return answered;
  }

 private:
  int set_;
  std::vector<player> all_;
};

}  // namespace

void bench::run(state& state) {
  raise_descriptor_limit();
  const std::size_t count = connections_of(state.size());
  const server_process server{state, {std::to_string(server_threads_of(state.size())), std::to_string(large_buffer)}};
  players all{server, count};
  const std::size_t requests = std::max<std::size_t>(1000, 20 * count);
  state.measure(static_cast<double>(requests), requests, [&] { return all.play(requests); });
}
