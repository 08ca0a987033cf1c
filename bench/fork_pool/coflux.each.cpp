// Each fork is given back before the next one is made, as weft's are.
#include "workload.hpp"

#include <coflux/executor.hpp>
#include <coflux/task.hpp>

namespace {

using executor = coflux::noop_executor;

coflux::fork<void, executor> trivial(auto&&) { co_return; }

coflux::task<void, executor> forks(auto&&, std::size_t count, std::size_t& made) {
  for (; made != count; ++made) {
    static_cast<void>(trivial(co_await coflux::context()));
    co_await coflux::this_task::destroy_forks();
  }
}

}  // namespace

void bench::run(bench::state& state) {
  measure_pooled_forks(state, [](std::pmr::memory_resource* memory, std::size_t count) {
    auto environment = coflux::make_environment(memory, coflux::scheduler<executor>{});
    std::size_t made = 0;
    auto task = forks(environment, count, made);
    task.join();
    return made;
  });
}
