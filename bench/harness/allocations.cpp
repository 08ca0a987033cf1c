// A malloc that counts, in front of glibc's. It stands at the lowest level, so that operator new, aligned new and C
// code are all seen once. Only the frame workload links it: two additions an allocation would show elsewhere.
//
// Counted by thread: a library's worker that allocates on its own account is not the awaiting task's cost.
#include "allocations.hpp"

#include <cerrno>
#include <cstddef>

namespace {
thread_local constinit bench::allocation_totals totals;

void count(std::size_t bytes) noexcept {
  ++totals.calls;
  totals.bytes += bytes;
}
}  // namespace

namespace bench {
allocation_totals allocation_count() noexcept { return totals; }
bool counts_allocations() noexcept { return true; }
}  // namespace bench

extern "C" {
void* __libc_malloc(std::size_t) noexcept;
void* __libc_calloc(std::size_t, std::size_t) noexcept;
void* __libc_realloc(void*, std::size_t) noexcept;
void* __libc_memalign(std::size_t, std::size_t) noexcept;

void* malloc(std::size_t bytes) noexcept {
  count(bytes);
  return __libc_malloc(bytes);
}

void* calloc(std::size_t n, std::size_t each) noexcept {
  count(n * each);
  return __libc_calloc(n, each);
}

void* realloc(void* old, std::size_t bytes) noexcept {
  count(bytes);
  return __libc_realloc(old, bytes);
}

void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  count(bytes);
  return __libc_memalign(alignment, bytes);
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept { return memalign(alignment, bytes); }

int posix_memalign(void** result, std::size_t alignment, std::size_t bytes) noexcept {
  *result = memalign(alignment, bytes);
  return *result == nullptr ? ENOMEM : 0;
}
}
