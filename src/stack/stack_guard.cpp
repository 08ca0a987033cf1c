#include "stack/stack_guard.hpp"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>

#include <cerrno>
#include <cstdio>
#include <string_view>

extern "C" {  // glibc 2.36; NOLINTNEXTLINE(readability-identifier-naming): its name
[[gnu::weak]] ssize_t process_madvise(int process, const iovec* ranges, std::size_t count, int advice, unsigned flags);
}

namespace weft::detail {
namespace {

constexpr int madv_guard_install = 102;  // Linux 6.13; glibc 2.36 doesn't know them
constexpr int madv_guard_remove = 103;
constexpr int madv_populate_write = 23;  // Linux 5.14
constexpr int this_process = -10'001;    // PIDFD_SELF_THREAD_GROUP, in place of a descriptor (Linux 6.15)

// Advises all ranges in one system call. False: the system has no such call, or did not advise all.
bool advise_all(std::span<const iovec> ranges, int advice) noexcept {
  std::size_t bytes = 0;
  for (const iovec& one : ranges) bytes += one.iov_len;
  return process_madvise != nullptr &&
         process_madvise(this_process, ranges.data(), ranges.size(), advice, 0) == static_cast<ssize_t>(bytes);
}

// Advises the ranges one by one, in order. Returns how many it could.
std::size_t advise(std::span<const iovec> ranges, int advice) noexcept {
  if (ranges.size() > 1 && advise_all(ranges, advice)) return ranges.size();
  std::size_t done = 0;
  while (done != ranges.size() && ::madvise(ranges[done].iov_base, ranges[done].iov_len, advice) == 0) ++done;
  return done;
}

// Whether a write there would fault. The kernel writes the byte, so no signal handler is needed to see it.
bool can_be_written(std::byte* at) noexcept { return ::getrandom(at, 1, GRND_NONBLOCK) == 1 || errno == EAGAIN; }

bool try_guard(stack_guard kind) noexcept {
  constexpr std::size_t pages = 5;  // of which the second and the fourth are guards
  void* mapped = ::mmap(nullptr, pages * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return false;
  const auto page = [mapped](std::size_t index) { return static_cast<std::byte*>(mapped) + index * page_bytes; };
  *page(1) = std::byte{1};  // a resident page must become a guard, too
  const iovec guards[]{{page(1), page_bytes}, {page(3), page_bytes}};
  bool works = install_guards(kind, guards) == 2;
  for (std::size_t i = 0; i != pages; ++i)
    works = works && can_be_written(page(i)) == (i % 2 == 0) && can_be_written(page(i + 1) - 1) == (i % 2 == 0);
  ::munmap(mapped, pages * page_bytes);
  return works;
}

}  // namespace

std::size_t install_guards(stack_guard kind, std::span<const iovec> ranges) noexcept {
  if (kind == stack_guard::madvise) return advise(ranges, madv_guard_install);
  std::size_t done = 0;
  while (done != ranges.size() && ::mprotect(ranges[done].iov_base, ranges[done].iov_len, PROT_NONE) == 0) ++done;
  return done;
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

void populate(std::span<const iovec> ranges) noexcept { static_cast<void>(advise_all(ranges, madv_populate_write)); }

void let_go(std::span<const iovec> ranges) noexcept {
  while (!ranges.empty()) {
    const std::size_t done = advise(ranges, MADV_DONTNEED);
    ranges = ranges.subspan(done < ranges.size() ? done + 1 : done);  // a range that the system refuses stays as it is
  }
}

bool has_huge_pages() noexcept {
  if (::prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1) return false;
  char modes[64]{};
  if (std::FILE* file = std::fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re")) {
    if (std::fgets(modes, sizeof modes, file) == nullptr) modes[0] = '\0';
    std::fclose(file);
  }
  const std::string_view said{modes};
  return !said.empty() && said.find("[never]") == said.npos;
}

std::size_t most_mappings() noexcept {
  std::size_t most = 65530;  // Linux's default
  if (std::FILE* file = std::fopen("/proc/sys/vm/max_map_count", "re")) {
    if (std::fscanf(file, "%zu", &most) != 1) most = 65530;
    std::fclose(file);
  }
  return most;
}

}  // namespace weft::detail
