#include "memory/slabs.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <ctime>
#include <new>
#include <utility>

namespace weft::detail {
namespace {

constexpr std::size_t region = std::size_t{4} << 20;
constexpr std::size_t page = 4096;

void push(slab*& list, slab* one) noexcept {
  one->next = list;
  list = one;
}
slab* pop(slab*& list) noexcept {
  slab* one = list;
  if (one != nullptr) list = one->next;
  return one;
}

// Null: the system has no room for it.
std::byte* map_aligned(std::size_t bytes, std::size_t alignment) noexcept {
  void* mapped =
      ::mmap(nullptr, bytes + alignment, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::byte*>(mapped);
  auto* aligned =
      reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(begin) + alignment - 1) & ~(alignment - 1));
  if (aligned != begin) ::munmap(begin, static_cast<std::size_t>(aligned - begin));
  if (auto* end = aligned + bytes; end != begin + bytes + alignment)
    ::munmap(end, static_cast<std::size_t>(begin + bytes + alignment - end));
  return aligned;
}

}  // namespace

long coarse_milliseconds() noexcept {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

slab_source& slab_source::the_one() noexcept {
  alignas(slab_source) static std::byte storage[sizeof(slab_source)];  // never destroyed: frames may outlive statics
  static auto* source = ::new (storage) slab_source;
  return *source;
}

slab* slab_source::take(heap& owner, bool one_more) {
  std::unique_lock guard{lock_};
  slab* taken = pop(warm_);
  if (taken != nullptr) {
    least_ = std::min(least_, --warm_count_);
  } else {
    taken = pop(cold_);
    if (taken == nullptr) {
      if (fresh_ == fresh_end_) reserve(one_more);
      taken = reinterpret_cast<slab*>(std::exchange(fresh_, fresh_ + slab::bytes));
    }
  }
  ++in_use_;
  guard.unlock();
  return ::new (taken) slab{&owner, nullptr, nullptr, 0, 0};
}

void slab_source::give_back(slab* one) noexcept {
  std::lock_guard guard{lock_};
  --in_use_;
  if (warm_count_ == most_warm) return cool(one);
  push(warm_, one);
  ++warm_count_;
  if (warm_count_ > always_warm) age(coarse_milliseconds());
}

bool slab_source::let_go_of_unused(long now) noexcept {
  std::lock_guard guard{lock_};
  if (warm_count_ > always_warm) age(now);
  return warm_count_ > always_warm;
}

void slab_source::let_go_of_all() noexcept {
  std::lock_guard guard{lock_};
  while (slab* one = pop(warm_)) cool(one);
  warm_count_ = least_ = 0;
}

// One by one: where the system refuses, since there would be too many mappings, the others stay mapped.
void slab_source::unmap_all() noexcept {
  std::lock_guard guard{lock_};
  slab* kept = nullptr;
  for (slab** list : {&warm_, &cold_})
    while (slab* one = pop(*list))
      if (::munmap(one, slab::bytes) != 0) push(kept, one);
  cold_ = kept;
  const auto left = static_cast<std::size_t>(fresh_end_ - fresh_);
  if (left != 0 && ::munmap(fresh_, left) == 0) fresh_ = fresh_end_;
  warm_count_ = least_ = 0;
}

std::size_t slab_source::bytes_in_use() noexcept {
  std::lock_guard guard{lock_};
  return (in_use_ + warm_count_) * slab::bytes;
}

// Asks for huge pages from the third region on, and where one worker fills more than a slab. So a small program stays small,
// and so does one of many threads that each need little; and what lies unused in the newest huge page is a quarter at most.
void slab_source::reserve(bool large_pages) {
  std::size_t bytes = region;
  std::byte* mapped = map_aligned(region, huge_page);
  if (mapped == nullptr) mapped = map_aligned(bytes = slab::bytes, slab::bytes);
  if (mapped == nullptr) throw std::bad_alloc{};
  if (regions_++ > 1 && large_pages && bytes == region) ::madvise(mapped, region, MADV_HUGEPAGE);
  fresh_ = mapped;
  fresh_end_ = mapped + bytes;
}

// Gives the pages of a slab back to the system, but for the first one.
void slab_source::cool(slab* one) noexcept {
  ::madvise(reinterpret_cast<std::byte*>(one) + page, slab::bytes - page, MADV_DONTNEED);
  push(cold_, one);
}

// Once a second, gives back as many warm slabs as nobody has taken in that second, but for a few.
void slab_source::age(long now) noexcept {
  if (now - last_aged_ < 1000) return;
  const std::size_t left = warm_count_ - (least_ > always_warm ? least_ - always_warm : 0);
  slab** oldest = &warm_;
  for (std::size_t i = 0; i < left; ++i) oldest = &(*oldest)->next;
  while (slab* one = pop(*oldest)) cool(one);
  warm_count_ = least_ = left;
  last_aged_ = now;
}

}  // namespace weft::detail
