// A fork of two halves of a row's children, down to one.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <citor/thread_pool.h>

namespace {

struct row_of {
  std::array<std::size_t, bench::queens> safe;
  std::size_t count = 0;
};

long place(citor::ThreadPool& pool, const bench::board& placed, std::size_t row);

long place_some(citor::ThreadPool& pool, const bench::board& placed, std::size_t row, const row_of& all,
                std::size_t from, std::size_t to) {
  if (to - from == 1) return place(pool, bench::with_queen(placed, row, all.safe[from]), row + 1);
  const std::size_t middle = from + (to - from) / 2;
  long left = 0, right = 0;
  pool.forkJoin<citor::CcdLocalForkJoinHints>([&] { left = place_some(pool, placed, row, all, from, middle); },
                                              [&] { right = place_some(pool, placed, row, all, middle, to); });
  return left + right;
}

long place(citor::ThreadPool& pool, const bench::board& placed, std::size_t row) {
  if (row == bench::queens) return 1;
  row_of all;
  for (std::size_t column = 0; column != bench::queens; ++column)
    if (bench::is_safe(placed, row, column)) all.safe[all.count++] = column;
  return all.count == 0 ? 0 : place_some(pool, placed, row, all, 0, all.count);
}

}  // namespace

void bench::run(bench::state& state) {
  citor::ThreadPool pool{state.size()};
  state.measure(1, queens_result, [&] { return place(pool, {}, 0); });
}
