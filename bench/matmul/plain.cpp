// The same halves, by calls, on one thread, however many there are.
#include "by_functions.hpp"

#include "../harness/harness.hpp"

void bench::run(bench::state& state) {
  const auto both = [](const auto& f, const auto& g) { f(), g(); };
  matrices m;
  state.measure(
      1, true, [&] { return m.next(); },
      [&](const product& all) {
        multiply_by(both, all);
        return m.is_right();
      });
}
