// generator: the sum over a plain generator. One item is one value.
#pragma once

#include "../harness/harness.hpp"

#include <cstdint>

namespace bench {

inline constexpr std::uint64_t generator_values = 100'000;
inline constexpr std::uint64_t generator_result = generator_values * (generator_values - 1) / 2;

template <template <class> class Generator>
Generator<std::uint64_t> count_up(std::uint64_t end) {
  for (std::uint64_t i = 0; i != end; ++i) co_yield i;
}

/// The sum over any range (for generators with begin() and end()). Each value is kept: where a generator elides, clang
/// would otherwise put the sum's formula in place of the loop.
template <class Range>
std::uint64_t sum_of(Range&& values) {
  std::uint64_t sum = 0;
  for (auto&& value : values) {
    keep(value);
    sum += value;
  }
  return sum;
}

}  // namespace bench
