// fork_monotonic: a fork of an empty task is made, awaited and ended, many times, with all memory from a
// std::pmr::monotonic_buffer_resource over one buffer, which uses nothing again. Coflux and the hand-written fork go through
// the buffer; weft keeps the block of a fork that ended for the next one, and goes round that.
//
// The program of Coflux's BM_Pmr_ForkCreation (benchmarks/bench_noop_creation.cpp there): a buffer of 1 GiB on the heap,
// touched before the clock starts, and a fresh resource over it in each call, made outside the clock, as there. There the
// clock also stops before the task that forked ends, and with it its forks; here that is part of a fork's life.
#pragma once

#include "../harness/harness.hpp"

#include <cstddef>
#include <memory_resource>
#include <vector>

namespace bench {

/// A buffer whose pages are there.
inline std::vector<std::byte>& fork_arena() {
  static std::vector<std::byte> arena(std::size_t{1} << 30);
  return arena;
}

/// What one fork takes, in bytes: counted apart from the clock, over so many that what is taken once does not show.
class counting_resource final : public std::pmr::memory_resource {
 public:
  explicit counting_resource(std::pmr::memory_resource& upstream) noexcept : upstream_{upstream} {}
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  void* do_allocate(std::size_t size, std::size_t alignment) override {
    bytes_ += size;
    return upstream_.allocate(size, alignment);
  }
  void do_deallocate(void* block, std::size_t size, std::size_t alignment) override {
    upstream_.deallocate(block, size, alignment);
  }
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  std::pmr::memory_resource& upstream_;
  std::size_t bytes_ = 0;
};

/// `forks(resource, n)` makes n forks with memory from `resource`, and says how many have ended.
template <class Forks>
void measure_forks(state& state, Forks forks) {
  auto& arena = fork_arena();
  state.measure(
      state.size(), state.size(), [&] { return std::pmr::monotonic_buffer_resource{arena.data(), arena.size()}; },
      [&](std::pmr::memory_resource& resource) { return forks(&resource, state.size()); });
  std::pmr::monotonic_buffer_resource resource{arena.data(), arena.size()};
  counting_resource counted{resource};
  constexpr std::size_t few = 10'000;
  forks(&counted, few);
  state.report("bytes a fork", static_cast<double>(counted.bytes() / few));
}

}  // namespace bench
