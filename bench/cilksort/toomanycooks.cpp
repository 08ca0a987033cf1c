// spawn_tuple, on the library's own pool.
#include "workload.hpp"

#include "../harness/harness.hpp"

#define TMC_PRIORITY_COUNT 1
#define TMC_TRIVIAL_TASK
#define TMC_IMPL
#include <tmc/all_headers.hpp>

using bench::number;

static tmc::task<void> merge(number* left, number* left_end, number* right, number* right_end, number* into) {
  if (bench::is_small(left, left_end, right, right_end)) {
    std::merge(left, left_end, right, right_end, into);
    co_return;
  }
  const auto [a, b] = bench::cut(left, left_end, right, right_end);
  co_await tmc::spawn_tuple(merge(left, a, right, b, into),
                            merge(a, left_end, b, right_end, into + (a - left) + (b - right)));
}

// Into `room` if `moves`, else in place.
static tmc::task<void> sort(number* values, number* room, std::size_t count, bool moves) {
  if (count <= bench::sort_grain) {
    std::sort(values, values + count);
    if (moves) std::copy(values, values + count, room);
    co_return;
  }
  const std::size_t half = count / 2;
  co_await tmc::spawn_tuple(sort(values, room, half, !moves), sort(values + half, room + half, count - half, !moves));
  number* const from = moves ? values : room;
  co_await merge(from, from + half, from + half, from + count, moves ? room : values);
}

void bench::run(bench::state& state) {
  tmc::cpu_executor().set_thread_count(state.size()).init();
  state.measure(sorted_numbers, true, unsorted, [&](sort_input& all) {
    tmc::post_waitable(tmc::cpu_executor(), sort(all.values.data(), all.room.data(), sorted_numbers, false), 0).get();
    return std::is_sorted(all.values.begin(), all.values.end());
  });
  tmc::cpu_executor().teardown();
}
