// In the clock: what the server's process does from a message's coming to its answer, the system's work in its calls included. Not
// in it: connecting, handshakes, the client.
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "../harness/net/server.hpp"
#include "../harness/net/tls_client.hpp"
#include "workload.hpp"

namespace {

using bench::must;

class clients {
 public:
  clients(const bench::server_process& to, SSL_CTX* by, std::size_t bytes)
      : set_{::epoll_create1(EPOLL_CLOEXEC)}, message_(bytes), answer_(bytes) {
    for (std::size_t i = 0; i != bytes; ++i) message_[i] = static_cast<char>(i * 7);
    all_.reserve(bench::clients);
    for (std::size_t i = 0; i != bench::clients; ++i) {
      bench::tls_client& made = all_.emplace_back(to, by, i);
      epoll_event wanted{.events = EPOLLIN, .data = {.u64 = i}};
      must(::epoll_ctl(set_, EPOLL_CTL_ADD, made.socket(), &wanted) == 0, "epoll_ctl failed");
      made.send(message_);
      made.receive(answer_);
    }
  }
  clients(const clients&) = delete;
  ~clients() { ::close(set_); }

  // A closed loop. How many have come back right.
  std::size_t play(std::size_t messages) {
    std::size_t sent = 0, right = 0, answered = 0;
    for (const bench::tls_client& each : all_) {
      each.send(message_);
      ++sent;
    }
    std::array<epoll_event, bench::clients> events;
    while (answered != messages) {
      const int count = ::epoll_wait(set_, events.data(), static_cast<int>(events.size()), -1);
      for (int i = 0; i < count; ++i) {
        const bench::tls_client& each = all_[events[static_cast<std::size_t>(i)].data.u64];
        each.receive(answer_);
        ++answered;
        right += answer_ == message_ ? 1 : 0;
        if (sent == messages) continue;
        each.send(message_);
        ++sent;
      }
    }
    return right;
  }

 private:
  int set_;
  std::vector<char> message_, answer_;
  std::vector<bench::tls_client> all_;
};

}  // namespace

void bench::run(state& state) {
  constexpr std::size_t few = 2000, many = 10'000;  // in one call
  const credentials own;
  const server_process server{
      state, {"1", std::to_string(largest_message), std::to_string(bench::clients), own.chain(), own.key()}};
  const tls_context context = make_tls_context();
  ::clients all{server, context.get(), state.size()};
  const std::size_t messages = state.size() > 1000 ? few : many;
  state.measure(static_cast<double>(messages), messages, [&] { return all.play(messages); });
}
