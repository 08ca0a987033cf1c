// Memory that faults, below a stack.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <span>
#include <weft/stack_guard.hpp>

namespace weft::detail {

inline constexpr std::size_t page_bytes = 4096;  // on all three architectures, as they are configured for servers

/// Whether `kind` guards memory here: whether an access faults, not what the system call says. Tried once a process.
bool guard_works(stack_guard kind) noexcept;

/// The best that works; `none` where nothing does.
stack_guard best_guard() noexcept;

/// Guards each of these ranges of whole pages, the first ones first. How many it could: fewer where the system has no more,
/// or knows no such thing; errno says which.
std::size_t install_guards(stack_guard kind, std::span<const iovec> ranges) noexcept;
void remove_guard(stack_guard kind, std::byte* at, std::size_t bytes) noexcept;

/// Gives each of these ranges a page for each page. Only where one call does that for all (Linux 6.15): a range for itself
/// takes as long as the faults that it saves.
void populate(std::span<const iovec> ranges) noexcept;

/// Their memory goes back to the system, and they are zero when they are touched again. Guards within stay.
void let_go(std::span<const iovec> ranges) noexcept;

/// Whether the system makes huge pages of memory that is advised so: neither switched off for all nor for this process.
/// False, too, where it does not say.
bool has_huge_pages() noexcept;

/// How many mappings a process may have (vm.max_map_count).
std::size_t most_mappings() noexcept;

}  // namespace weft::detail
