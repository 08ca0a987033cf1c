// coro::BoundedQueue with room for one, for just one sender and one receiver, on a thread pool of one thread. It can't be
// closed: a value stands for that.
#include "workload.hpp"

#include <folly/coro/AsyncScope.h>
#include <folly/coro/BlockingWait.h>
#include <folly/coro/BoundedQueue.h>
#include <folly/coro/Task.h>
#include <folly/executors/CPUThreadPoolExecutor.h>
#include <deque>

namespace {

using folly::coro::Task;
using queue = folly::coro::BoundedQueue<std::size_t, true, true>;

constexpr auto closed = static_cast<std::size_t>(-1);

struct channels {
  queue in{1}, out{1};
};

Task<void> echo(channels& mine) {
  for (std::size_t number; (number = co_await mine.in.dequeue()) != closed;) co_await mine.out.enqueue(number);
}

class echoes {
 public:
  explicit echoes(std::size_t count) : all_(count) {}

  void start() {
    for (auto& one : all_) echoes_.add(co_withExecutor(&workers_, echo(one)));
  }

  std::size_t sweep() { return folly::coro::blockingWait(co_withExecutor(&workers_, serve())); }

  void close() {
    folly::coro::blockingWait(co_withExecutor(&workers_, close_all()));
    folly::coro::blockingWait(echoes_.joinAsync());
  }

 private:
  Task<std::size_t> serve() {
    std::size_t sum = 0, number = 0;
    for (auto& one : all_) {
      co_await one.in.enqueue(number++);
      sum += co_await one.out.dequeue();
    }
    co_return sum;
  }

  Task<void> close_all() {
    for (auto& one : all_) co_await one.in.enqueue(closed);
  }

  std::deque<channels> all_;
  folly::CPUThreadPoolExecutor workers_{1};
  folly::coro::AsyncScope echoes_;
};

}  // namespace

void bench::run(bench::state& state) { measure_goroutines<echoes>(state); }
