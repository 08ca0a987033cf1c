// What a server does about failures: whose fault one of an accept or of a handler is, and how long it pauses where the system lacks
// something.
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

// The delays between attempts to accept for which the system lacks something.
class accept_delay {
 public:
  void reset() noexcept { next_ = first; }
  clock::duration next() noexcept { return std::exchange(next_, std::min(2 * next_, most)); }

 private:
  static constexpr clock::duration first = std::chrono::milliseconds{5}, most = std::chrono::seconds{1};
  clock::duration next_ = first;
};

// For the last one, no try behind it can succeed.
enum class accept_failure : std::uint8_t { of_the_connection, of_the_system, of_the_listener };

inline accept_failure kind_of(const std::error_code& refused) noexcept {
  if (refused.category() != std::generic_category()) return accept_failure::of_the_listener;
  switch (refused.value()) {
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
    case ENOSPC:  // for what watches it
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

// Whether a handler has failed by what its peer did.
inline bool is_of_the_peer(const std::error_code& failed) noexcept {
  if (failed == errc::closed) return true;
  if (failed == std::errc::protocol_error) return true;  // as all errors of TLS
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
