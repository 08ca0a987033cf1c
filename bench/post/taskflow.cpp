#include "workload.hpp"

#include "../harness/harness.hpp"

#include <taskflow/taskflow.hpp>

void bench::run(bench::state& state) {
  tf::Executor executor{state.size()};
  state.measure(posts, posts, [&] {
    posted all;
    return all.by_producers([&](posted& of) { executor.silent_async([&of] { of.ran(); }); });
  });
}
