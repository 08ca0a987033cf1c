// What the address sanitizer is told, if it watches this program: whichever of its objects were compiled with it, and
// whether the library was. It is asked for at run time, so that a library without it serves a program with it.
#pragma once

#include <cstddef>

extern "C" {  // NOLINTBEGIN(readability-identifier-naming): the sanitizer's names
[[gnu::weak]] void __asan_poison_memory_region(const volatile void* at, std::size_t bytes);
[[gnu::weak]] void __asan_unpoison_memory_region(const volatile void* at, std::size_t bytes);
}  // NOLINTEND(readability-identifier-naming)

namespace weft::detail {

inline bool asan_watches() noexcept { return __asan_poison_memory_region != nullptr; }

/// From here on, who reads or writes there is reported.
inline void poison(void* at, std::size_t bytes) noexcept {
  if (asan_watches()) [[unlikely]]
    __asan_poison_memory_region(at, bytes);
}
inline void unpoison(void* at, std::size_t bytes) noexcept {
  if (asan_watches()) [[unlikely]]
    __asan_unpoison_memory_region(at, bytes);
}

}  // namespace weft::detail
