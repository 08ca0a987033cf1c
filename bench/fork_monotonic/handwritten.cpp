#include "workload.hpp"

#include "../harness/handwritten_fork.hpp"

void bench::run(bench::state& state) {
  using frames = handwritten::resource_frames;
  measure_forks(state, [](std::pmr::memory_resource* memory, std::size_t count) {
    frames::chosen = memory;
    return handwritten::run(handwritten::awaited_forks<frames>(count));
  });
}
