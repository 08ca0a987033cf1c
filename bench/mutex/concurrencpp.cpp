#include "workload.hpp"

#include <concurrencpp/concurrencpp.h>
#include <memory>
#include <vector>

namespace {

using workers = std::shared_ptr<concurrencpp::thread_pool_executor>;

concurrencpp::result<void> take_turns(concurrencpp::executor_tag, std::shared_ptr<concurrencpp::executor> on,
                                      concurrencpp::async_lock& turn, std::size_t& number, std::size_t times) {
  for (std::size_t i = 0; i != times; ++i) {
    auto held = co_await turn.lock(on);
    ++number;
  }
}

std::size_t all(const workers& on, std::size_t contenders) {
  concurrencpp::async_lock turn;
  std::size_t number = 0;
  std::vector<concurrencpp::result<void>> tasks;
  for (std::size_t i = 0; i != contenders; ++i)
    tasks.push_back(take_turns({}, on, turn, number, bench::mutex_locks / contenders));
  for (auto& one : tasks) one.get();
  return number;
}

}  // namespace

void bench::run(bench::state& state) {
  const auto on = std::make_shared<concurrencpp::thread_pool_executor>("bench", mutex_threads(state.size()),
                                                                       std::chrono::seconds{60});
  state.measure(mutex_locks, mutex_locks, [&] { return all(on, state.size()); });
  on->shutdown();
}
