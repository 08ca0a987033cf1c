// Its own call for many: tasks are made as they are posted.
#include "workload.hpp"

#include "../harness/harness.hpp"

#define TMC_PRIORITY_COUNT 1
#define TMC_TRIVIAL_TASK
#define TMC_IMPL
#include <ranges>
#include <tmc/all_headers.hpp>

static tmc::task<void> nothing() { co_return; }

static auto as_many() {
  return std::views::iota(std::size_t{0}, bench::bulk_tasks) |
         std::views::transform([](std::size_t) { return nothing(); });
}

static tmc::task<std::size_t> from_inside() {
  co_await tmc::spawn_many(as_many().begin(), bench::bulk_tasks);
  co_return bench::bulk_tasks;
}

void bench::run(bench::state& state) {
  tmc::cpu_executor().set_thread_count(threads_of(state.size())).init();
  if (is_from_inside(state.size()))
    state.measure(bulk_tasks, bulk_tasks,
                  [] { return tmc::post_waitable(tmc::cpu_executor(), from_inside(), 0).get(); });
  else
    state.measure(bulk_tasks, bulk_tasks, [] {
      tmc::post_bulk_waitable(tmc::cpu_executor(), as_many().begin(), bulk_tasks, 0).get();
      return bulk_tasks;
    });
  tmc::cpu_executor().teardown();
}
