// call_depth: one recursive task, `state.size()` levels deep (1 to 1 M). Recursion never elides, and a library without
// symmetric transfer, or with recursive destruction, overflows the stack here.
#pragma once

#include <cstdint>

namespace bench {

template <template <class> class Task>
Task<std::uint64_t> sum_to(std::uint64_t n) {
  if (n == 0) co_return 0;
  co_return n + co_await sum_to<Task>(n - 1);
}

/// What sum_to(n) gives.
constexpr std::uint64_t sum_result(std::uint64_t n) { return n * (n + 1) / 2; }

}  // namespace bench
