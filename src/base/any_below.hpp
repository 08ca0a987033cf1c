// A number below `count`, another one at each call: where a search begins, so that all are served alike.
//
// Each thread has a sequence of its own, with a first number of its own: else threads that choose once each would all
// choose the same. The order in which threads first ask says which sequence each gets; so a program of one thread does the
// same in each run.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weft::detail {

/// Not 0. Source: the finalizer of MurmurHash3, of a Weyl sequence.
[[gnu::noinline]] inline std::uint32_t first_number_of_thread() noexcept {
  static constinit std::atomic<std::uint32_t> threads{0};
  std::uint32_t one = threads.fetch_add(0x9e3779b9, std::memory_order_relaxed);  // it only hands out numbers
  one = (one ^ one >> 16) * 0x85ebca6b;
  one = (one ^ one >> 13) * 0xc2b2ae35;
  one ^= one >> 16;
  return one != 0 ? one : 0x9e3779b9;
}

inline std::size_t any_below(std::size_t count) noexcept {
  [[gnu::tls_model("initial-exec")]] static constinit thread_local std::uint32_t state = 0;
  if (state == 0) [[unlikely]]
    state = first_number_of_thread();
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return static_cast<std::size_t>(std::uint64_t{state} * count >> 32);
}

}  // namespace weft::detail
