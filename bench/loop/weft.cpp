#include "workload.hpp"

#include "../harness/harness.hpp"

#include <functional>
#include <weft/parallel.hpp>
#include <weft/pool.hpp>

void bench::run(bench::state& state) {
  const weft::pool pool{{.threads = static_cast<unsigned>(threads_of(state.size()))}};
  measure_loops(
      state, [&](numbers& all) { weft::sync_wait(weft::start_on(pool.executor(), weft::for_each(all, hash_it))); },
      [&](const numbers& all) {
        auto sum = weft::reduce(all, std::uint64_t{0}, std::plus<>{}, hash_of);
        return weft::sync_wait(weft::start_on(pool.executor(), std::move(sum)));
      });
}
