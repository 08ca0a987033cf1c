// The sockets and files of a run: while it goes on, those that are made outside of a runtime are watched by its world, which asks
// the system when nothing else can run, and before time goes on. Part of the test kit.
//
// What one end of a local socket is sent, the other end has when the call returns. So runs are repeatable, as with channels,
// and the clock does not jump over what is on its way. A call on a file that a ring makes ends later, and in real time: the
// world waits for it before time goes on.
//
// One back end for all runs, since a stream may outlive its run; but a ring belongs to its thread, so each thread that makes
// runs on io_uring has one. It is made when the first run begins that asks for it; an epoll set only for the first descriptor.
#pragma once

#include <weft/io_backend.hpp>

namespace weft::detail { class io_service; }

namespace weft::test::detail {

class sockets {
 public:
  /// Descriptors are watched here from now on; `automatic` is what WEFT_IO says, else epoll. Throws error if the system refuses
  /// that back end.
  explicit sockets(io_backend by);
  sockets(const sockets&) = delete;
  ~sockets() { end(); }
  void end() noexcept;

  /// The service of a run on io_uring; null on epoll, where the executor has none.
  weft::detail::io_service* ring() const noexcept;
  /// Whether the system has something to report.
  bool look() noexcept;
  /// Reports that: wakes who waits for it.
  void report() noexcept;
  /// Whether a ring makes calls on files.
  bool has_calls() const noexcept;
};

}  // namespace weft::test::detail
