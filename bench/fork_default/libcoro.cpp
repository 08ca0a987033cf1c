#include "workload.hpp"

#include <atomic>
#include <coro/sync_wait.hpp>
#include <coro/task.hpp>
#include <coro/task_group.hpp>
#include <coro/thread_pool.hpp>

namespace {

coro::task<void> trivial(std::atomic<std::size_t>& ended) {
  ended.fetch_add(1, std::memory_order_relaxed);
  co_return;
}

}  // namespace

// A task_group runs on a thread pool, here of one thread, and can't await one of its tasks: all are joined.
void bench::run(bench::state& state) {
  auto workers = coro::thread_pool::make_unique({.thread_count = 1});
  state.measure(state.size(), state.size(), [&] {
    std::atomic<std::size_t> ended{0};
    coro::task_group<coro::thread_pool> group{workers.get()};
    for (std::size_t i = 0; i != state.size(); ++i) static_cast<void>(group.start(trivial(ended)));
    coro::sync_wait(group);
    return ended.load(std::memory_order_relaxed);
  });
}
