#include "workload.hpp"

#include <weft/combine.hpp>
#include <weft/pool.hpp>

namespace {

weft::task<> sets(std::atomic<bool>& flag) {
  flag.store(true, std::memory_order_release);
  co_return;
}

weft::task<> yields(const std::atomic<bool>& over) {
  while (!over.load(std::memory_order_relaxed)) co_await weft::yield();
}

}  // namespace

void bench::run(bench::state& state) {
  std::atomic<bool> over{false};
  const weft::pool pool{{.threads = static_cast<unsigned>(state.size())}};
  for (std::size_t i = 0; i != yielding_tasks; ++i)
    weft::start(pool.executor(), yields(over), [](weft::result<void>) {});
  short_ones(state, over,
             [&](std::atomic<bool>& ran) { weft::start(pool.executor(), sets(ran), [](weft::result<void>) {}); });
  over = true;
}
