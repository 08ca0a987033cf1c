// loop: each of a million numbers is hashed in place, or their hashes are summed up, on a pool of --size threads; 100 more,
// and it is the sum. One item is a number. What comes out is compared with the plain loop's at each call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace bench {

inline constexpr std::size_t loop_length = std::size_t{1} << 20;

using numbers = std::vector<std::uint32_t>;

constexpr std::size_t threads_of(std::size_t size) { return size % 100; }
constexpr bool is_sum(std::size_t size) { return size >= 100; }

/// Eight turns of a hash: some nanoseconds.
constexpr std::uint32_t hashed(std::uint32_t x) noexcept {
  for (std::uint32_t turn = 0; turn != 8; ++turn) x = (x ^ x >> 15) * 0x2c1b3c6d + turn;
  return x;
}

inline constexpr auto hash_it = [](std::uint32_t& x) noexcept { x = hashed(x); };
inline constexpr auto hash_of = [](std::uint32_t x) noexcept -> std::uint64_t { return hashed(x); };

struct loop_input {
  numbers all = numbers(loop_length), expected;
  std::uint64_t expected_sum = 0;

  loop_input() {
    std::iota(all.begin(), all.end(), 0U);
    for (const std::uint32_t each : all) {
      expected.push_back(hashed(each));
      expected_sum += expected.back();
    }
  }
};

/// `each_of(numbers&)` hashes all in place, `sum_of(const numbers&)` gives the sum of the hashes.
template <class State, class EachOf, class SumOf>
void measure_loops(State& state, EachOf each_of, SumOf sum_of) {
  const loop_input in;
  if (is_sum(state.size())) {
    state.measure(loop_length, in.expected_sum, [&] { return sum_of(in.all); });
    return;
  }
  state.measure(
      loop_length, true, [&] { return in.all; },
      [&](numbers& fresh) {
        each_of(fresh);
        return fresh == in.expected;
      });
}

}  // namespace bench
