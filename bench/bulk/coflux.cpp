// Forks onto its pool: of a task that runs there, or on the caller's thread.
#include "workload.hpp"

#include "../harness/harness.hpp"

#include <coflux/executor.hpp>
#include <coflux/scheduler.hpp>
#include <coflux/task.hpp>
#include <memory_resource>

namespace {

using here = coflux::noop_executor;
using pool = coflux::thread_pool_executor<>;
using scheduler = coflux::scheduler<here, pool>;

coflux::fork<void, pool> nothing(auto&&) { co_return; }

template <class Executor>
coflux::task<void, Executor, scheduler> spawn(auto, std::size_t& made) {
  auto&& context = co_await coflux::context();
  for (; made != bench::bulk_tasks; ++made) static_cast<void>(nothing(context));
}

template <class Executor>
std::size_t all(scheduler& where) {
  std::pmr::synchronized_pool_resource memory;
  auto environment = coflux::make_environment(&memory, where);
  std::size_t made = 0;
  {
    auto task = spawn<Executor>(environment, made);
    task.join();
  }
  return made;
}

}  // namespace

void bench::run(bench::state& state) {
  scheduler where{here{}, pool{threads_of(state.size())}};
  state.measure(bulk_tasks, bulk_tasks,
                [&] { return is_from_inside(state.size()) ? all<pool>(where) : all<here>(where); });
}
