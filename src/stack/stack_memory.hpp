// What can be read from the memory of a stack: how much was used, and whether it has overflowed.
#pragma once

#include <cstddef>
#include <weft/detail/stack/stack_header.hpp>

namespace weft::detail {

/// The size of the canary at the bottom of a stack without a guard, which an overflow overwrites first.
inline constexpr std::size_t canary_bytes = 64;

void set_canary(stack_header& one) noexcept;
bool canary_lives(const stack_header& one) noexcept;

/// The lowest byte from `bottom` on that was written since the pages were zero; `top` if there is none.
std::byte* lowest_written(std::byte* bottom, std::byte* top) noexcept;

}  // namespace weft::detail
