// What a wait is for, told to whoever looks at a sleeper from outside: the hook of a wait-for graph. What asks for it is in
// observe.hpp.
//
// Nothing is recorded. A wait has a pointer to what its type knows (waiter.hpp), so who asks gets it from the wait itself,
// and who holds a mutex is in the mutex's own word.
#pragma once

#include <cstddef>
#include <iosfwd>

namespace weft {

/// One thing that a wait is for.
struct wait_subject {
  const char* what;     ///< "mutex", "channel, to send": of the primitive's type, and not translated
  const void* at;       ///< the primitive, or what stands for it; null: there is none
  const void* held_by;  ///< the root that has it, or that will bring it about; null: nobody alone, or it is not known
};

/// By what is written there, and by the two addresses.
bool operator==(const wait_subject& a, const wait_subject& b) noexcept;

/// "mutex 0x7ffc12 held by root 0x55d0f8".
std::ostream& operator<<(std::ostream& out, const wait_subject& what);

namespace detail {

/// All that one wait is for: one thing, but for a select. Allocates nothing, since who asks may hold the wait.
struct wait_subjects {
  static constexpr std::size_t most = 16;

  void add(const char* what, const void* at, const void* held_by = nullptr) noexcept {
    if (count != most) all[count++] = {what, at, held_by};
  }

  wait_subject all[most];
  std::size_t count = 0;
};

}  // namespace detail
}  // namespace weft
