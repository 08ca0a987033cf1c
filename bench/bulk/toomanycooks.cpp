// Its own call for many: tasks are made as they are posted.
#include "workload.hpp"

#include "../harness/harness.hpp"

#define TMC_PRIORITY_COUNT 1
#define TMC_TRIVIAL_TASK
#define TMC_IMPL
#include <ranges>
#include <tmc/all_headers.hpp>

static tmc::task<void> mark(bench::marks& all, std::size_t which) {
  all.set(which);
  co_return;
}

static auto as_many(bench::marks& all) {
  return std::views::iota(std::size_t{0}, bench::bulk_tasks) |
         std::views::transform([&all](std::size_t which) { return mark(all, which); });
}

static tmc::task<void> from_inside(bench::marks& all) {
  auto many = as_many(all);
  co_await tmc::spawn_many(many.begin(), bench::bulk_tasks);
}

void bench::run(bench::state& state) {
  tmc::cpu_executor().set_thread_count(threads_of(state.size())).init();
  marks all;
  state.measure(bulk_tasks, bulk_tasks, [&] {
    auto many = as_many(all);
    if (is_from_inside(state.size()))
      tmc::post_waitable(tmc::cpu_executor(), from_inside(all), 0).get();
    else
      tmc::post_bulk_waitable(tmc::cpu_executor(), many.begin(), bulk_tasks, 0).get();
    return all.take();
  });
  tmc::cpu_executor().teardown();
}
