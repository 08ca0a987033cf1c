// qu_spsc_bounded with room for one, for just one sender and one receiver, on the library's own pool of one thread.
#include "workload.hpp"

#define TMC_PRIORITY_COUNT 1
#define TMC_TRIVIAL_TASK
#define TMC_IMPL
#include <deque>
#include <future>
#include <tmc/all_headers.hpp>
#include <tmc/qu_spsc_bounded.hpp>
#include <vector>

namespace {

struct channels {
  tmc::qu_spsc_bounded<std::size_t> in{1}, out{1};
};

tmc::task<void> echo(channels& mine) {
  while (auto number = co_await mine.in.pull()) co_await mine.out.push(number.value());
}

class echoes {
 public:
  explicit echoes(std::size_t count) : all_(count) {}

  void start() {
    std::vector<tmc::task<void>> tasks;
    tasks.reserve(all_.size());
    for (auto& one : all_) tasks.push_back(echo(one));
    ended_ = tmc::post_bulk_waitable(tmc::cpu_executor(), tasks.begin(), tasks.size(), 0);
  }

  std::size_t sweep() { return tmc::post_waitable(tmc::cpu_executor(), serve(), 0).get(); }

  void close() {
    tmc::post_waitable(tmc::cpu_executor(), close_all(), 0).get();
    ended_.get();
  }

 private:
  tmc::task<std::size_t> serve() {
    std::size_t sum = 0, number = 0;
    for (auto& one : all_) {
      co_await one.in.push(number++);
      auto back = co_await one.out.pull();
      sum += back.value();
    }
    co_return sum;
  }

  tmc::task<void> close_all() {
    for (auto& one : all_) one.in.close();
    co_return;
  }

  std::deque<channels> all_;
  std::future<void> ended_;
};

}  // namespace

void bench::run(bench::state& state) {
  tmc::cpu_executor().set_thread_count(1).init();
  measure_goroutines<echoes>(state);
  tmc::cpu_executor().teardown();
}
