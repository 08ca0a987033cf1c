#include "detail/stack_guard.hpp"

#include <sys/mman.h>
#include <sys/random.h>

#include <cerrno>
#include <cstdio>

namespace weft::detail {
namespace {

constexpr int madv_guard_install = 102;  // Linux 6.13; glibc 2.36 doesn't know them
constexpr int madv_guard_remove = 103;

// Has the kernel write a byte there: where that faults, a program's write would, and no signal is needed to see it.
bool can_be_written(std::byte* at) noexcept { return ::getrandom(at, 1, GRND_NONBLOCK) == 1 || errno == EAGAIN; }

bool try_guard(stack_guard kind) noexcept {
  void* mapped = ::mmap(nullptr, 3 * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return false;
  auto* const below = static_cast<std::byte*>(mapped);
  std::byte* const guard = below + page_bytes;
  *guard = std::byte{1};  // a page that is there must go
  const bool works = install_guard(kind, guard, page_bytes) && !can_be_written(guard) &&
                     !can_be_written(guard + page_bytes - 1) && can_be_written(guard - 1) &&
                     can_be_written(guard + page_bytes);
  ::munmap(mapped, 3 * page_bytes);
  return works;
}

}  // namespace

bool install_guard(stack_guard kind, std::byte* at, std::size_t bytes) noexcept {
  switch (kind) {
    case stack_guard::madvise: return ::madvise(at, bytes, madv_guard_install) == 0;
    case stack_guard::mprotect: return ::mprotect(at, bytes, PROT_NONE) == 0;
    default: return false;
  }
}

void remove_guard(stack_guard kind, std::byte* at, std::size_t bytes) noexcept {
  if (kind == stack_guard::madvise)
    ::madvise(at, bytes, madv_guard_remove);
  else
    ::mprotect(at, bytes, PROT_READ | PROT_WRITE);
}

bool guard_works(stack_guard kind) noexcept {
  static const bool advised = try_guard(stack_guard::madvise), with_mprotect = try_guard(stack_guard::mprotect);
  switch (kind) {
    case stack_guard::madvise: return advised;
    case stack_guard::mprotect: return with_mprotect;
    default: return true;
  }
}

stack_guard best_guard() noexcept {
  for (const stack_guard kind : {stack_guard::madvise, stack_guard::mprotect})
    if (guard_works(kind)) return kind;
  return stack_guard::none;
}

std::size_t most_mappings() noexcept {
  std::size_t most = 65530;  // what Linux has if nobody says otherwise
  if (std::FILE* file = std::fopen("/proc/sys/vm/max_map_count", "re")) {
    if (std::fscanf(file, "%zu", &most) != 1) most = 65530;
    std::fclose(file);
  }
  return most;
}

}  // namespace weft::detail
