// A server's policy for failures: whose fault a failed accept or a failed handler is, and how long the server pauses when the
// system lacks something.
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <system_error>
#include <utility>
#include <weft/clock.hpp>
#include <weft/error.hpp>

namespace weft::detail {

// Exponential back-off: the delays between attempts to accept while the system lacks something.
class accept_delay {
 public:
  void reset() noexcept { next_ = first; }
  clock::duration next() noexcept { return std::exchange(next_, std::min(2 * next_, most)); }

 private:
  static constexpr clock::duration first = std::chrono::milliseconds{5}, most = std::chrono::seconds{1};
  clock::duration next_ = first;
};

// After of_the_listener no further accept can succeed.
enum class accept_failure : std::uint8_t { of_the_connection, of_the_system, of_the_listener };

inline accept_failure kind_of(const std::error_code& refused) noexcept {
  if (refused.category() != std::generic_category()) return accept_failure::of_the_listener;
  switch (refused.value()) {
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
    case ENOSPC:  // no more epoll watches (max_user_watches)
    case EPERM:   // a filter refuses the call, and may do so for ever
      return accept_failure::of_the_system;
    case ECONNRESET:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENETUNREACH:
    case ENONET:
    case ENOPROTOOPT:
    case ETIMEDOUT: return accept_failure::of_the_connection;
    default: return accept_failure::of_the_listener;
  }
}

// Whether a handler's failure was caused by its peer.
inline bool is_of_the_peer(const std::error_code& failed) noexcept {
  if (failed == errc::closed) return true;
  if (failed == std::errc::protocol_error) return true;  // all errors of TLS are this
  if (failed.category() != std::generic_category() && failed.category() != std::system_category()) return false;
  switch (failed.value()) {
    case ECONNABORTED:
    case ECONNRESET:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENETRESET:
    case ENETUNREACH:
    case ENOTCONN:
    case EPIPE:
    case ETIMEDOUT: return true;
    default: return false;
  }
}

}  // namespace weft::detail
