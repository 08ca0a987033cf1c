// The limit: what the system takes for the first page of each stack, by 64 in a call of it, and for taking it back. Guards are
// there, as weft's are, once a stack was used. No coroutine is made; a library that gives a stack's memory back can't be below
// this.
#include "workload.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <span>

namespace {

constexpr std::size_t page = 4096, slot = 2 * bench::created_stack + page;  // guard, stack, and a page for its colour
constexpr std::size_t at_once = 64;
constexpr int populate_write = 23;     // MADV_POPULATE_WRITE, Linux 5.14
constexpr int this_process = -10'001;  // PIDFD_SELF_THREAD_GROUP, Linux 6.15

void advise(std::span<const iovec> ranges, int advice) {
  std::size_t bytes = 0;
  for (const iovec& one : ranges) bytes += one.iov_len;
  if (::syscall(SYS_process_madvise, this_process, ranges.data(), ranges.size(), advice, 0) == static_cast<long>(bytes))
    return;
  for (const iovec& one : ranges) ::madvise(one.iov_base, one.iov_len, advice);
}

}  // namespace

void bench::run(bench::state& state) {
  const std::size_t bytes = state.size() * slot;
  void* const mapped =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc{};
  const auto unmap = [bytes](void* all) { ::munmap(all, bytes); };
  const std::unique_ptr<void, decltype(unmap)> stacks{mapped, unmap};
  ::madvise(mapped, bytes, MADV_NOHUGEPAGE);
  const auto top_of = [&](std::size_t i) { return static_cast<std::byte*>(mapped) + (i + 1) * slot - page; };

  measure_creation(state, [&](std::size_t count) {
    std::array<iovec, at_once> tops;
    std::size_t written = 0;
    for (std::size_t first = 0; first < count; first += at_once) {
      const std::size_t now = std::min(at_once, count - first);
      for (std::size_t i = 0; i != now; ++i) tops[i] = {top_of(first + i), page};
      advise(std::span{tops}.first(now), populate_write);
      for (std::size_t i = 0; i != now; ++i) {
        *static_cast<volatile char*>(tops[i].iov_base) = 1;
        ++written;
      }
    }
    ::madvise(mapped, bytes, MADV_DONTNEED);
    return written;
  });
}
