// What the address sanitizer is told, if it watches this program. Whether it does is asked at run time, so that a library
// that was compiled without it serves a program that was compiled with it.
#pragma once

#include <cstddef>

extern "C" {  // NOLINTBEGIN(readability-identifier-naming): the sanitizer's names
[[gnu::weak]] void __asan_poison_memory_region(const volatile void* at, std::size_t bytes);
[[gnu::weak]] void __asan_unpoison_memory_region(const volatile void* at, std::size_t bytes);
}  // NOLINTEND(readability-identifier-naming)

namespace weft::detail {

inline bool asan_watches() noexcept { return __asan_poison_memory_region != nullptr; }

/// Has every access to these bytes reported from now on.
inline void poison(void* at, std::size_t bytes) noexcept {
  if (asan_watches()) [[unlikely]]
    __asan_poison_memory_region(at, bytes);
}
inline void unpoison(void* at, std::size_t bytes) noexcept {
  if (asan_watches()) [[unlikely]]
    __asan_unpoison_memory_region(at, bytes);
}

}  // namespace weft::detail
