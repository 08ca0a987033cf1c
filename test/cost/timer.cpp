// What timers cost their worker: no read-modify-write where it arms and cancels in its own wheel, since the wheel's lock is
// biased towards it; two elsewhere. And what a time limit adds to a wait.
#include <chrono>
#include <cstdio>
#include <utility>
#include <weft/channel.hpp>
#include <weft/clock.hpp>
#include <weft/pool.hpp>
#include <weft/scope.hpp>
#include <weft/timed.hpp>

#include "base/fence.hpp"
#include "measure.hpp"

namespace {

using namespace std::chrono_literals;
using weft::task;

constexpr int rounds = 10'000;

struct timer : weft::timer {
  timer() : weft::timer{[](weft::timer&) noexcept {}} {}
};

void arm_and_cancel() {
  timer one;
  weft::clock& clock = weft::real_clock();
  const auto at = clock.now() + 1h;
  for (int i = 0; i != rounds; ++i) {
    clock.arm(one, at);
    clock.cancel(one);
  }
}
task<> in_own_wheel() {
  arm_and_cancel();
  co_return;
}

using channel = weft::channel<int>;
task<> echo(channel& there, channel& back) {
  while (const auto number = co_await there.receive()) co_await back.send(*number);
}
// Each receive waits, until the other has answered.
template <bool limited>
task<> round_trips() {
  const auto body = [](weft::scope& s) -> task<> {
    channel there{0}, back{0};
    auto other = s.fork(echo(there, back));
    for (int i = 0; i != rounds; ++i) {
      co_await there.send(i);
      if constexpr (limited)
        co_await weft::timeout(1h, back.receive());
      else
        co_await back.receive();
    }
    there.close();
    co_await std::move(other);
  };
  co_await weft::with_scope(body);
}

// As cost::instructions(), on a worker.
task<> measure(const char* name, unsigned long operations, task<> (*body)()) {
  co_await body();
  cost::begin();
  co_await body();
  cost::end(name, operations);
}

}  // namespace

int main() {
  weft::detail::prepare_fences();
  if (!weft::detail::light_fences_are_free()) {
    std::puts("SKIPPED: the kernel, or this valgrind, has no membarrier");
    return 77;
  }
  // The clock's thread sleeps until this one is due: it does nothing while there is one that is due earlier.
  timer soonest;
  weft::real_clock().arm(soonest, weft::real_clock().now() + 10min);
  cost::instructions("arm and cancel, a plain thread", rounds, arm_and_cancel);
  weft::pool p{{.threads = 1, .use_caller = true}};
  p.run(measure("arm and cancel, a worker", rounds, in_own_wheel));
  p.run(measure("round trip", rounds, round_trips<false>));
  p.run(measure("round trip with a limit", rounds, round_trips<true>));
  weft::real_clock().cancel(soonest);
}
