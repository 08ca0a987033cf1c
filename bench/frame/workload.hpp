// frame: how many allocations and bytes an await costs once everything is warm. Linked with a malloc that counts
// (harness/allocations.cpp); its times are therefore no figures to compare.
//
// state.size() chooses the shape:
//   0  straight    a chain of awaits in straight lines, every callee visible
//   1  likely      each await in the likely arm of a branch
//   2  recursive   one function that awaits itself
//   3  opaque      awaits of an empty task that the compiler can't see: the smallest frame
#pragma once

#include "../call_depth/workload.hpp"
#include "../chain/workload.hpp"

#include <cstddef>
#include <cstdint>

namespace bench {

inline constexpr std::uint64_t frame_awaits = chain_levels;

enum class frame_shape : std::size_t { straight, likely, recursive, opaque };

/// A chain like lazy_fn, where each level asks something before it awaits.
template <template <class> class Task, int N>
Task<int> likely_fn(int limit) {
  if constexpr (N == 0) {
    co_return 1;
  } else {
    if (N <= limit) [[likely]]
      co_return N + co_await likely_fn<Task, N - 1>(limit);
    co_return 0;
  }
}

template <template <class> class Task>
Task<int> empty_fn() {
  co_return 1;
}

template <template <class> class Task>
Task<std::uint64_t> await_opaque() {
  Task<int> (*volatile callee)() = &empty_fn<Task>;  // volatile: nobody knows what is called
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i != frame_awaits; ++i) sum += static_cast<std::uint64_t>(co_await callee());
  co_return sum;
}

/// Runs the shape that `state` asks for. `wait` blocks on one task and returns its value.
template <template <class> class Task, class State, class Wait>
void measure_frames(State& state, Wait wait) {
  switch (frame_shape{state.size()}) {
    case frame_shape::straight:
      return state.measure(frame_awaits, chain_result, [&] { return wait(lazy_fn<Task, chain_levels>()); });
    case frame_shape::likely:
      return state.measure(frame_awaits, chain_result,
                           [&] { return wait(likely_fn<Task, chain_levels>(chain_levels)); });
    case frame_shape::recursive:
      return state.measure(frame_awaits, sum_result(frame_awaits), [&] { return wait(sum_to<Task>(frame_awaits)); });
    case frame_shape::opaque:
      return state.measure(frame_awaits, frame_awaits, [&] { return wait(await_opaque<Task>()); });
  }
  state.verify(false, "frame knows no such shape");
}

}  // namespace bench
