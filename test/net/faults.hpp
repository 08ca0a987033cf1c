// What net_faults_test.cpp is made of: where operations run, which calls fail with what, and sockets of the test's own, whose
// calls never do.
#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/net.hpp>
#include <weft/runtime.hpp>
#include <weft/test.hpp>
#include <weft/timed.hpp>

#include "net/open_descriptors.hpp"
#include "net/sockets.hpp"
#include "support/system_calls.hpp"
#include "support/weft_test.hpp"

namespace test {

using weft::io_backend;

// ---- where ----------------------------------------------------------------------------------------------------------------

enum class place {
  kit,
  threads,  // without a runtime: the epoll set of the process
  guest,    // a runtime in the loop of a plain thread
  epoll,
  uring,
  two_rings
};

inline std::vector<place> places() {
  if (weft::runtime{{.threads = 1}}.backend() == io_backend::epoll)
    return {place::kit, place::threads, place::guest, place::epoll};
  return {place::kit, place::threads, place::guest, place::epoll, place::uring, place::two_rings};
}
inline std::string name_of_place(const testing::TestParamInfo<place>& one) {
  constexpr const char* names[] = {"kit", "threads", "guest", "epoll", "uring", "two_rings"};
  return names[static_cast<std::size_t>(one.param)];
}

// Runs in one, again and again.
class runner {
 public:
  explicit runner(place where) {
    is_in_kit_ = where == place::kit;
    if (where == place::guest) runtime_.emplace(weft::runtime_options{.guest = true});
    if (where < place::epoll) return;
    runtime_.emplace(weft::runtime_options{.threads = where == place::two_rings ? 2U : 1U,
                                           .io = where == place::epoll ? io_backend::epoll : io_backend::uring});
  }
  // A hang is told of by the kit, and elsewhere it is ended, after so long.
  static constexpr int patience = 60;
  template <class Make>
  void operator()(Make make) {
    try {
      if (is_in_kit_)
        weft::test::run({.patience = std::chrono::seconds{patience}}, make);
      else if (!runtime_)
        weft::sync_wait(in_time(make));
      else if (runtime_->is_guest())
        loop(in_time(make));
      else
        runtime_->run(in_time(make));
    } catch (const std::exception& failure) {
      ADD_FAILURE() << failure.what();
    }
  }

 private:
  template <class Make>
  static auto in_time(const Make& make) {  // which outlives it: a coroutine may lie in it
    return weft::timeout(std::chrono::seconds{patience}, make());
  }
  // As another library's loop has it run; by ppoll(), since calls of poll() fail here.
  template <class Awaitable>
  void loop(Awaitable what) {
    std::optional<weft::result<void>> ended;
    weft::start(*runtime_, std::move(what), [&](weft::result<void> how) { ended.emplace(std::move(how)); });
    pollfd watched{.fd = runtime_->descriptor(), .events = POLLIN, .revents = 0};
    while (!ended) {
      if (::ppoll(&watched, 1, nullptr, nullptr) == 1) static_cast<void>(runtime_->run_ready(8));
    }
    std::move(*ended).value();
  }

