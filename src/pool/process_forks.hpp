// Tells a process from the children that it forks: the threads of a pool stay behind in the parent, and by this the pool
// notices that it is used in a child.
#pragma once

#include <atomic>
#include <cstdint>

namespace weft::detail {

/// How often this process, and those that it comes from, were forked since a pool was first made.
//
// Written in a child while it has one thread. Relaxed everywhere: no thread runs beside that write, and the threads which
// the child starts later see it by their start.
[[gnu::visibility("hidden")]] extern constinit std::atomic<std::uint32_t> forks_of_process;

/// Has forks counted from now on.
void count_forks() noexcept;

}  // namespace weft::detail
