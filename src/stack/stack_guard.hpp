// Memory that faults, below a stack.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <span>
#include <weft/stack_guard.hpp>

namespace weft::detail {

inline constexpr std::size_t page_bytes = 4096;  // on all three architectures, as they are configured for servers

/// Whether a guard of this kind faults here. Tried once a process, by an access: the system call may report a success that is
/// none.
bool guard_works(stack_guard kind) noexcept;

/// The best kind that works; `none` if none does.
stack_guard best_guard() noexcept;

/// Guards these ranges of whole pages, in order. Returns how many it could guard: if fewer than all, errno says why.
std::size_t install_guards(stack_guard kind, std::span<const iovec> ranges) noexcept;
void remove_guard(stack_guard kind, std::byte* at, std::size_t bytes) noexcept;

/// Makes all pages of these ranges resident, if one call can do that for all (Linux 6.15): a call for each range would take as
/// long as the page faults that it saves.
void populate(std::span<const iovec> ranges) noexcept;

/// Gives the memory of these ranges back to the system: it reads as zeros when it is touched again. Guards within stay.
void let_go(std::span<const iovec> ranges) noexcept;

/// Whether the system gives huge pages to memory that was advised so: they are switched off neither for the system nor for this
/// process. False, too, if the system does not tell.
bool has_huge_pages() noexcept;

/// How many mappings a process may have (vm.max_map_count).
std::size_t most_mappings() noexcept;

}  // namespace weft::detail
