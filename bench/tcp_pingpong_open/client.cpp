// tcp_pingpong_open: the requests of tcp_pingpong, but sent when it is time for them, whether or not earlier ones have been
// answered: an open loop, as of clients that don't know of each other. Each connection sends in its turn. One item is a
// request, and its time the server's processor time for it. Reported besides: how long answers take, from when the request
// was to be sent, so that those count in full that a slow answer holds up in the client (no "coordinated omission"); how many
// were answered in a second; and the client's processor time for one, which is the same work for all servers, but that more
// answers at once cost it less.
//
// --rate says how many requests there are in a second. The driver finds it at the start of its run, as half of what epoll by
// hand does without --rate, where this client is a closed loop; it is the same for all libraries. --size is the number of
// connections. The servers are those of tcp_pingpong.
//
// The server has one thread on one processor, and this client, which never sleeps, has another.
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "../harness/latencies.hpp"
#include "../harness/net/client.hpp"
#include "../harness/net/server.hpp"
#include "../tcp_pingpong/players.hpp"
#include "../tcp_pingpong/workload.hpp"

namespace {

using namespace std::chrono_literals;
using clock_type = bench::state::clock;

constexpr std::size_t most_waiting = 32;  // answers of a connection: what is sent then could fill the system's buffers

/// Of those that the process may use: the last one for the server, the first one for the client.
struct processors {
  std::size_t server, client;
};

processors find_processors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < 2)
    throw bench::not_here{"it takes two processors: one for the server, and one for a client that never sleeps"};
  processors out{.server = CPU_SETSIZE - 1, .client = 0};
  while (!CPU_ISSET(out.server, &allowed)) --out.server;
  while (!CPU_ISSET(out.client, &allowed)) ++out.client;
  return out;
}

void stay_on(std::size_t processor) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  if (::sched_setaffinity(0, sizeof one, &one) != 0) throw bench::wrong_result{"sched_setaffinity failed"};
}

class open_loop {
 public:
  open_loop(bench::players& all, std::size_t rate) : all_{all}, rate_{rate}, answered_(all.size(), 0) {}

  /// As many requests as there are in that time. How many.
  std::size_t play(clock_type::duration time) {
    busy_ = {};
    const auto total = std::max<std::size_t>(
        1, static_cast<std::size_t>(std::chrono::duration<double>{time}.count() * static_cast<double>(rate_)));
    start_ = clock_type::now();
    for (std::size_t sent = 0, answered = 0; answered != total;) {
      const auto began = clock_type::now();
      const std::size_t before = sent + answered;
      for (auto now = began; sent != total && due(sent) <= now; ++sent) {
        const std::size_t which = sent % all_.size();
        if (sent / all_.size() - answered_[which] >= most_waiting) break;  // its time goes on
        all_[which].send_next();
        lateness_.add(now - due(sent));
      }
      all_.wait(0, [&](std::size_t which) { answered += take_answers(which); });
      if (sent + answered != before) busy_ += clock_type::now() - began;  // else a look in vain
    }
    took_ = clock_type::now() - start_;
    requests_ = total;
    return total;
  }

  void report(bench::state& to) {
    const auto requests = static_cast<double>(requests_);
    latencies_.report(to);
    to.report("client late p99 us", lateness_.quantile(0.99));
    to.report("client us a request", std::chrono::duration<double, std::micro>{busy_}.count() / requests);
    to.report("answers in a second", requests / std::chrono::duration<double>{took_}.count());
  }

 private:
  clock_type::time_point due(std::size_t request) const noexcept {
    const std::chrono::duration<double> after{static_cast<double>(request) / static_cast<double>(rate_)};
    return start_ + std::chrono::duration_cast<clock_type::duration>(after);
  }

  std::size_t take_answers(std::size_t which) {
    const std::size_t count = all_[which].receive(most_waiting);
    const auto now = clock_type::now();
    for (std::size_t i = 0; i != count; ++i) latencies_.add(now - due(answered_[which]++ * all_.size() + which));
    return count;
  }

  bench::players& all_;
  std::size_t rate_;
  clock_type::time_point start_{};
  clock_type::duration busy_{}, took_{};
  std::size_t requests_ = 0;
  std::vector<std::size_t> answered_;  // of each connection
  bench::latencies latencies_, lateness_;
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
  open_loop{all, rate}.play(state.warm_up());
  open_loop measured{all, rate};
  const auto before = server.processor_time();
  const std::size_t requests = measured.play(state.budget());
  const std::chrono::duration<double, std::nano> used = server.processor_time() - before;
  state.measured(used.count() / static_cast<double>(requests));
  state.report("requests in a second", static_cast<double>(rate));
  measured.report(state);
}
