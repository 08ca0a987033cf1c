// By which interface of the kernel a runtime waits for sockets, and how often it has waited. Part of runtime.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft {

/// How a runtime learns that a socket is ready.
enum class io_backend {
  /// As the environment variable WEFT_IO says (epoll, uring). Without it, io_uring for a runtime of one worker where the system
  /// allows it, and epoll for several workers.
  automatic,
  epoll,  ///< one epoll set for all workers
  uring,  ///< an io_uring for each worker: needs Linux 6.1, a system that allows io_uring, and a weft built with liburing
};

/// What a runtime has done for sockets so far. Each figure is read by itself, so they need not agree.
struct io_stats {
  std::size_t watched = 0;       ///< open descriptors that it watches
  std::uint64_t waits = 0;       ///< system calls that asked the kernel which descriptors are ready
  std::uint64_t changes = 0;     ///< changes of readiness that these calls reported
  std::uint64_t interrupts = 0;  ///< how many of the waits were ended since a job was posted
};

}  // namespace weft
