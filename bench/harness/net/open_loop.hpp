// A client that sends at a fixed rate, whether or not earlier requests have been answered, as clients do that don't know of
// each other. An answer's time is from when its request was to be sent, so that a slow answer counts for all requests that it
// held up in the client (no "coordinated omission").
//
// The server has one thread on one processor, and this client, which never sleeps, has another.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "../harness.hpp"
#include "../latencies.hpp"
#include "client.hpp"

namespace bench {

/// Of those that the process may use: the last one for the server, the first one for the client.
struct processors {
  std::size_t server, client;
};

inline processors find_processors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2)
    throw not_here{"it takes two processors: one for the server, and one for a client that never sleeps"};
  processors out{.server = CPU_SETSIZE - 1, .client = 0};
  while (!CPU_ISSET(out.server, &allowed)) --out.server;
  while (!CPU_ISSET(out.client, &allowed)) ++out.client;
  return out;
}

inline void stay_on(std::size_t processor) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  if (::sched_setaffinity(0, sizeof one, &one) != 0) throw wrong_result{"sched_setaffinity failed"};
}

/// `Requests` are numbered from 0. It has
///   `bool try_send(number)`, false: not now, its time goes on;
///   `void receive(answered)`, which calls `answered(number)` for each answer that has come, and does not wait;
///   `bool may_lose`, whether some are never answered.
template <class Requests>
class open_loop {
 public:
  using clock = state::clock;

  open_loop(Requests& requests, std::size_t rate) : requests_{requests}, rate_{rate} {}

  /// As many requests as there are in that time. How many.
  std::size_t play(clock::duration time) {
    const auto total = std::max<std::size_t>(
        1, static_cast<std::size_t>(std::chrono::duration<double>{time}.count() * static_cast<double>(rate_)));
    start_ = clock::now();
    for (last_ = start_; answered_ != total;) {
      const auto began = clock::now();
      if (sent_ == total && Requests::may_lose && began - std::max(last_, due(total)) > patience) break;
      const std::size_t before = sent_ + answered_;
      for (auto now = began; sent_ != total && due(sent_) <= now && requests_.try_send(sent_); ++sent_)
        lateness_.add(now - due(sent_));
      requests_.receive([this](std::size_t number) {
        last_ = clock::now();
        latencies_.add(last_ - due(number));
        ++answered_;
      });
      if (sent_ + answered_ != before) busy_ += clock::now() - began;  // else a look in vain
    }
    return total;
  }

  void report(state& to) {
    const auto answered = static_cast<double>(answered_);
    latencies_.report(to);
    to.report("client late p99 us", lateness_.quantile(0.99));
    to.report("client us a request",
              std::chrono::duration<double, std::micro>{busy_}.count() / static_cast<double>(sent_));
    to.report("answers in a second", answered / std::chrono::duration<double>{last_ - start_}.count());
    if (Requests::may_lose) to.report("lost of a million", 1e6 * (1 - answered / static_cast<double>(sent_)));
  }

 private:
  static constexpr std::chrono::milliseconds patience{100};  // with answers that may be lost

  clock::time_point due(std::size_t request) const noexcept {
    const std::chrono::duration<double> after{static_cast<double>(request) / static_cast<double>(rate_)};
    return start_ + std::chrono::duration_cast<clock::duration>(after);
  }

  Requests& requests_;
  std::size_t rate_;
  clock::time_point start_{}, last_{};  // last_: of an answer
  clock::duration busy_{};
  std::size_t sent_ = 0, answered_ = 0;
  latencies latencies_, lateness_;
};

/// Plays `make()`, twice: to warm up, and in the clock, which is the server's processor time.
template <class Make>
void play_open_loop(state& to, const server_process& server, std::size_t rate, Make make) {
  auto first = make();
  open_loop{first, rate}.play(to.warm_up());
  auto second = make();
  open_loop measured{second, rate};
  const auto before = server.processor_time();
  const std::size_t requests = measured.play(to.budget());
  const std::chrono::duration<double, std::nano> used = server.processor_time() - before;
  to.measured(used.count() / static_cast<double>(requests));
  to.report("requests in a second", static_cast<double>(rate));
  measured.report(to);
}

}  // namespace bench
