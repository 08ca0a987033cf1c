#include "workload.hpp"

#include "../harness/harness.hpp"

#include <libfork/core.hpp>
#include <libfork/schedule.hpp>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // call(…) is the spelling that g++ 12 knows, too

namespace {

using bench::number;

constexpr auto merge = [](auto merge, number* left, number* left_end, number* right, number* right_end,
                          number* into) -> lf::task<> {
  if (bench::is_small(left, left_end, right, right_end)) {
    std::merge(left, left_end, right, right_end, into);
    co_return;
  }
  const auto [a, b] = bench::cut(left, left_end, right, right_end);
  co_await lf::fork(merge)(left, a, right, b, into);
  co_await lf::call(merge)(a, left_end, b, right_end, into + (a - left) + (b - right));
  co_await lf::join;
};

// Into `room` if `moves`, else in place.
constexpr auto sort = [](auto sort, number* values, number* room, std::size_t count, bool moves) -> lf::task<> {
  if (count <= bench::sort_grain) {
    std::sort(values, values + count);
    if (moves) std::copy(values, values + count, room);
    co_return;
  }
  const std::size_t half = count / 2;
  co_await lf::fork(sort)(values, room, half, !moves);
  co_await lf::call(sort)(values + half, room + half, count - half, !moves);
  co_await lf::join;
  number* const from = moves ? values : room;
  co_await lf::call(merge)(from, from + half, from + half, from + count, moves ? room : values);
  co_await lf::join;
};

}  // namespace

void bench::run(bench::state& state) {
  lf::lazy_pool pool{state.size()};
  state.measure(sorted_numbers, true, unsorted, [&](sort_input& all) {
    lf::sync_wait(pool, sort, all.values.data(), all.room.data(), sorted_numbers, false);
    return std::is_sorted(all.values.begin(), all.values.end());
  });
}
