#include "workload.hpp"

#define TMC_PRIORITY_COUNT 1
#define TMC_TRIVIAL_TASK
#define TMC_IMPL
#include <tmc/all_headers.hpp>
#include <tmc/rw_lock.hpp>
#include <vector>

namespace {

tmc::task<void> read_mostly(tmc::rw_lock& lock, std::size_t& number, std::size_t times) {
  std::size_t seen = 0;
  for (std::size_t i = 1; i <= times; ++i) {
    if (i % bench::reads_a_write == 0) {
      const auto alone = co_await lock.lock_write_scope();
      ++number;
    } else {
      const auto shared = co_await lock.lock_read_scope();
      seen += number;
    }
  }
  bench::keep(seen);
}

tmc::task<std::size_t> all(std::size_t contenders) {
  tmc::rw_lock lock;
  std::size_t number = 0;
  std::vector<tmc::task<void>> tasks;
  for (std::size_t i = 0; i != contenders; ++i)
    tasks.push_back(read_mostly(lock, number, bench::shared_locks / contenders));
  co_await tmc::spawn_many(tasks.begin(), tasks.end());
  co_return number;
}

}  // namespace

void bench::run(bench::state& state) {
  tmc::cpu_executor().set_thread_count(shared_threads(state.size())).init();
  state.measure(shared_locks, shared_writes(state.size()),
                [&] { return tmc::post_waitable(tmc::cpu_executor(), all(state.size()), 0).get(); });
  tmc::cpu_executor().teardown();
}
