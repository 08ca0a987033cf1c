// What a task waits for, as shown to observers: an edge of the wait-for graph. observe.hpp has the functions that give it.
//
// Nothing is recorded. A wait points to the functions of its type (waiter.hpp), which read the answer from the wait itself; the
// holder of a mutex is read from the mutex's own word.
#pragma once

#include <cstddef>
#include <iosfwd>

namespace weft {

/// One thing that a wait is for.
struct wait_subject {
  const char* what;     ///< "mutex", "channel, to send": names the type of primitive; never translated
  const void* at;       ///< the address of the primitive or the like; null: there is none
  const void* held_by;  ///< the root that holds it, or will end the wait; null: no single one, or unknown
};

/// Compares the text of `what`, and both addresses.
bool operator==(const wait_subject& a, const wait_subject& b) noexcept;

/// Writes "mutex 0x7ffc12 held by root 0x55d0f8".
std::ostream& operator<<(std::ostream& out, const wait_subject& what);

namespace detail {

/// All that one wait is for: one thing, or one for each case of a select. It allocates nothing, since its user may hold the
/// wait meanwhile.
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
