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

coflux::fork<void, pool> mark(auto&&, bench::marks& all, std::size_t which) {
  all.set(which);
  co_return;
}

template <class Executor>
coflux::task<void, Executor, scheduler> spawn(auto, bench::marks& all) {
  auto&& context = co_await coflux::context();
  for (std::size_t i = 0; i != bench::bulk_tasks; ++i) static_cast<void>(mark(context, all, i));
}

template <class Executor>
std::size_t run_all(scheduler& where, bench::marks& all) {
  std::pmr::synchronized_pool_resource memory;
  auto environment = coflux::make_environment(&memory, where);
  {
    auto task = spawn<Executor>(environment, all);
    task.join();
  }
  return all.take();
}

}  // namespace

void bench::run(bench::state& state) {
  scheduler where{here{}, pool{threads_of(state.size())}};
  marks all;
  state.measure(bulk_tasks, bulk_tasks,
                [&] { return is_from_inside(state.size()) ? run_all<pool>(where, all) : run_all<here>(where, all); });
}
