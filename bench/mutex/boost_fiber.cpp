// Fibers stay on their threads, so half of them run on each; each thread has the scheduler that is Boost's default.
#include "workload.hpp"

#include <boost/fiber/all.hpp>
#include <mutex>
#include <thread>
#include <vector>

namespace {

void take_turns(boost::fibers::mutex& turn, std::size_t& number, std::size_t times) {
  for (std::size_t i = 0; i != times; ++i) {
    const std::lock_guard held{turn};
    ++number;
  }
}

std::size_t all(std::size_t contenders) {
  boost::fibers::mutex turn;
  std::size_t number = 0;
  const auto run_some = [&](std::size_t count) {
    std::vector<boost::fibers::fiber> fibers;
    for (std::size_t i = 0; i != count; ++i)
      fibers.emplace_back(take_turns, std::ref(turn), std::ref(number), bench::mutex_locks / contenders);
    for (auto& one : fibers) one.join();
  };
  std::thread other;
  if (contenders != 1) other = std::thread{run_some, contenders / 2};
  run_some(contenders - contenders / 2);
  if (other.joinable()) other.join();
  return number;
}

}  // namespace

void bench::run(bench::state& state) {
  state.measure(mutex_locks, mutex_locks, [&] { return all(state.size()); });
}
