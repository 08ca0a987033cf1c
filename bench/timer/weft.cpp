#include "workload.hpp"

#include <vector>
#include <weft/clock.hpp>
#include <weft/hop.hpp>
#include <weft/pool.hpp>
#include <weft/task.hpp>

namespace {

struct timer : weft::timer {
  timer() : weft::timer{[](weft::timer&) noexcept {}} {}
};

weft::task<std::size_t> arm_and_cancel(timer& one) {
  weft::clock& clock = weft::current_clock();
  const auto at = clock.now() + bench::timer_limit;
  std::size_t cancelled = 0;
  for (std::size_t i = 0; i != bench::timer_rounds; ++i) {
    clock.arm(one, at);
    cancelled += clock.cancel(one);
  }
  co_return cancelled;
}

template <class Canceller>
weft::task<> arm(std::vector<timer>& batch, Canceller& cancel) {
  weft::clock& clock = weft::current_clock();
  const auto at = clock.now() + bench::timer_limit;
  for (std::size_t i = 0; i != bench::timer_rounds; i += batch.size()) {
    for (timer& one : batch) clock.arm(one, at);
    cancel();
  }
  co_return;
}

weft::task<> arm_beside(std::vector<timer>& beside) {
  weft::clock& clock = weft::current_clock();
  const auto now = clock.now();
  for (timer& one : beside) clock.arm(one, now + bench::due_beside());
  co_return;
}

}  // namespace

void bench::run(bench::state& state) {
  const weft::pool workers{{.threads = 1}};
  const auto on_pool = [&](auto work) { return weft::sync_wait(weft::start_on(workers.executor(), std::move(work))); };
  if (state.size() == by_another_thread) {
    std::vector<timer> batch(timer_batch);
    std::size_t cancelled = 0;
    canceller cancel{[&] {
      for (timer& one : batch) cancelled += weft::real_clock().cancel(one);
    }};
    state.measure(timer_rounds, timer_rounds, [&] {
      cancelled = 0;
      on_pool(arm(batch, cancel));
      return cancelled;
    });
    return;
  }
  std::vector<timer> beside(timers_beside(state.size()));
  on_pool(arm_beside(beside));
  timer one;
  state.measure(timer_rounds, timer_rounds, [&] { return on_pool(arm_and_cancel(one)); });
  for (timer& each : beside) weft::real_clock().cancel(each);
}
