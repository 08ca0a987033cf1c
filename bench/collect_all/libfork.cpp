// Fork and join on a pool of one worker. libfork starts what it forks, and its frames lie on a stack, so that chains can't be
// all made first: to be compared with weft.made.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <libfork/core.hpp>
#include <libfork/schedule.hpp>
#include <numeric>
#include <vector>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // call(…) is the spelling that g++ 12 knows, too

namespace {

template <int N>
constexpr auto lazy_fn = [](auto) -> lf::task<int> {
  if constexpr (N == 0) {
    int one = 1;
    asm volatile("" : "+r"(one));  // else clang computes the whole chain while it compiles
    co_return one;
  } else {
    int below;
    co_await lf::call(&below, lazy_fn<N - 1>)();
    co_return N + below;
  }
};

constexpr auto collect_all = [](auto) -> lf::task<long> {
  std::vector<int> results(bench::collect_all_tasks);
  for (int& result : results) co_await lf::fork(&result, lazy_fn<bench::collect_all_levels>)();
  co_await lf::join;
  co_return std::accumulate(results.begin(), results.end(), 0L);
};

}  // namespace

void bench::run(bench::state& state) {
  lf::lazy_pool pool{1};
  state.measure(1, collect_all_result, [&] { return lf::sync_wait(pool, collect_all); });
}
