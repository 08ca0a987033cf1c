// What a try that has failed comes to. For the sources of net.
#pragma once

#include <cerrno>
#include <system_error>
#include <weft/detail/io/descriptor.hpp>
#include <weft/detail/net/operation.hpp>

namespace weft::detail {

/// What has failed for want of memory, or of numbers, has left what it was tried for; and nobody reports that once more.
inline tried failed(descriptor& at, direction which, int error) noexcept {
  if (error == EAGAIN) return {.must_wait = true};
  at.has_more(which);
  return {.refused = {error, std::generic_category()}};
}
/// The same of a write: that the peer takes nothing more is `closed`.
inline tried failed_write(descriptor& at, int error) noexcept {
  return error == EPIPE ? tried{.refused = closed_here()} : failed(at, direction::out, error);
}

}  // namespace weft::detail
