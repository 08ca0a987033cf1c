#include <weft/parallel.hpp>

#include <atomic>
#include <cstdio>
#include <weft/env.hpp>
#include <weft/executor.hpp>

namespace weft::detail {

void look_for_parallel_executor() noexcept {
  const executor* const here = current_env().executor;
  if (here != nullptr && here->runs_in_parallel()) return;
  static constinit std::atomic<bool> said{false};
  if (said.exchange(true, std::memory_order_relaxed)) return;  // guards nothing but this line
  std::fputs(
      "weft: a for_each or reduce runs where there is one job at a time, so its pieces follow one another: start it on "
      "a "
      "pool, by start_on(pool.executor(), ...)\n",
      stderr);
}

}  // namespace weft::detail