  bool is_in_kit_ = false;
  std::optional<weft::runtime> runtime_;
};

// ---- what fails -------------------------------------------------------------------------------------------------------------

inline const std::vector<fault> all_faults{
    {call::recv, {one_byte}},
    {call::recv, {one_byte, one_byte, one_byte, one_byte}},
    {call::recv, {EINTR}},
    {call::recv, {EINTR, EINTR, EINTR, EINTR}},
    {call::recv, {EAGAIN}},
    {call::recv, {EAGAIN, EAGAIN, EAGAIN, EAGAIN, EAGAIN, EAGAIN}},
    {call::recv, {ENOMEM}},
    {call::recv, {EAGAIN, ENOBUFS}},
    {call::recv, {one_byte, ECONNRESET}},
    {call::recvfrom, {EINTR, EINTR}},
    {call::recvfrom, {one_byte}},
    {call::recvfrom, {EAGAIN}},
    {call::recvfrom, {ENOMEM}},
    {call::recvfrom, {ECONNREFUSED, ECONNREFUSED}},
    {call::send, {one_byte}},
    {call::send, {EINTR}},
    {call::send, {EAGAIN}},
    {call::send, {EAGAIN, EAGAIN}},
    {call::send, {EAGAIN, EAGAIN, EAGAIN, EAGAIN, one_byte, EAGAIN, EAGAIN, EAGAIN}},
    {call::send, {ENOBUFS}},
    {call::send, {EAGAIN, ENOMEM}},
    {call::send, {EAGAIN, EAGAIN, ENOMEM}},
    {call::send, {ECONNRESET}},
    {call::send, {one_byte, EPIPE}},
    {call::lend, {one_byte}},
    {call::lend, {EINTR}},
    {call::lend, {EAGAIN, EAGAIN, EAGAIN}},
    {call::lend, {EAGAIN, EAGAIN, one_byte, EAGAIN, EAGAIN, EAGAIN}},
    {call::lend, {ENOBUFS}},
    {call::lend, {EOPNOTSUPP}},
    {call::lend, {EINVAL}},
    {call::lend, {EAGAIN, EOPNOTSUPP}},
    {call::lend, {EAGAIN, ENOMEM}},
    {call::lend, {one_byte, EPIPE}},
    {call::lend, {one_byte, ECONNRESET}},
    {call::sendmsg, {one_byte, one_byte, one_byte}},
    {call::sendmsg, {EINTR}},
    {call::sendmsg, {EAGAIN, EAGAIN, EAGAIN}},
    {call::sendmsg, {EAGAIN, ENOBUFS}},
    {call::sendmsg, {ENOMEM}},
    {call::sendmsg, {EMSGSIZE}},
    {call::sendmsg, {ECONNREFUSED}},
    {call::sendmsg, {one_byte, EPIPE}},
    {call::sendfile, {one_byte, one_byte}},
    {call::sendfile, {EINTR, EINTR}},
    {call::sendfile, {EAGAIN}},
    {call::sendfile, {EAGAIN, EAGAIN}},
    {call::sendfile, {EAGAIN, EAGAIN, one_byte, EAGAIN, EAGAIN}},
    {call::sendfile, {EINVAL}},
    {call::sendfile, {EIO}},
    {call::sendfile, {EAGAIN, ENOMEM}},
    {call::sendfile, {one_byte, EPIPE}},
    {call::pread, {one_byte, one_byte}},
    {call::pread, {EINTR}},
    {call::pread, {EIO}},
    {call::pread, {one_byte, EIO}},
    {call::recvmsg, {one_byte}},
    {call::recvmsg, {one_byte, one_byte, one_byte, one_byte}},
    {call::recvmsg, {one_byte, ECONNRESET}},
    {call::recvmsg, {EINTR}},
    {call::recvmsg, {EINTR, EINTR, EINTR, EINTR}},
    {call::recvmsg, {EAGAIN}},
    {call::recvmsg, {EAGAIN, EAGAIN, EAGAIN, EAGAIN, EAGAIN, EAGAIN}},
    {call::recvmsg, {ENOMEM}},
    {call::recvmsg, {EAGAIN, ENOBUFS}},
    {call::recvmsg, {ECONNREFUSED}},
    {call::recvmmsg, {EINTR, EINTR, EINTR}},
    {call::recvmmsg, {EAGAIN}},
    {call::recvmmsg, {EAGAIN, EAGAIN, EAGAIN, EAGAIN, EAGAIN, EAGAIN}},
    {call::recvmmsg, {ENOMEM}},
    {call::recvmmsg, {EAGAIN, ECONNREFUSED}},
    {call::sendmmsg, {one_byte}},
    {call::sendmmsg, {one_byte, one_byte, one_byte}},
    {call::sendmmsg, {EINTR, EINTR, EINTR}},
    {call::sendmmsg, {EAGAIN}},
    {call::sendmmsg, {EAGAIN, EAGAIN, EAGAIN, EAGAIN, one_byte}},
    {call::sendmmsg, {ENOBUFS}},
    {call::sendmmsg, {one_byte, EMSGSIZE}},
    {call::sendmmsg, {EAGAIN, ECONNREFUSED}},
    {call::accept4, {EINTR, EINTR}},
    {call::accept4, {ECONNABORTED}},
    {call::accept4, {EPROTO, ECONNABORTED}},
    {call::accept4, {EAGAIN}},
    {call::accept4, {EAGAIN, EAGAIN}},
    {call::accept4, {EMFILE}},
    {call::accept4, {EAGAIN, EMFILE}},
    {call::accept4, {ECONNABORTED, ENFILE}},
    {call::accept4, {ENOBUFS}},
    {call::accept4, {EAGAIN, ENOMEM}},
    {call::socket, {EMFILE}},
    {call::socket, {ENFILE}},
    {call::socket, {ENOBUFS}},
    {call::bind, {EADDRINUSE}},
    {call::bind, {EACCES}},
    {call::listen, {EADDRINUSE}},
    {call::connect, {EINTR}},
    {call::connect, {EALREADY, EALREADY, EALREADY}},
    {call::connect, {ECONNREFUSED}},
    {call::connect, {ENETUNREACH}},
    {call::connect, {EADDRNOTAVAIL}},
    {call::connect, {EALREADY, ETIMEDOUT}},
    {call::poll, {EINTR, EINTR}},
    {call::poll, {ENOMEM}},
    {call::shutdown, {ENOBUFS}},
    {call::fcntl, {EMFILE}},
    {call::epoll_ctl, {ENOSPC}},
    {call::epoll_ctl, {ENOMEM}},
};

inline bool goes_on_behind(call where, int result) {
  switch (result) {
    case 0:
    case one_byte:
    case EINTR:
    case EAGAIN: return true;
    case ECONNABORTED:
    case EPROTO: return where == call::accept4;
    case EALREADY: return where == call::connect;
    case EINVAL: return where == call::sendfile || where == call::lend;  // it reads and writes then, or copies
    case EOPNOTSUPP:
    case ENOBUFS: return where == call::lend;  // it copies then
    default: return false;
  }
}

// What an operation fails with, if it had so many of the results.
inline std::error_code failure_of(const fault& what, std::size_t struck) {
  for (std::size_t i = 0; i != struck; ++i) {
    const int result = what.results[i];
    if (goes_on_behind(what.at, result)) continue;
    if (result == EPIPE) return weft::errc::closed;
    return {result, std::generic_category()};
  }
  return {};
}

// ---- sockets of the test's own ------------------------------------------------------------------------------------------------

class own_socket {
 public:
  explicit own_socket(int number) noexcept : number_{number} {}
  own_socket(own_socket&& other) noexcept : number_{std::exchange(other.number_, -1)} {}
  ~own_socket() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const noexcept { return number_; }
  void send(std::string_view text) const {
    EXPECT_EQ(real::__real_send(number_, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  void end() const { EXPECT_EQ(real::__real_shutdown(number_, SHUT_WR), 0); }
  std::string receive() const {
    char text[64];
    const ssize_t got = real::__real_recv(number_, text, sizeof text, 0);
    return {text, static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
  }

 private:
  int number_;
};

inline own_socket connected_to(std::uint16_t port) {
  own_socket made{real::__real_socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(real::__real_connect(made.number(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  return made;
}

// A listener of the test's own.
struct own_listener : own_socket {
  own_listener() : own_socket{real::__real_socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    EXPECT_EQ(::bind(number(), reinterpret_cast<const sockaddr*>(&at), size), 0);
    EXPECT_EQ(::listen(number(), 8), 0);
    EXPECT_EQ(::getsockname(number(), reinterpret_cast<sockaddr*>(&at), &size), 0);
    port = ntohs(at.sin_port);
  }
  bool has_one() const {
    pollfd one{.fd = number(), .events = POLLIN, .revents = 0};
    return ::poll(&one, 1, 0) == 1;
  }
  own_socket accept() const { return own_socket{real::__real_accept4(number(), nullptr, nullptr, SOCK_CLOEXEC)}; }

  std::uint16_t port = 0;
};

}  // namespace test
