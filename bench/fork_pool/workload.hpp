// fork_pool: forks of an empty task that nobody awaits, and then all that they left is given back; memory from a
// std::pmr::unsynchronized_pool_resource over a monotonic one, fresh in each call.
//
// The program of Coflux's BM_PmrPool_ForkCreationAndDestruction. There all forks live until destroy_forks(); in weft one
// that nobody has goes at once, its block is kept for the next one, and reclaim() stands in that place. weft.kept keeps all
// of them as Coflux does, and coflux.each gives each back as weft does.
#pragma once

#include "../fork_monotonic/workload.hpp"

namespace bench {

/// The same with a pool on top; the pool's own memory is not a fork's.
template <class Forks>
void measure_pooled_forks(state& state, Forks forks) {
  auto& arena = fork_arena();
  struct resources {
    explicit resources(std::vector<std::byte>& arena) : upstream{arena.data(), arena.size()} {}
    std::pmr::monotonic_buffer_resource upstream;
    std::pmr::unsynchronized_pool_resource pool{&upstream};
  };
  state.measure(
      state.size(), state.size(), [&] { return resources{arena}; },
      [&](resources& with) { return forks(&with.pool, state.size()); });
}

}  // namespace bench
