// ring_buffer, on a thread pool of one thread.
#include "workload.hpp"

#include <coro/ring_buffer.hpp>
#include <coro/sync_wait.hpp>
#include <coro/task.hpp>
#include <coro/task_group.hpp>
#include <coro/thread_pool.hpp>
#include <deque>

namespace {

struct channels {
  coro::ring_buffer<std::size_t, 1> in, out;
};

coro::task<void> echo(channels& mine) {
  while (const auto number = co_await mine.in.consume()) co_await mine.out.produce(*number);
}

class echoes {
 public:
  explicit echoes(std::size_t count) : all_(count) {}

  void start() {
    for (auto& one : all_) static_cast<void>(group_.start(echo(one)));
  }

  std::size_t sweep() { return coro::sync_wait(serve()); }

  void close() {
    coro::sync_wait(close_all());
    coro::sync_wait(group_);
  }

 private:
  coro::task<std::size_t> serve() {
    co_await workers_->schedule();
    std::size_t sum = 0, number = 0;
    for (auto& one : all_) {
      co_await one.in.produce(number++);
      sum += (co_await one.out.consume()).value();
    }
    co_return sum;
  }

  coro::task<void> close_all() {
    co_await workers_->schedule();
    for (auto& one : all_) co_await one.in.shutdown();
  }

  std::deque<channels> all_;
  std::unique_ptr<coro::thread_pool> workers_ = coro::thread_pool::make_unique({.thread_count = 1});
  coro::task_group<coro::thread_pool> group_{workers_.get()};
};

}  // namespace

void bench::run(bench::state& state) { measure_goroutines<echoes>(state); }
