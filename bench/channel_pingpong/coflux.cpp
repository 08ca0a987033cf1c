// channel<T[]>: on one thread on a worker of a worker_group, where it takes a quarter of what it does on the thread pool;
// on two on the pool, where two workers that call each other take twenty times that.
//
// A worker of the pool yields its processor for each job in the common queue that it didn't get with the last ones, which
// is each turn here. Beside another program on that processor a round trip therefore takes what that one is given, 3 ms:
// on a busy machine a round seems to hang.
#include "workload.hpp"

#include <coflux/channel.hpp>
#include <coflux/executor.hpp>
#include <coflux/scheduler.hpp>
#include <coflux/task.hpp>
#include <memory_resource>

namespace {

using pool = coflux::thread_pool_executor<>;
using workers = coflux::worker_group<1>;
using channel = coflux::channel<std::size_t[]>;

template <class Executor>
coflux::fork<void, Executor> echo(auto&&, channel& there, channel& back) {
  for (std::size_t i = 0; i != bench::pingpong_rounds; ++i) {
    std::size_t number = 0;
    if (!co_await (there >> number)) co_return;
    if (!co_await (back << number + 1)) co_return;
  }
}

template <class Executor, class Scheduler>
coflux::task<std::size_t, Executor, Scheduler> call(auto, channel& there, channel& back) {
  static_cast<void>(echo<Executor>(co_await coflux::context(), there, back));
  std::size_t number = 0;
  for (std::size_t i = 0; i != bench::pingpong_rounds; ++i) {
    const std::size_t sent = number;
    if (!co_await (there << sent)) co_return 0;
    if (!co_await (back >> number)) co_return 0;
  }
  co_return number;
}

template <class Executor, class Scheduler>
void run_on(bench::state& state, Scheduler scheduler) {
  std::pmr::synchronized_pool_resource memory;
  auto environment = coflux::make_environment(&memory, std::move(scheduler));
  state.measure(bench::pingpong_rounds, bench::pingpong_rounds, [&] {
    channel there, back;
    auto task = call<Executor, Scheduler>(environment, there, back);
    return task.get_result();
  });
}

}  // namespace

void bench::run(bench::state& state) {
  if (state.size() == 1)
    run_on<workers::worker<0>>(state, coflux::scheduler<workers>{});
  else
    run_on<pool>(state, coflux::scheduler<pool>{pool{state.size()}});
}
