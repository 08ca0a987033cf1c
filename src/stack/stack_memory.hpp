// What the memory of a stack says of who was there.
#pragma once

#include <cstddef>
#include <weft/detail/stack/stack_header.hpp>

namespace weft::detail {

/// So many bytes stand at the bottom of a stack that no guard protects: whoever runs over it writes there first.
inline constexpr std::size_t canary_bytes = 64;

void set_canary(stack_header& one) noexcept;
bool canary_lives(const stack_header& one) noexcept;

/// The lowest byte from `bottom` on that was written since the pages were zero; `top`: none.
std::byte* lowest_written(std::byte* bottom, std::byte* top) noexcept;

}  // namespace weft::detail
