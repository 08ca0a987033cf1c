// forkJoin of the two.
#include "by_functions.hpp"

#include "../harness/harness.hpp"

#include <citor/thread_pool.h>

void bench::run(bench::state& state) {
  citor::ThreadPool pool{state.size()};
  const auto both = [&](const auto& f, const auto& g) { pool.forkJoin<citor::CcdLocalForkJoinHints>(f, g); };
  matrices m;
  state.measure(
      1, true, [&] { return m.next(); },
      [&](const product& all) {
        multiply_by(both, all);
        return m.is_right();
      });
}
