#include "workload.hpp"

#include "../harness/harness.hpp"

#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_reduce.h>
#include <tbb/task_arena.h>
#include <functional>

void bench::run(bench::state& state) {
  const tbb::global_control limit{tbb::global_control::max_allowed_parallelism, threads_of(state.size())};
  tbb::task_arena arena{static_cast<int>(threads_of(state.size()))};
  const auto each_of = [&](numbers& all) {
    const auto piece = [&](const tbb::blocked_range<std::size_t>& part) {
      for (std::size_t i = part.begin(); i != part.end(); ++i) hash_it(all[i]);
    };
    arena.execute([&] { tbb::parallel_for(tbb::blocked_range<std::size_t>{0, all.size()}, piece); });
  };
  const auto sum_of = [&](const numbers& all) {
    const auto piece = [&](const tbb::blocked_range<std::size_t>& part, std::uint64_t sum) {
      for (std::size_t i = part.begin(); i != part.end(); ++i) sum += hash_of(all[i]);
      return sum;
    };
    const tbb::blocked_range<std::size_t> whole{0, all.size()};
    return arena.execute([&] { return tbb::parallel_reduce(whole, std::uint64_t{0}, piece, std::plus<>{}); });
  };
  measure_loops(state, each_of, sum_of);
}
