// The standard's parallel algorithms, which libstdc++ runs on oneTBB.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <algorithm>
#include <execution>
#include <functional>
#include <numeric>

void bench::run(bench::state& state) {
  using std::execution::par;
  const tbb::global_control limit{tbb::global_control::max_allowed_parallelism, threads_of(state.size())};
  tbb::task_arena arena{static_cast<int>(threads_of(state.size()))};
  measure_loops(
      state, [&](numbers& all) { arena.execute([&] { std::for_each(par, all.begin(), all.end(), hash_it); }); },
      [&](const numbers& all) {
        return arena.execute([&] {
          return std::transform_reduce(par, all.begin(), all.end(), std::uint64_t{0}, std::plus<>{}, hash_of);
        });
      });
}
