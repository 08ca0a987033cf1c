// wake_busy: bytes come on a socket while the thread computes that has waited for that socket, and another thread of the same
// pool has nothing to do. One item is a byte's way, from its send until the task that waits for it has it. The thread computes for
// --size milliseconds at a time, and the next byte is sent 1 to 20 ms after the last one was read. Reported besides: the slow ones,
// the slowest, and how many bytes there were.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <random>
#include <thread>

#include "../harness/latencies.hpp"

namespace bench {

/// Both ends of a connection, blocking.
struct two_ends {
  explicit two_ends(const state& round) {
    round.verify(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both.data()) == 0);
  }
  two_ends(const two_ends&) = delete;
  ~two_ends() { close_mine(); }
  void send(const state& round) const {
    round.verify(::send(both[0], "x", 1, MSG_NOSIGNAL) == 1, "a byte was not sent");
  }
  void close_mine() noexcept {
    if (both[0] >= 0) ::close(both[0]);
    both[0] = -1;
  }
  int theirs() const noexcept { return both[1]; }  // whoever gets it closes it

  std::array<int, 2> both{-1, -1};
};

/// What the program's two tasks call.
class computation {
 public:
  /// By who has read a byte of `starts`.
  void compute() noexcept {
    is_under_way_.store(true, std::memory_order_release);
    for (std::size_t sum = 0; !is_over_.load(std::memory_order_acquire);) keep(sum += 1);
    is_under_way_.store(false, std::memory_order_release);
  }
  /// By who has read a byte of `meanwhile`.
  void came() noexcept {
    came_at_ = state::clock::now();
    bytes_.fetch_add(1, std::memory_order_release);
  }

  /// Sends bytes until the round's time is used up.
  void measure(state& round, const two_ends& starts, const two_ends& meanwhile) {
    using namespace std::chrono_literals;
    std::mt19937 random{1};
    latencies all;
    const auto begin = state::clock::now();
    do {
      is_over_.store(false, std::memory_order_release);
      starts.send(round);
      while (!is_under_way_.load(std::memory_order_acquire)) std::this_thread::sleep_for(100us);
      const auto end = state::clock::now() + std::chrono::milliseconds{round.size()};
      while (state::clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::microseconds{std::uniform_int_distribution{1'000, 20'000}(random)});
        const std::size_t before = bytes_.load(std::memory_order_relaxed);
        const auto sent = state::clock::now();
        meanwhile.send(round);
        while (bytes_.load(std::memory_order_acquire) == before) {
          std::this_thread::sleep_for(100us);
          if (state::clock::now() >= end) is_over_.store(true, std::memory_order_release);
        }
        all.add(came_at_ - sent);
      }
      is_over_.store(true, std::memory_order_release);
      while (is_under_way_.load(std::memory_order_acquire)) std::this_thread::sleep_for(100us);
      std::this_thread::sleep_for(10ms);  // all sleep
    } while (state::clock::now() - begin < round.budget());
    all.report(round);
    round.report("slowest us", all.quantile(1));
    round.report("bytes", static_cast<double>(bytes_.load(std::memory_order_relaxed)));
    round.measured(all.quantile(0.5) * 1e3);
  }

 private:
  // The flags carry nothing; the count has the edge from came_at_ to who measures.
  std::atomic<bool> is_under_way_{false}, is_over_{false};
  std::atomic<std::size_t> bytes_{0};
  state::clock::time_point came_at_;
};

}  // namespace bench
