// Counting what malloc was asked for, in the programs that link allocations.cpp.
#pragma once

#include <cstdint>

namespace bench {

struct allocation_totals {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
};

/// So far, by this thread. Zero for ever in a program that doesn't count.
allocation_totals allocation_count() noexcept;

/// True where allocations.cpp is linked in.
bool counts_allocations() noexcept;

}  // namespace bench
