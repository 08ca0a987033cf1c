// buffered_channel and fibers of one thread, whose stacks it pools. One place of a channel is always empty, so two are room
// for one.
#include "workload.hpp"

#include <boost/fiber/all.hpp>
#include <deque>
#include <vector>

namespace {

namespace fibers = boost::fibers;

struct channels {
  fibers::buffered_channel<std::size_t> in{2}, out{2};
};

class echoes {
 public:
  explicit echoes(std::size_t count) : all_(count) { fibers_.reserve(count); }

  void start() {
    for (auto& one : all_)
      fibers_.emplace_back(fibers::launch::post, std::allocator_arg, stacks_, [&one] {
        for (const std::size_t number : one.in) one.out.push(number);
      });
  }

  std::size_t sweep() {
    std::size_t sum = 0, number = 0;
    for (auto& one : all_) {
      one.in.push(number++);
      sum += one.out.value_pop();
    }
    return sum;
  }

  void close() {
    for (auto& one : all_) one.in.close();
    for (auto& one : fibers_) one.join();
  }

 private:
  std::deque<channels> all_;
  fibers::pooled_fixedsize_stack stacks_{std::size_t{64} << 10};
  std::vector<fibers::fiber> fibers_;
};

}  // namespace

void bench::run(bench::state& state) { measure_goroutines<echoes>(state); }
