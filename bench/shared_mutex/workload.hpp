// shared_mutex: --size tasks on two threads, one on one, read a number under a mutex that they share; every hundredth
// time each takes it alone and adds one. A hundred thousand times in all; one item is a lock and its unlock.
#pragma once

#include "../harness/harness.hpp"

#include <cstddef>

namespace bench {

inline constexpr std::size_t shared_locks = 102'400;
inline constexpr std::size_t reads_a_write = 100;

constexpr unsigned shared_threads(std::size_t contenders) { return contenders == 1 ? 1 : 2; }

/// How often `contenders` take it alone.
constexpr std::size_t shared_writes(std::size_t contenders) {
  return contenders * (shared_locks / contenders / reads_a_write);
}

}  // namespace bench
