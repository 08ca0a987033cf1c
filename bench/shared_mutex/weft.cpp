#include "workload.hpp"

#include <vector>
#include <weft/combine.hpp>
#include <weft/pool.hpp>
#include <weft/sync.hpp>

namespace {

weft::task<> read_mostly(weft::shared_mutex& lock, std::size_t& number, std::size_t times) {
  std::size_t seen = 0;
  for (std::size_t i = 1; i <= times; ++i) {
    if (i % bench::reads_a_write == 0) {
      const auto alone = co_await lock.lock();
      ++number;
    } else {
      const auto shared = co_await lock.lock_shared();
      seen += number;
    }
  }
  bench::keep(seen);
}

weft::task<std::size_t> all(std::size_t contenders) {
  weft::shared_mutex lock;
  std::size_t number = 0;
  std::vector<weft::task<>> tasks;
  for (std::size_t i = 0; i != contenders; ++i)
    tasks.push_back(read_mostly(lock, number, bench::shared_locks / contenders));
  co_await weft::when_all(std::move(tasks));
  co_return number;
}

}  // namespace

void bench::run(bench::state& state) {
  const weft::pool workers{{.threads = shared_threads(state.size())}};
  state.measure(shared_locks, shared_writes(state.size()),
                [&] { return weft::sync_wait(weft::start_on(workers.executor(), all(state.size()))); });
}
