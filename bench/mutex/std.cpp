// std::mutex, on a thread for each. glibc leaves the atomic instructions out while a process has one thread, where nobody
// needs a mutex; so there is always another one, which sleeps, as in the programs of all libraries with a pool.
#include "workload.hpp"

#include <future>
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
  std::promise<void> end;
  std::jthread sleeps{[ended = end.get_future()] { ended.wait(); }};
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
  end.set_value();
}
