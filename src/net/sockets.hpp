// Helpers of this folder's sources: to make sockets, to get and set their options, and to throw what the system refuses.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>
#include <weft/error.hpp>
#include <weft/net.hpp>

#include "io/io_service.hpp"
#include "net/failed_try.hpp"
#include "net/system_address.hpp"

namespace weft {

inline std::error_code system_error(int number) noexcept { return {number, std::generic_category()}; }

/// Of a call that has failed on a socket, which is recorded.
inline error socket_error(int number, const char* operation, std::string_view subject = {}) {
  detail::record_io_error(number, -1, operation);
  return error{system_error(number), operation, subject};
}
inline error socket_error(int number, const char* operation, const net::endpoint& subject) {
  return socket_error(number, operation, std::string_view{subject.to_string()});
}
[[noreturn]] inline void throw_errno(const char* operation) { throw socket_error(errno, operation); }
[[noreturn]] inline void throw_closed(const char* operation) { throw error{detail::closed_here(), operation}; }

namespace net {

inline int socket_option(int number, int option) noexcept {
  int value = 0;
  socklen_t size = sizeof value;
  return ::getsockopt(number, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}
inline bool is_unix_socket(int number) noexcept { return socket_option(number, SO_DOMAIN) == AF_UNIX; }

// Owns a socket's number, and closes it unless it is taken over.
class new_socket {
 public:
  explicit new_socket(int number) noexcept : number_{number} {}
  new_socket(const new_socket&) = delete;
  ~new_socket() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const noexcept { return number_; }
  // Hands the number to the I/O service. It counts as ready, so the first operation tries at once. `is_duplicate`: somebody else
  // has a number of the same file.
  detail::descriptor& watch(bool is_duplicate = false) {
    detail::descriptor& watched = detail::io_service_here().watch(number_, true);
    if (!is_duplicate) watched.is_of_ours_alone();
    number_ = -1;
    return watched;
  }
  int give() noexcept { return std::exchange(number_, -1); }

 private:
  int number_;
};

inline int open_socket(const system_address& for_address, int type = SOCK_STREAM) {
  const int number = ::socket(for_address.any.sa_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (number < 0) throw_errno("make a socket");
  return number;
}

inline void set(int number, int level, int option, int value, const char* what) {
  if (::setsockopt(number, level, option, &value, sizeof value) != 0) throw_errno(what);
}

// Calls `call` with the descriptor's number, which is not closed meanwhile.
template <class Call>
auto with_number(const detail::descriptor* at, const char* what, Call call) {
  const detail::descriptor_use use{const_cast<detail::descriptor*>(at)};  // NOLINT: no descriptor is const
  if (!use) throw_closed(what);
  return call(at->number());
}
inline void set(const detail::descriptor* at, int level, int option, int value, const char* what) {
  with_number(at, what, [&](int number) { set(number, level, option, value, what); });
}

inline void make_non_blocking(int number, const char* what) {
  const int flags = ::fcntl(number, F_GETFL);
  if (flags < 0 || ::fcntl(number, F_SETFL, flags | O_NONBLOCK) != 0 || ::fcntl(number, F_SETFD, FD_CLOEXEC) != 0)
    throw_errno(what);
}

inline endpoint name_of(const detail::descriptor* at, int (*get)(int, sockaddr*, socklen_t*), const char* what) {
  return with_number(at, what, [&](int number) {
    system_address found;
    if (get(number, &found.any, &found.size) != 0) throw_errno(what);
    return found.to_endpoint();
  });
}

}  // namespace net
}  // namespace weft
