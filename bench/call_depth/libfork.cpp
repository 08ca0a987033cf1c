// The same recursion in libfork's spelling; see chain/libfork.cpp.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <libfork/core.hpp>
#include <libfork/schedule.hpp>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // call(…) is the spelling that g++ 12 knows, too

namespace {

constexpr auto sum_to = [](auto self, std::uint64_t n) -> lf::task<std::uint64_t> {
  if (n == 0) co_return 0;
  std::uint64_t below = 0;
  co_await lf::call(&below, self)(n - 1);
  co_return n + below;
};

}  // namespace

void bench::run(bench::state& state) {
  lf::lazy_pool pool{1};
  const std::uint64_t depth = state.size();
  state.measure(depth, sum_result(depth), [&] { return lf::sync_wait(pool, ::sum_to, depth); });
}
