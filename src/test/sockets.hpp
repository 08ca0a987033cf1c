// The sockets and files of a run. Those that are made during the run, outside of a runtime, are watched by its world, which
// asks the system about them when nothing else can run, before time advances. Part of the test kit.
//
// Data sent through a local socket has arrived when the call returns. So runs are repeatable, as with channels, and the clock
// does not jump over data in flight. A call on a file that a ring makes ends later, and in real time: the world waits for it
// before time advances.
//
// All runs share one back end, since a stream may outlive its run. But a ring belongs to its thread, so each thread that makes
// runs on io_uring has one. A ring is made when the first run begins that asks for it; an epoll set only for the first
// descriptor.
#pragma once

#include <weft/io_backend.hpp>

namespace weft::detail { class io_service; }

namespace weft::test::detail {

class sockets {
 public:
  /// From now on descriptors are watched here; `automatic` is what WEFT_IO says, else epoll. Throws error if the system refuses
  /// that back end.
  explicit sockets(io_backend by);
  sockets(const sockets&) = delete;
  ~sockets() { end(); }
  void end() noexcept;

  /// The service of a run on io_uring; null on epoll, where the executor has none.
  weft::detail::io_service* ring() const noexcept;
  /// Whether the system has something to report.
  bool look() noexcept;
  /// Reports what look() has found: wakes the tasks that wait for it.
  void report() noexcept;
  /// Whether calls on files are under way in a ring.
  bool has_calls() const noexcept;
};

}  // namespace weft::test::detail
