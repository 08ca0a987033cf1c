// channel<T[]>, without room, on a thread pool of one thread. Who finds nothing in a channel<T[1]> does not wait there, but
// goes to the pool and comes back to look again: all of them would look all the time.
#include "workload.hpp"

#include <coflux/channel.hpp>
#include <coflux/executor.hpp>
#include <coflux/scheduler.hpp>
#include <coflux/task.hpp>
#include <deque>
#include <memory_resource>
#include <optional>

namespace {

using executor = coflux::thread_pool_executor<>;
using scheduler = coflux::scheduler<executor>;
using channel = coflux::channel<std::size_t[]>;

struct channels {
  channel in, out;
};

coflux::fork<void, executor> echo(auto&&, channels& mine) {
  std::size_t number = 0;
  while (co_await (mine.in >> number))
    if (!co_await (mine.out << number)) co_return;
}

coflux::task<void, executor, scheduler> echo_all(auto, std::deque<channels>& all) {
  auto&& context = co_await coflux::context();
  for (auto& one : all) static_cast<void>(echo(context, one));
}

coflux::task<std::size_t, executor, scheduler> serve(auto, std::deque<channels>& all) {
  std::size_t sum = 0, number = 0, back = 0;
  for (auto& one : all) {
    const std::size_t sent = number++;
    if (!co_await (one.in << sent)) co_return 0;
    if (!co_await (one.out >> back)) co_return 0;
    sum += back;
  }
  co_return sum;
}

class echoes {
 public:
  explicit echoes(std::size_t count) : all_(count) {}

  void start() { echoes_.emplace(echo_all(environment_, all_)); }

  std::size_t sweep() {
    auto task = serve(environment_, all_);
    return task.get_result();
  }

  void close() {
    for (auto& one : all_) one.in.close();
    echoes_->join();
    echoes_.reset();
  }

 private:
  std::deque<channels> all_;
  std::pmr::synchronized_pool_resource memory_;
  decltype(coflux::make_environment(&memory_, scheduler{executor{1}})) environment_ =
      coflux::make_environment(&memory_, scheduler{executor{1}});
  std::optional<coflux::task<void, executor, scheduler>> echoes_;
};

}  // namespace

void bench::run(bench::state& state) { measure_goroutines<echoes>(state); }
