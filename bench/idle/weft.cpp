#include "workload.hpp"

#include <weft/pool.hpp>
#include <weft/task.hpp>

namespace {

weft::task<> sets(std::atomic<bool>& flag) {
  flag.store(true, std::memory_order_release);
  co_return;
}

}  // namespace

void bench::run(bench::state& state) {
  const weft::pool pool{{.threads = static_cast<unsigned>(threads_of(state.size()))}};
  wake_ups(state, [&](std::atomic<bool>& ran) { weft::start(pool.executor(), sets(ran), [](weft::result<void>) {}); });
}
