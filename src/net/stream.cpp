#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>
#include <weft/net.hpp>
#include <weft/select.hpp>

#include "core/worker.hpp"
#include "io/io_service.hpp"
#include "net/system_address.hpp"
#include "sched/pool_worker.hpp"

namespace weft {
namespace {

std::error_code system_error(int number) noexcept { return {number, std::generic_category()}; }

[[noreturn]] void throw_errno(const char* operation) { throw error{system_error(errno), operation}; }

}  // namespace

namespace detail {

void throw_closed(const char* operation) { throw error{make_error_code(errc::closed), operation}; }

tried try_receive(descriptor& from, std::span<std::byte> into) {
  from.expect_change(direction::in);
  ssize_t size;
  do size = ::recv(from.number(), into.data(), into.size(), 0);
  while (size < 0 && errno == EINTR);
  if (size >= 0) {
    if (static_cast<std::size_t>(size) == into.size()) from.has_more(direction::in);
    return {.size = static_cast<std::size_t>(size)};
  }
  if (errno != EAGAIN) throw_errno("read");
  return {.must_wait = true};
}

namespace {

ssize_t send(descriptor& to, std::span<const std::span<const std::byte>> parts) noexcept {
  ssize_t size;
  if (parts.size() == 1) {
    do size = ::send(to.number(), parts.front().data(), parts.front().size(), MSG_NOSIGNAL);
    while (size < 0 && errno == EINTR);
    return size;
  }
  iovec vectors[64];
  const std::size_t count = std::min(parts.size(), std::size(vectors));
  for (std::size_t i = 0; i != count; ++i)
    vectors[i] = {.iov_base = const_cast<std::byte*>(parts[i].data()),
                  .iov_len = parts[i].size()};  // NOLINT: only read
  msghdr message{};
  message.msg_iov = vectors;
  message.msg_iovlen = count;
  do size = ::sendmsg(to.number(), &message, MSG_NOSIGNAL);
  while (size < 0 && errno == EINTR);
  return size;
}

}  // namespace

// Room is seldom lacking: so readiness is cleared only after a try that found none, and before another one.
tried try_send(descriptor& to, std::span<const std::span<const std::byte>> parts) {
  ssize_t size = send(to, parts);
  if (size < 0 && errno == EAGAIN) {
    to.expect_change(direction::out);
    size = send(to, parts);
    if (size < 0 && errno == EAGAIN) return {.must_wait = true};
    if (size >= 0) to.has_more(direction::out);
  }
  if (size >= 0) return {.size = static_cast<std::size_t>(size)};
  if (errno == EPIPE) throw_closed("write");
  throw_errno("write");
}

tried try_accept(descriptor& from) {
  for (bool again = false;; again = true) {
    const int number = ::accept4(from.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (number >= 0) {
      from.has_more(direction::in);  // perhaps: others that accept look, too
      return {.size = static_cast<std::size_t>(number)};
    }
    switch (errno) {
      case EINTR:
      case ECONNABORTED:
      case EPROTO: continue;  // that connection is gone before it was there
      case EAGAIN:
        if (again) return {.must_wait = true};
        from.expect_change(direction::in);
        break;
      default:
        if (from.is_closed()) throw_closed("accept");  // it was shut down meanwhile
        throw_errno("accept");
    }
  }
}

bool has_had_its_turn() noexcept {
  constexpr unsigned most_in_a_turn = 128;
  worker& here = this_worker();
  const pool_worker* const mine = here.of_pool;
  if (mine == nullptr) return false;
  io_slot& slot = here.io;
  if (const std::uint64_t turn = mine->jobs.get(); turn != slot.turn) {
    slot.turn = turn;
    slot.operations = 0;
  }
  if (++slot.operations < most_in_a_turn) return false;
  slot.operations = 0;
  return true;
}

void unfinished_write::cut() noexcept { to_->shut_down_writes(); }

}  // namespace detail

namespace net {
namespace {

// Closes what was not taken over by anybody.
class new_socket {
 public:
  explicit new_socket(int number) noexcept : number_{number} {}
  new_socket(const new_socket&) = delete;
  ~new_socket() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const noexcept { return number_; }
  detail::descriptor& watch(bool tries_first = true) {
    detail::descriptor& watched = detail::io_service_here().watch(number_, tries_first);
    number_ = -1;
    return watched;
  }
  int give() noexcept { return std::exchange(number_, -1); }

