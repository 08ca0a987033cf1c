#include "workload.hpp"

#include "../harness/harness.hpp"

#include <weft/combine.hpp>
#include <weft/pool.hpp>

namespace {

using bench::number;

weft::task<> merge(number* left, number* left_end, number* right, number* right_end, number* into) {
  if (bench::is_small(left, left_end, right, right_end)) {
    std::merge(left, left_end, right, right_end, into);
    co_return;
  }
  const auto [a, b] = bench::cut(left, left_end, right, right_end);
  co_await weft::when_all(merge(left, a, right, b, into),
                          merge(a, left_end, b, right_end, into + (a - left) + (b - right)));
}

// Into `room` if `moves`, else in place.
weft::task<> sort(number* values, number* room, std::size_t count, bool moves) {
  if (count <= bench::sort_grain) {
    std::sort(values, values + count);
    if (moves) std::copy(values, values + count, room);
    co_return;
  }
  const std::size_t half = count / 2;
  co_await weft::when_all(sort(values, room, half, !moves), sort(values + half, room + half, count - half, !moves));
  number* const from = moves ? values : room;
  co_await merge(from, from + half, from + half, from + count, moves ? room : values);
}

}  // namespace

void bench::run(bench::state& state) {
  const weft::pool pool{{.threads = static_cast<unsigned>(state.size())}};
  state.measure(sorted_numbers, true, unsorted, [&](sort_input& all) {
    weft::sync_wait(weft::start_on(pool.executor(), sort(all.values.data(), all.room.data(), sorted_numbers, false)));
    return std::is_sorted(all.values.begin(), all.values.end());
  });
}
