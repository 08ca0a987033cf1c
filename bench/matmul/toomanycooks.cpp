// spawn_tuple, on the library's own pool.
#include "workload.hpp"

#include "../harness/harness.hpp"

#define TMC_PRIORITY_COUNT 1
#define TMC_TRIVIAL_TASK
#define TMC_IMPL
#include <tmc/all_headers.hpp>

static tmc::task<void> multiply(bench::product all) {
  if (all.is_small()) {
    all.add();
    co_return;
  }
  const auto half = all.halves();
  if (half.in_turn) {
    co_await multiply(half.first);
    co_await multiply(half.second);
  } else {
    co_await tmc::spawn_tuple(multiply(half.first), multiply(half.second));
  }
}

void bench::run(bench::state& state) {
  tmc::cpu_executor().set_thread_count(state.size()).init();
  {
    matrices m;
    state.measure(
        1, true, [&] { return m.next(); },
        [&](const product& all) {
          tmc::post_waitable(tmc::cpu_executor(), multiply(all), 0).get();
          return m.is_right();
        });
  }
  tmc::cpu_executor().teardown();
}
