// channel<T[]>, which has no room, on the one worker of a worker_group. One with room for one never waits: 30,000 would
// try again and again. A channel is closed on that worker, too: a receive that meets its close elsewhere may sleep for ever.
#include "workload.hpp"

#include <coflux/channel.hpp>
#include <coflux/executor.hpp>
#include <coflux/scheduler.hpp>
#include <coflux/task.hpp>
#include <deque>
#include <memory_resource>
#include <optional>

namespace {

using workers = coflux::worker_group<1>;
using worker = workers::worker<0>;
using scheduler = coflux::scheduler<workers>;
using channel = coflux::channel<std::size_t[]>;

struct channels {
  channel in, out;
};

coflux::fork<void, worker> echo(auto&&, channels& mine) {
  std::size_t number = 0;
  while (co_await (mine.in >> number)) co_await (mine.out << number);
}

coflux::task<void, worker, scheduler> start_all(auto, std::deque<channels>& all) {
  auto&& context = co_await coflux::context();
  for (auto& one : all) static_cast<void>(echo(context, one));
}

coflux::task<std::size_t, worker, scheduler> serve(auto, std::deque<channels>& all) {
  std::size_t sum = 0, number = 0, back = 0;
  for (auto& one : all) {
    const std::size_t sent = number++;
    co_await (one.in << sent);
    co_await (one.out >> back);
    sum += back;
  }
  co_return sum;
}

coflux::task<void, worker, scheduler> close_all(auto, std::deque<channels>& all) {
  for (auto& one : all) one.in.close();
  co_return;
}

class echoes {
 public:
  explicit echoes(std::size_t count) : all_(count) {}

  void start() {
    forks_.emplace(start_all(environment_, all_));
    forks_->join();  // all are forked; that they have ended, its end waits for
  }

  std::size_t sweep() { return serve(environment_, all_).get_result(); }

  void close() {
    close_all(environment_, all_).join();
    forks_.reset();
  }

 private:
  std::deque<channels> all_;
  std::pmr::synchronized_pool_resource memory_;
  decltype(coflux::make_environment(&memory_, scheduler{})) environment_ =
      coflux::make_environment(&memory_, scheduler{});
  std::optional<coflux::task<void, worker, scheduler>> forks_;
};

}  // namespace

void bench::run(bench::state& state) { measure_goroutines<echoes>(state); }
