// Memory of the user's choice for work on several threads: what a scope may be given as `.memory`.
#pragma once

#include <weft/detail/base/forward.hpp>

namespace weft {

namespace detail {

class per_worker_memory;

/// Whether several executors may use it, for what it is.
bool is_per_worker(const std::pmr::memory_resource* resource) noexcept;

}  // namespace detail

/// Makes of a resource that one thread may use, such as a monotonic one, a resource for many: each worker has blocks of its
/// own, and the resource is asked for chunks of them under a lock. A scope takes it for declared shared.
///
///     std::pmr::monotonic_buffer_resource arena;
///     w::per_worker memory{&arena};
///     co_await w::with_scope({.memory = memory, .executor = &workers}, body);
///
/// Threads   any; nobody else uses the resource meanwhile.
/// Lifetime  outlives what is allocated from it, and is outlived by the resource, which has all of it back then.
/// Fails     std::bad_alloc, also where it is made.
/// Cost      a look-up of the worker's blocks more than its own frame memory; a chunk of 16 KiB a worker. Blocks that another
///           worker frees are that one's; beyond 64 of a size they go to whoever has none. Above 1 KiB, and where more than
///           200 workers come, each call takes the lock.
class per_worker {
 public:
  explicit per_worker(std::pmr::memory_resource* resource);  ///< asked under a lock, by one thread at a time
  per_worker(const per_worker&) = delete;
  per_worker& operator=(const per_worker&) = delete;
  ~per_worker();

  operator std::pmr::memory_resource*() noexcept;  // NOLINT: `.memory = memory`

 private:
  detail::per_worker_memory* memory_;
};

}  // namespace weft
