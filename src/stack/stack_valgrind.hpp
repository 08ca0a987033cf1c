// Tells valgrind where stacks are, so that it sees a switch of stacks as such, and not as a very large frame.
#pragma once

#include <cstddef>

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif

namespace weft::detail {

#if defined(VALGRIND_STACK_REGISTER)
inline unsigned tell_valgrind([[maybe_unused]] std::byte* begin, [[maybe_unused]] std::byte* end) noexcept {
  return static_cast<unsigned>(VALGRIND_STACK_REGISTER(begin, end));
}
inline void untell_valgrind([[maybe_unused]] unsigned stack) noexcept { VALGRIND_STACK_DEREGISTER(stack); }
#else
inline unsigned tell_valgrind(std::byte*, std::byte*) noexcept { return 0; }
inline void untell_valgrind(unsigned) noexcept {}
#endif

}  // namespace weft::detail
