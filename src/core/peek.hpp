// A look at a word that its thread may be writing without any order: what is seen is an address or a flag that leads nowhere
// by itself, or to what whoever looks keeps alive. To make such a word atomic would cost its writers, which are on the fastest
// paths there are. So the thread sanitizer is told not to look here.
#pragma once

#include <cstdint>

namespace weft::detail {

template <class T>
[[gnu::noinline, gnu::no_sanitize_thread]] T peek(const T& at) noexcept {
  static_assert(sizeof(T) <= sizeof(void*), "one load");
  T seen;
  if constexpr (sizeof(T) == sizeof(void*)) {
    const auto* const from = reinterpret_cast<const volatile std::uintptr_t*>(&at);
    const std::uintptr_t word = *from;
    __builtin_memcpy(static_cast<void*>(&seen), &word,
                     sizeof(T));  // NOLINT(bugprone-sizeof-expression): of a pointer, too
  } else {
    seen = *const_cast<const volatile T*>(&at);
  }
  return seen;
}

/// The same with a write. What is lost where the thread writes the same word at this moment must not matter.
[[gnu::noinline, gnu::no_sanitize_thread]] inline void poke(bool& at, bool value) noexcept {
  *const_cast<volatile bool*>(&at) = value;
}

}  // namespace weft::detail
