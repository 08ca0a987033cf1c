// How a runtime waits for sockets, and how often it has. Part of runtime.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft {

/// How a runtime learns that a socket is ready.
enum class io_backend : unsigned char {
  automatic,  ///< what WEFT_IO in the environment says (epoll, uring); else a ring for one worker where the system allows
              ///< it, and epoll for several
  epoll,      ///< one set for all workers
  uring,      ///< a ring a worker: Linux 6.1, where nothing forbids io_uring, and a weft that was built with liburing
};

/// What a runtime has done for sockets so far. Figures of one moment each.
struct io_stats {
  std::size_t watched = 0;       ///< descriptors that are open
  std::uint64_t waits = 0;       ///< system calls that asked for changes
  std::uint64_t changes = 0;     ///< what these reported
  std::uint64_t interrupts = 0;  ///< of these waits, that were ended for what was posted
};

}  // namespace weft
