// Most of this is the pool resource itself.
#include "workload.hpp"

#include "../harness/handwritten_fork.hpp"

void bench::run(bench::state& state) {
  using frames = handwritten::resource_frames;
  measure_pooled_forks(state, [](std::pmr::memory_resource* memory, std::size_t count) {
    frames::chosen = memory;
    return handwritten::dropped_forks<frames>(count);
  });
}
