// The outcome of a try that failed, and a try to write. For the sources of net, and for writes to other descriptors.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <system_error>
#include <weft/detail/io/descriptor.hpp>
#include <weft/detail/net/operation.hpp>

#include "core/turns.hpp"

namespace weft::detail {

/// No try waits, also where somebody else who has the file, such as a child, has made it blocking: MSG_DONTWAIT, as for reads.
inline constexpr int send_flags = MSG_NOSIGNAL | MSG_DONTWAIT;

/// A try that failed for lack of memory or of descriptors has left the data or the connection in place, and no change is reported
/// for it again: so the direction stays ready.
inline tried failed(descriptor& at, direction which, int error) noexcept {
  if (error == EAGAIN) return {.must_wait = true};
  at.has_more(which);
  record_io_error(error, at.number(), which == direction::in ? "read a socket" : "write a socket");
  return {.refused = {error, std::generic_category()}};
}
/// As failed(), for a write: EPIPE, when the peer takes nothing more, is `closed`.
inline tried failed_write(descriptor& at, int error) noexcept {
  if (error != EPIPE) return failed(at, direction::out, error);
  record_io_error(error, at.number(), "write a socket");
  return {.refused = closed_here()};
}

/// Counts the bytes sent for the traced request of the running task, and returns `sent`.
inline tried counted(const tried& sent) noexcept {
  if (sent.size != 0) count_io(sent.size);
  return sent;
}

/// Tries a write by `send`, which returns a size, or less than zero and errno. A lack of room is rare: so the event is reset only
/// after a try that found no room, and before a second one.
template <class Send>
tried try_write(descriptor& to, Send send) noexcept {
  const auto uninterrupted = [&send] {
    ssize_t size;
    do size = send();
    while (size < 0 && errno == EINTR);
    return size;
  };
  ssize_t size = uninterrupted();
  if (size < 0 && errno == EAGAIN) {
    to.expect_change(direction::out);
    size = uninterrupted();
    if (size >= 0) to.has_more(direction::out);
  }
  if (size < 0) return failed_write(to, errno);
  to.has_moved(static_cast<std::size_t>(size));
  return {.size = static_cast<std::size_t>(size)};
}

}  // namespace weft::detail
