// What a try comes to, and a write that finds no room. For net, and for what writes elsewhere.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <system_error>
#include <weft/detail/io/descriptor.hpp>
#include <weft/detail/net/operation.hpp>

#include "core/turns.hpp"

namespace weft::detail {

/// What has failed for want of memory, or of numbers, has left what it was tried for; and nobody reports that once more.
inline tried failed(descriptor& at, direction which, int error) noexcept {
  if (error == EAGAIN) return {.must_wait = true};
  at.has_more(which);
  record(event_kind::io_error, static_cast<std::uint32_t>(error), static_cast<std::uint64_t>(at.number()),
         as_number(which == direction::in ? "read a socket" : "write a socket"));
  return {.refused = {error, std::generic_category()}};
}
/// The same of a write: that the peer takes nothing more is `closed`.
inline tried failed_write(descriptor& at, int error) noexcept {
  return error == EPIPE ? tried{.refused = closed_here()} : failed(at, direction::out, error);
}

/// What has been sent, of bytes, which it counts for the traced request that sends.
inline tried counted(const tried& sent) noexcept {
  if (sent.size != 0) count_io(sent.size);
  return sent;
}

/// Has `send` write: it gives a size, or less than zero and errno. Room is seldom lacking: so readiness is cleared only after a
/// try that found none, and before another one.
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
