// Its time points are a loop's milliseconds, of which uv_timer_start() adds the limit to the loop's own. Its timers are one
// thread's alone.
#include "workload.hpp"

#include <uv.h>
#include <vector>

void bench::run(bench::state& state) {
  if (state.size() == by_another_thread) throw not_here{"libuv's timers are used by one thread"};
  uv_loop_t loop;
  uv_loop_init(&loop);
  std::vector<uv_timer_t> beside(timers_beside(state.size()));
  for (uv_timer_t& one : beside) {
    uv_timer_init(&loop, &one);
    uv_timer_start(&one, [](uv_timer_t*) {}, static_cast<std::uint64_t>(due_beside().count()), 0);
  }
  uv_timer_t one;
  uv_timer_init(&loop, &one);
  constexpr std::chrono::milliseconds limit = timer_limit;
  state.measure(timer_rounds, timer_rounds, [&] {
    std::size_t cancelled = 0;
    for (std::size_t i = 0; i != timer_rounds; ++i) {
      uv_timer_start(&one, [](uv_timer_t*) {}, limit.count(), 0);
      cancelled += uv_timer_stop(&one) == 0;
    }
    return cancelled;
  });
}
