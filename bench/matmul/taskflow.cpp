// A task group for each pair: one is spawned, the other is a call.
#include "by_functions.hpp"

#include "../harness/harness.hpp"

#include <taskflow/taskflow.hpp>

void bench::run(bench::state& state) {
  tf::Executor executor{state.size()};
  const auto both = [&](const auto& f, const auto& g) {
    auto group = executor.task_group();
    group.silent_async([&] { f(); });
    g();
    group.corun();
  };
  matrices m;
  state.measure(
      1, true, [&] { return m.next(); },
      [&](const product& all) {
        executor.async([&] { multiply_by(both, all); }).get();
        return m.is_right();
      });
}
