// mutex: --size take one mutex in turns and add one to a number under it, a hundred thousand times in all; one alone on one
// thread, more of them on two. One item is a lock and its unlock.
#pragma once

#include "../harness/harness.hpp"

#include <cstddef>

namespace bench {

inline constexpr std::size_t mutex_locks = 102'400;  // any number of contenders up to 64 divides it, if a power of two

constexpr unsigned mutex_threads(std::size_t contenders) { return contenders == 1 ? 1 : 2; }

}  // namespace bench
