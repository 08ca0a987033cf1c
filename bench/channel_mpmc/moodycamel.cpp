// A queue for threads, which has room for all: eight of them, each with its token. Each receiver takes its share.
#include "workload.hpp"

#include <concurrentqueue/blockingconcurrentqueue.h>
#include <thread>
#include <vector>

namespace {

using queue = moodycamel::BlockingConcurrentQueue<std::size_t>;

void send(queue& to, std::size_t first, std::size_t end) {
  const moodycamel::ProducerToken mine{to};
  for (; first != end; ++first) to.enqueue(mine, first);
}

void receive(queue& from, std::size_t count, std::size_t& sum) {
  moodycamel::ConsumerToken mine{from};
  std::size_t here = 0, number = 0;
  for (std::size_t i = 0; i != count; ++i) {
    from.wait_dequeue(mine, number);
    here += number;
  }
  sum = here;
}

std::size_t all(std::size_t count) {
  queue numbers;
  std::vector<std::thread> threads;
  std::vector<std::size_t> sums(bench::mpmc_receivers);
  const std::size_t sent = count / bench::mpmc_senders, received = count / bench::mpmc_receivers;
  for (std::size_t i = 0; i != bench::mpmc_senders; ++i)
    threads.emplace_back(send, std::ref(numbers), i * sent, (i + 1) * sent);
  for (auto& sum : sums) threads.emplace_back(receive, std::ref(numbers), received, std::ref(sum));
  for (auto& one : threads) one.join();
  std::size_t sum = 0;
  for (const std::size_t one : sums) sum += one;
  return sum;
}

}  // namespace

void bench::run(bench::state& state) {
  state.measure(state.size(), sum_of_numbers(state.size()), [&] { return all(state.size()); });
}
