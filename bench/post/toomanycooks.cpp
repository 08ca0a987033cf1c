#include "workload.hpp"

#include "../harness/harness.hpp"

#define TMC_PRIORITY_COUNT 1
#define TMC_TRIVIAL_TASK
#define TMC_IMPL
#include <tmc/all_headers.hpp>

static tmc::task<void> counts(bench::posted& of) {
  of.ran();
  co_return;
}

void bench::run(bench::state& state) {
  tmc::cpu_executor().set_thread_count(state.size()).init();
  state.measure(posts, posts, [&] {
    posted all;
    return all.by_producers([](posted& of) { tmc::post(tmc::cpu_executor(), counts(of), 0); });
  });
  tmc::cpu_executor().teardown();
}
