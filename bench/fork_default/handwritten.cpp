#include "workload.hpp"

#include "../harness/handwritten_fork.hpp"

void bench::run(bench::state& state) {
  state.measure(state.size(), state.size(),
                [&] { return handwritten::run(handwritten::awaited_forks<handwritten::cached_frames>(state.size())); });
}
