// The limit: see handwritten_lock.hpp. Half of them begin on each thread.
#include "workload.hpp"

#include "../harness/handwritten_lock.hpp"
#include "../harness/handwritten_turns.hpp"

#include <thread>
#include <vector>

namespace {

using handwritten::coroutine;

coroutine take_turns(handwritten::lock& turn, std::size_t& number, std::size_t times) {
  for (std::size_t i = 0; i != times; ++i) {
    co_await turn.take();
    ++number;
    turn.give_back();
  }
}

std::size_t all(std::size_t contenders) {
  handwritten::lock turn;
  std::size_t number = 0;
  std::vector<coroutine> tasks;
  for (std::size_t i = 0; i != contenders; ++i)
    tasks.push_back(take_turns(turn, number, bench::mutex_locks / contenders));
  const auto run = [&](std::size_t first, std::size_t last) {
    for (; first != last; ++first) tasks[first].self.resume();
  };
  std::thread other;
  if (contenders != 1) other = std::thread{run, contenders / 2, contenders};
  run(0, contenders == 1 ? 1 : contenders / 2);
  if (other.joinable()) other.join();  // who waits is run by who holds it, so now all have ended
  return number;
}

}  // namespace

void bench::run(bench::state& state) {
  state.measure(mutex_locks, mutex_locks, [&] { return all(state.size()); });
}
