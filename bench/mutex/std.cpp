// std::mutex, on a thread for each.
#include "workload.hpp"

#include <mutex>
#include <thread>
#include <vector>

namespace {

void take_turns(std::mutex& turn, std::size_t& number, std::size_t times) {
  for (std::size_t i = 0; i != times; ++i) {
    const std::lock_guard held{turn};
    ++number;
  }
}

}  // namespace

void bench::run(bench::state& state) {
  state.measure(mutex_locks, mutex_locks, [&] {
    std::mutex turn;
    std::size_t number = 0;
    const std::size_t each = mutex_locks / state.size();
    std::vector<std::thread> others;
    for (std::size_t i = 1; i != state.size(); ++i)
      others.emplace_back(take_turns, std::ref(turn), std::ref(number), each);
    take_turns(turn, number, each);
    for (auto& one : others) one.join();
    return number;
  });
}
