// The sockets of a run: while it goes on, those that are made outside of a runtime are watched by its world, which asks the
// system when nothing else can run, and before time goes on. Part of the test kit.
//
// What one end of a local socket is sent, the other end has when the call returns. So runs are repeatable, as with channels,
// and the clock does not jump over what is on its way.
//
// One epoll set for all runs, since a stream may outlive its run.
#pragma once

#include "io/epoll.hpp"

namespace weft::test::detail {

class sockets {
 public:
  /// Descriptors are watched here from now on.
  sockets() noexcept;
  sockets(const sockets&) = delete;
  ~sockets() { end(); }
  void end() noexcept;

  /// Whether the system has something to report.
  bool look() noexcept;
  /// Reports that: wakes who waits for it.
  void report() noexcept { found_.report(); }

 private:
  weft::detail::epoll::changes found_;
};

}  // namespace weft::test::detail
