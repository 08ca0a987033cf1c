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
  state.measure(sorted_numbers, true, unsorted, [&](sort_input& all) {
    executor.async([&] { sort_by(both, all.values.data(), all.room.data(), sorted_numbers, false); }).get();
    return std::is_sorted(all.values.begin(), all.values.end());
  });
}
