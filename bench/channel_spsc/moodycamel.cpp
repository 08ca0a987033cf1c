// A queue for threads, which has room for all, with a token for each end: two threads, on one core where --size is 1.
#include "workload.hpp"

#include <concurrentqueue/blockingconcurrentqueue.h>
#include <thread>

namespace {

using queue = moodycamel::BlockingConcurrentQueue<std::size_t>;

std::size_t both() {
  queue numbers;
  std::thread sender{[&numbers] {
    const moodycamel::ProducerToken mine{numbers};
    for (std::size_t i = 0; i != bench::spsc_numbers; ++i) numbers.enqueue(mine, i);
  }};
  moodycamel::ConsumerToken mine{numbers};
  std::size_t sum = 0, number = 0;
  for (std::size_t i = 0; i != bench::spsc_numbers; ++i) {
    numbers.wait_dequeue(mine, number);
    sum += number;
  }
  sender.join();
  return sum;
}

}  // namespace

void bench::run(bench::state& state) { state.measure(spsc_numbers, spsc_sum, both); }
