// Fibers of one thread.
#include "workload.hpp"

#include <boost/fiber/all.hpp>
#include <mutex>
#include <vector>

namespace {

void take_turns(boost::fibers::mutex& turn, std::size_t& number, std::size_t times) {
  for (std::size_t i = 0; i != times; ++i) {
    const std::lock_guard held{turn};
    const std::size_t before = number;
    boost::this_fiber::yield();
    number = before + 1;
  }
}

std::size_t all(std::size_t contenders) {
  boost::fibers::mutex turn;
  std::size_t number = 0;
  std::vector<boost::fibers::fiber> fibers;
  for (std::size_t i = 0; i != contenders; ++i)
    fibers.emplace_back(take_turns, std::ref(turn), std::ref(number), bench::held_locks / contenders);
  for (auto& one : fibers) one.join();
  return number;
}

}  // namespace

void bench::run(bench::state& state) {
  state.measure(held_locks, held_locks, [&] { return all(state.size()); });
}