 private:
  int number_;
};

int open_socket(const system_address& for_address) {
  const int number = ::socket(for_address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (number < 0) throw_errno("make a socket");
  return number;
}

void set(int number, int level, int option, int value, const char* what) {
  if (::setsockopt(number, level, option, &value, sizeof value) != 0) throw_errno(what);
}

void make_non_blocking(int number, const char* what) {
  const int flags = ::fcntl(number, F_GETFL);
  if (flags < 0 || ::fcntl(number, F_SETFL, flags | O_NONBLOCK) != 0 || ::fcntl(number, F_SETFD, FD_CLOEXEC) != 0)
    throw_errno(what);
}

endpoint name_of(const detail::descriptor* at, int (*get)(int, sockaddr*, socklen_t*), const char* what) {
  const detail::descriptor_use use{const_cast<detail::descriptor*>(at)};  // NOLINT: it is the caller's, who may write
  if (!use) detail::throw_closed(what);
  system_address found;
  if (get(at->number(), &found.any, &found.size) != 0) throw_errno(what);
  return found.to_endpoint();
}

}  // namespace

// ---- streams --------------------------------------------------------------------------------------------------------------

stream stream::take_over(int number) {
  new_socket mine{number};
  const int on = 1;
  ::setsockopt(number, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // what is no TCP has none
  return stream{mine.watch()};
}

stream stream::adopt(int number) {
  make_non_blocking(number, "adopt a socket");
  return stream{detail::io_service_here().watch(number, true)};
}

int stream::release() noexcept {
  if (at_ == nullptr || at_->is_closed()) return -1;
  detail::descriptor& mine = *std::exchange(at_, nullptr);
  const int number = mine.release();
  mine.drop();
  return number;
}

void stream::shutdown() const {
  const detail::descriptor_use use{at_};
  if (!use) detail::throw_closed("shut a stream down");
  if (const int refused = at_->shut_down_writes(); refused != 0)
    throw error{system_error(refused), "shut a stream down"};
}

endpoint stream::local() const { return name_of(at_, ::getsockname, "ask for a stream's own endpoint"); }
endpoint stream::peer() const { return name_of(at_, ::getpeername, "ask for a stream's peer"); }

void stream::set_no_delay(bool on) const { set(native_handle(), IPPROTO_TCP, TCP_NODELAY, on, "set no_delay"); }
void stream::set_keep_alive(bool on) const { set(native_handle(), SOL_SOCKET, SO_KEEPALIVE, on, "set keep_alive"); }
void stream::set_receive_buffer(int bytes) const {
  set(native_handle(), SOL_SOCKET, SO_RCVBUF, bytes, "set a receive buffer");
}
void stream::set_send_buffer(int bytes) const {
  set(native_handle(), SOL_SOCKET, SO_SNDBUF, bytes, "set a send buffer");
}

task<stream> connect(endpoint to) {
  co_await check_stop();
  const system_address address{to};
  new_socket made{open_socket(address)};
  int refused = 0;
  if (::connect(made.number(), &address.any, address.size) != 0) refused = errno;
  if (refused == EINTR) refused = EINPROGRESS;  // it goes on
  if (refused != 0 && refused != EINPROGRESS) throw error{system_error(refused), "connect", to.to_string()};
  stream connected = stream::take_over(made.give());
  if (refused == EINPROGRESS) {
    detail::descriptor& at = *connected.at_;
    for (;;) {
      at.expect_change(detail::direction::out);
      system_address peer;
      if (::getpeername(at.number(), &peer.any, &peer.size) == 0) break;
      socklen_t size = sizeof refused;
      refused = 0;
      ::getsockopt(at.number(), SOL_SOCKET, SO_ERROR, &refused, &size);
      if (refused != 0) throw error{system_error(refused), "connect", to.to_string()};
      co_await at.until_ready(detail::direction::out);
    }
    at.has_more(detail::direction::out);
  }
  co_return connected;
}

// ---- listeners ------------------------------------------------------------------------------------------------------------

task<listener> listen(listen_options options, endpoint where) {
  const system_address address{where};
  new_socket made{open_socket(address)};
  const int number = made.number();
  if (options.reuse_address) set(number, SOL_SOCKET, SO_REUSEADDR, 1, "listen");
  if (options.reuse_port) set(number, SOL_SOCKET, SO_REUSEPORT, 1, "listen");
  if (where.is_v6()) set(number, IPPROTO_IPV6, IPV6_V6ONLY, options.only_v6, "listen");
  if (::bind(number, &address.any, address.size) != 0 || ::listen(number, options.backlog) != 0)
    throw error{system_error(errno), "listen", where.to_string()};
  co_return listener{made.watch()};
}

listener listener::adopt(int number) {
  make_non_blocking(number, "adopt a listening socket");
  return listener{detail::io_service_here().watch(number, true)};
}

endpoint listener::local() const { return name_of(at_, ::getsockname, "ask for a listener's endpoint"); }

task<stream> listener::accept_from(detail::descriptor* at) {
  const detail::descriptor_use use{at};
  if (!use) detail::throw_closed("accept");
  co_await check_stop();
  if (detail::has_had_its_turn()) co_await yield();
  for (;;) {
    if (at->may_try(detail::direction::in))
      if (const detail::tried got = detail::try_accept(*at); !got.must_wait)
        co_return stream::take_over(static_cast<int>(got.size));
    co_await at->until_ready(detail::direction::in);
    if (at->is_closed()) detail::throw_closed("accept");
  }
}

// ---- others' descriptors --------------------------------------------------------------------------------------------------

namespace {

// A duplicate of somebody's descriptor, since the same number may be watched already, for somebody else.
class twin {
 public:
  explicit twin(int of) {
    new_socket mine{::fcntl(of, F_DUPFD_CLOEXEC, 0)};
    if (mine.number() < 0) throw_errno("wait for a descriptor");
    at_ = &mine.watch(false);
  }
  twin(const twin&) = delete;
  ~twin() { at_->drop(); }
  detail::descriptor& operator*() const noexcept { return *at_; }

 private:
  detail::descriptor* at_;
};

}  // namespace

task<readiness> ready(int number, readiness wanted) {
  co_await check_stop();
  const twin watched{number};
  detail::descriptor& at = *watched;
  switch (wanted) {
    case readiness::readable: co_await at.until_ready(detail::direction::in); break;
    case readiness::writable: co_await at.until_ready(detail::direction::out); break;
    case readiness::either:
      co_await select(on(at.until_ready(detail::direction::in)), on(at.until_ready(detail::direction::out)));
  }
  co_return static_cast<readiness>((at.may_try(detail::direction::in) ? 1 : 0) |
                                   (at.may_try(detail::direction::out) ? 2 : 0));
}

}  // namespace net
}  // namespace weft
