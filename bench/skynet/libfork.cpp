#include "workload.hpp"

#include "../harness/harness.hpp"

#include <array>
#include <libfork/core.hpp>
#include <libfork/schedule.hpp>
#include <numeric>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // call(…) is the spelling that g++ 12 knows, too

namespace {

constexpr auto skynet = [](auto skynet, long number, int depth) -> lf::task<long> {
  if (depth == 0) co_return number;
  std::array<long, bench::skynet_width> sums;
  for (std::size_t i = 0; i + 1 != sums.size(); ++i)
    co_await lf::fork(&sums[i], skynet)(number * 10 + static_cast<long>(i), depth - 1);
  co_await lf::call(&sums.back(), skynet)(number * 10 + 9, depth - 1);
  co_await lf::join;
  co_return std::accumulate(sums.begin(), sums.end(), 0L);
};

}  // namespace

void bench::run(bench::state& state) {
  lf::lazy_pool pool{state.size()};
  state.measure(1, skynet_result, [&] { return lf::sync_wait(pool, skynet, 0L, skynet_depth); });
}
