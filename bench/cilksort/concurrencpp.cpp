// One half is started on the pool, the other goes on where its parent is.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <concurrencpp/concurrencpp.h>
#include <memory>

using bench::number;
using pool = std::shared_ptr<concurrencpp::thread_pool_executor>;

static concurrencpp::result<void> start(concurrencpp::executor_tag, pool, concurrencpp::lazy_result<void> lazy) {
  co_await lazy;
}

static concurrencpp::lazy_result<void> merge(pool on, number* left, number* left_end, number* right, number* right_end,
                                             number* into) {
  if (bench::is_small(left, left_end, right, right_end)) {
    std::merge(left, left_end, right, right_end, into);
    co_return;
  }
  const auto [a, b] = bench::cut(left, left_end, right, right_end);
  auto forked = start({}, on, merge(on, left, a, right, b, into));
  co_await merge(on, a, left_end, b, right_end, into + (a - left) + (b - right));
  co_await forked;
}

// Into `room` if `moves`, else in place.
static concurrencpp::lazy_result<void> sort(pool on, number* values, number* room, std::size_t count, bool moves) {
  if (count <= bench::sort_grain) {
    std::sort(values, values + count);
    if (moves) std::copy(values, values + count, room);
    co_return;
  }
  const std::size_t half = count / 2;
  auto forked = start({}, on, sort(on, values, room, half, !moves));
  co_await sort(on, values + half, room + half, count - half, !moves);
  co_await forked;
  number* const from = moves ? values : room;
  co_await merge(on, from, from + half, from + half, from + count, moves ? room : values);
}

void bench::run(bench::state& state) {
  const auto on =
      std::make_shared<concurrencpp::thread_pool_executor>("cilksort", state.size(), std::chrono::seconds{60});
  state.measure(sorted_numbers, true, unsorted, [&](sort_input& all) {
    start({}, on, sort(on, all.values.data(), all.room.data(), sorted_numbers, false)).get();
    return std::is_sorted(all.values.begin(), all.values.end());
  });
  on->shutdown();
}
