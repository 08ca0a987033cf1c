// std::shared_mutex, on a thread for each.
#include "workload.hpp"

#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

namespace {

void read_mostly(std::shared_mutex& lock, std::size_t& number, std::size_t times) {
  std::size_t seen = 0;
  for (std::size_t i = 1; i <= times; ++i) {
    if (i % bench::reads_a_write == 0) {
      const std::lock_guard alone{lock};
      ++number;
    } else {
      const std::shared_lock shared{lock};
      seen += number;
    }
  }
  bench::keep(seen);
}

}  // namespace

void bench::run(bench::state& state) {
  state.measure(shared_locks, shared_writes(state.size()), [&] {
    std::shared_mutex lock;
    std::size_t number = 0;
    const std::size_t each = shared_locks / state.size();
    std::vector<std::thread> others;
    for (std::size_t i = 1; i != state.size(); ++i)
      others.emplace_back(read_mostly, std::ref(lock), std::ref(number), each);
    read_mostly(lock, number, each);
    for (auto& one : others) one.join();
    return number;
  });
}
