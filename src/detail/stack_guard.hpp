// Memory that faults, below a stack.
#pragma once

#include <cstddef>
#include <weft/detail/stack_pool.hpp>

namespace weft::detail {

inline constexpr std::size_t page_bytes = 4096;  // on all three architectures, as they are configured for servers

/// Whether `kind` guards memory here: whether an access faults, not what the system call says. Tried once a process.
bool guard_works(stack_guard kind) noexcept;

/// The best that works; `none` where nothing does.
stack_guard best_guard() noexcept;

/// Both are multiples of the page. False: the system has none left, or knows no such thing; errno says which.
bool install_guard(stack_guard kind, std::byte* at, std::size_t bytes) noexcept;
void remove_guard(stack_guard kind, std::byte* at, std::size_t bytes) noexcept;

/// How many mappings a process may have (vm.max_map_count).
std::size_t most_mappings() noexcept;

}  // namespace weft::detail
