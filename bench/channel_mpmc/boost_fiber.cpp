// buffered_channel. Each of the two threads has two of the senders, and two of the receivers.
#include "workload.hpp"

#include <array>
#include <atomic>
#include <boost/fiber/all.hpp>
#include <numeric>
#include <thread>
#include <vector>

namespace {

using channel = boost::fibers::buffered_channel<std::size_t>;

std::size_t all(std::size_t count) {
  channel numbers{bench::mpmc_room};
  const std::size_t each = count / bench::mpmc_senders;
  std::array<std::size_t, bench::mpmc_receivers> sums{};
  std::atomic<std::size_t> senders{bench::mpmc_senders};
  const auto run_half = [&](std::size_t half) {
    std::vector<boost::fibers::fiber> fibers;
    for (std::size_t i = half; i < bench::mpmc_senders; i += bench::mpmc_threads)
      fibers.emplace_back([&, i] {
        for (std::size_t n = i * each; n != (i + 1) * each; ++n) numbers.push(n);
        if (--senders == 0) numbers.close();
      });
    for (std::size_t i = half; i < bench::mpmc_receivers; i += bench::mpmc_threads)
      fibers.emplace_back([&, i] {
        for (const std::size_t number : numbers) sums[i] += number;
      });
    for (auto& one : fibers) one.join();
  };
  std::thread other{run_half, 1};
  run_half(0);
  other.join();
  return std::accumulate(sums.begin(), sums.end(), std::size_t{0});
}

}  // namespace

void bench::run(bench::state& state) {
  state.measure(state.size(), sum_of_numbers(state.size()), [&] { return all(state.size()); });
}
