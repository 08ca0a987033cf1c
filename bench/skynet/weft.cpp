#include "workload.hpp"

#include "../harness/harness.hpp"

#include <tuple>
#include <utility>
#include <weft/combine.hpp>
#include <weft/pool.hpp>

namespace {

weft::task<long> skynet(long number, int depth) {
  if (depth == 0) co_return number;
  auto below = [&](long child) { return skynet(number * 10 + child, depth - 1); };
  auto sums = co_await weft::when_all(below(0), below(1), below(2), below(3), below(4), below(5), below(6), below(7),
                                      below(8), below(9));
  co_return std::apply([](auto... sum) { return (sum + ...); }, sums);
}

}  // namespace

void bench::run(bench::state& state) {
  const weft::pool pool{{.threads = static_cast<unsigned>(state.size())}};
  state.measure(1, skynet_result,
                [&] { return weft::sync_wait(weft::start_on(pool.executor(), skynet(0, skynet_depth))); });
}
