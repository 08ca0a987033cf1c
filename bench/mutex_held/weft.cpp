#include "workload.hpp"

#include <vector>
#include <weft/combine.hpp>
#include <weft/pool.hpp>
#include <weft/sync.hpp>

namespace {

weft::task<> take_turns(weft::mutex& turn, std::size_t& number, std::size_t times) {
  for (std::size_t i = 0; i != times; ++i) {
    const auto held = co_await turn.lock();
    const std::size_t before = number;
    co_await weft::yield();
    number = before + 1;
  }
}

weft::task<std::size_t> all(std::size_t contenders) {
  weft::mutex turn;
  std::size_t number = 0;
  std::vector<weft::task<>> tasks;
  for (std::size_t i = 0; i != contenders; ++i)
    tasks.push_back(take_turns(turn, number, bench::held_locks / contenders));
  co_await weft::when_all(std::move(tasks));
  co_return number;
}

}  // namespace

void bench::run(bench::state& state) {
  const weft::pool workers{{.threads = 1}};
  state.measure(held_locks, held_locks,
                [&] { return weft::sync_wait(weft::start_on(workers.executor(), all(state.size()))); });
}
