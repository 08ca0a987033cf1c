#include "workload.hpp"

#include <libfork/core.hpp>
#include <libfork/schedule.hpp>

namespace {

constexpr auto sets = [](auto /*self*/, std::atomic<bool>* flag) -> lf::task<void> {
  flag->store(true, std::memory_order_release);
  co_return;
};

}  // namespace

void bench::run(bench::state& state) {
  lf::lazy_pool pool{threads_of(state.size())};
  wake_ups(state, [&](std::atomic<bool>& ran) { lf::detach(pool, sets, &ran); });
}
