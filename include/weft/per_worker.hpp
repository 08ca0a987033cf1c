// per_worker: makes a memory resource for one thread usable by several, such as for the `.memory` of a scope.
#pragma once

#include <weft/detail/base/forward.hpp>

namespace weft {

namespace detail {

class per_worker_memory;

/// Whether several executors may use it, for what it is.
bool is_per_worker(const std::pmr::memory_resource* resource) noexcept;

}  // namespace detail

/// Makes a memory resource that several threads may use, on top of one that is for a single thread, such as a monotonic one.
/// Each worker has its own blocks; chunks for them are allocated from the resource under a lock. A scope treats it as shared.
///
///     std::pmr::monotonic_buffer_resource arena;
///     w::per_worker memory{&arena};
///     co_await w::with_scope({.memory = memory, .executor = &workers}, body);
///
/// Threads   any; the underlying resource must not be used otherwise meanwhile.
/// Lifetime  outlives what is allocated from it. The underlying resource outlives it, and gets all memory back from its
///           destructor.
/// Fails     throws std::bad_alloc, also in the constructor.
/// Cost      that of weft's own frame memory, and a look-up of the worker's blocks; a chunk of 16 KiB for each worker. A block
///           goes to the worker that frees it, and beyond 64 of a size to workers that have none. Blocks above 1 KiB, and
///           workers beyond 200, take the lock for each call.
class per_worker {
 public:
  explicit per_worker(std::pmr::memory_resource* resource);  ///< called under a lock, by one thread at a time
  per_worker(const per_worker&) = delete;
  per_worker& operator=(const per_worker&) = delete;
  ~per_worker();

  operator std::pmr::memory_resource*() noexcept;  // NOLINT: `.memory = memory`

 private:
  detail::per_worker_memory* memory_;
};

}  // namespace weft
