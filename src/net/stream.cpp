#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <utility>
#include <weft/clock.hpp>
#include <weft/net.hpp>

#include "core/worker.hpp"
#include "io/io_service.hpp"
#include "net/socket_file.hpp"
#include "net/sockets.hpp"
#include "net/system_address.hpp"
#include "sched/pool_worker.hpp"

namespace weft {
namespace detail {

std::exception_ptr failure_of(std::error_code refused, const char* operation) noexcept {
  try {
    return std::make_exception_ptr(error{refused, operation});
  } catch (...) {  // no memory for its text
    return std::current_exception();
  }
}

void throw_failure_of(std::error_code refused, const char* operation) { throw error{refused, operation}; }

namespace {

constexpr std::size_t most_parts = 64;  // of one call

// Reads by a message. `ends_early`: there may be more data behind the bytes that it gives.
ssize_t receive_by_message(int number, std::span<iovec> parts, bool& ends_early) noexcept {
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  const ssize_t size = ::recvmsg(number, &message, MSG_DONTWAIT);
  ends_early =
      (message.msg_flags & MSG_CTRUNC) != 0;  // there were descriptors or credentials, which the system has dropped
  return size;
}

// Tries a read of at most `most` bytes by `receive`, which returns a size, or less than zero and errno.
template <class Receive>
tried try_read(descriptor& from, std::size_t most, Receive receive) noexcept {
  const bool was_repeated = from.take_repeated();
  from.expect_change(direction::in);
  ssize_t size;
  bool ends_early = false;
  do size = receive(ends_early);
  while (size < 0 && errno == EINTR);
  if (size == 0 && from.is_closed()) return {.refused = closed_here()};  // by close(), not by the peer
  if (size >= 0) {
    from.has_moved(static_cast<std::size_t>(size));
    count_io(static_cast<std::size_t>(size));
    if (static_cast<std::size_t>(size) == most || ends_early || (size != 0 && from.has_marks()))
      from.has_more(direction::in);
    if (was_repeated && size != 0) [[unlikely]]
      from.has_perhaps_more();
    return {.size = static_cast<std::size_t>(size)};
  }
  return failed(from, direction::in, errno);
}

}  // namespace

tried try_receive(descriptor& from, std::span<std::byte> into) noexcept {
  return try_read(from, into.size(), [&](bool& ends_early) {
    iovec part{.iov_base = into.data(), .iov_len = into.size()};
    return from.is_unix() ? receive_by_message(from.number(), {&part, 1}, ends_early)
                          : ::recv(from.number(), into.data(), into.size(), MSG_DONTWAIT);
  });
}

tried try_receive(descriptor& from, std::span<const std::span<std::byte>> into) noexcept {
  if (into.size() == 1) return try_receive(from, into.front());
  iovec vectors[most_parts];
  const std::size_t count = std::min(into.size(), std::size(vectors));
  std::size_t most = 0;
  for (std::size_t i = 0; i != count; ++i) {
    vectors[i] = {.iov_base = into[i].data(), .iov_len = into[i].size()};
    most += into[i].size();
  }
  return try_read(from, most,
                  [&](bool& ends_early) { return receive_by_message(from.number(), {vectors, count}, ends_early); });
}

namespace {

ssize_t send(descriptor& to, std::span<const std::span<const std::byte>> parts) noexcept {
  if (parts.size() == 1) return ::send(to.number(), parts.front().data(), parts.front().size(), send_flags);
  iovec vectors[most_parts];
  const std::size_t count = std::min(parts.size(), std::size(vectors));
  for (std::size_t i = 0; i != count; ++i)
    vectors[i] = {.iov_base = const_cast<std::byte*>(parts[i].data()),
                  .iov_len = parts[i].size()};  // NOLINT: only read
  msghdr message{};
  message.msg_iov = vectors;
  message.msg_iovlen = count;
  return ::sendmsg(to.number(), &message, send_flags);
}

}  // namespace

tried try_send(descriptor& to, std::span<const std::span<const std::byte>> parts) noexcept {
  return counted(try_write(to, [&] { return send(to, parts); }));
}

tried try_accept(descriptor& from, net::ip_address* peer) noexcept {
  for (bool again = false;; again = true) {
    net::ip_address its;
    socklen_t size = sizeof its;  // a Unix address is cut off there, and not used
    const int number = peer == nullptr ? ::accept4(from.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)
                                       : ::accept4(from.number(), &its.any, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (number >= 0) {
      if (peer != nullptr && its.is_one()) *peer = its;
      from.has_more(direction::in);  // there may be more connections, for this acceptor or for another one
      return {.size = static_cast<std::size_t>(number)};
    }
    switch (errno) {
      case EINTR:
      case ECONNABORTED:
      case EPROTO: continue;  // that connection ended before it was accepted
      case EAGAIN:
        // On a Unix listener that was shut down, accept gives EAGAIN for ever, and nothing more is reported.
        if (again && from.has_ended(direction::in))
          return {.refused = from.is_closed() ? closed_here() : system_error(EINVAL)};
        if (again) return {.must_wait = true};
        from.expect_change(direction::in);
        break;
      default: {
        const tried refused = failed(from, direction::in, errno);
        return from.is_closed() ? tried{.refused = closed_here()} : refused;  // close() has shut the socket down
      }
    }
  }
}

bool has_had_its_turn() noexcept {
  constexpr unsigned most_in_a_turn = 128;
  worker& here = this_worker();
  io_slot& slot = here.io;
  // Outside of a pool jobs have no numbers, so the count goes on from job to job.
  if (const pool_worker* const mine = here.of_pool; mine != nullptr)
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

// ---- streams --------------------------------------------------------------------------------------------------------------

stream stream::take_over(int number, bool is_unix) {
  new_socket mine{number};
  const int on = 1;
  if (!is_unix)
    ::setsockopt(number, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // fails, without harm, if it is not TCP
  stream made{mine.watch()};
  made.at_->is_of_unix(is_unix);
  return made;
}

stream stream::adopt(int number) {
  make_non_blocking(number, "adopt a socket");
  stream made{detail::io_service_here().watch(number, true)};
  made.at_->is_of_unix(is_unix_socket(number));
  return made;
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
  if (!use) throw_closed("shut a stream down");
  if (const int refused = at_->shut_down_writes(); refused != 0) throw socket_error(refused, "shut a stream down");
}

endpoint stream::local() const { return name_of(at_, ::getsockname, "ask for a stream's own endpoint"); }
endpoint stream::peer() const { return name_of(at_, ::getpeername, "ask for a stream's peer"); }

void stream::set_no_delay(bool on) const { set(at_, IPPROTO_TCP, TCP_NODELAY, on, "set no_delay"); }
void stream::set_keep_alive(bool on) const { set(at_, SOL_SOCKET, SO_KEEPALIVE, on, "set keep_alive"); }
void stream::set_receive_buffer(int bytes) const { set(at_, SOL_SOCKET, SO_RCVBUF, bytes, "set a receive buffer"); }
void stream::set_send_buffer(int bytes) const { set(at_, SOL_SOCKET, SO_SNDBUF, bytes, "set a send buffer"); }

task<stream> connect(endpoint to) {
  co_await check_stop();
  const system_address address{to};
  new_socket made{open_socket(address)};
  int refused = 0;
  if (::connect(made.number(), &address.any, address.size) != 0) refused = errno;
  if (refused == EINTR) refused = EINPROGRESS;  // the connect goes on
  // EAGAIN: a Unix listener's backlog is full, and no change is reported when it has room. So this polls, with a back-off.
  for (clock::duration delay = std::chrono::milliseconds{1}; to.is_unix() && refused == EAGAIN;) {
    co_await sleep_for(delay);
    delay = std::min(2 * delay, clock::duration{std::chrono::milliseconds{64}});
    refused = ::connect(made.number(), &address.any, address.size) == 0 ? 0 : errno;
  }
  if (refused != 0 && refused != EINPROGRESS) co_await fail_with(socket_error(refused, "connect", to));
  stream connected = stream::take_over(made.give(), to.is_unix());
  if (refused == EINPROGRESS) {
    detail::descriptor& at = *connected.at_;
    for (;;) {
      at.expect_change(detail::direction::out);
      // Another connect() returns the state of the first one: that it goes on, or its result.
      if (::connect(at.number(), &address.any, address.size) == 0 || errno == EISCONN) break;
      if (errno != EALREADY && errno != EINPROGRESS && errno != EINTR)
        co_await fail_with(socket_error(errno, "connect", to));
      co_await at.until_ready(detail::direction::out);
    }
    at.has_more(detail::direction::out);
  }
  co_return connected;
}

// ---- listeners ------------------------------------------------------------------------------------------------------------

task<std::vector<listener>> listen_many(listen_options options, endpoint where, std::size_t count) {
  WEFT_EXPECTS(count != 0, "listen_many was asked for no listener");
  options.reuse_port = true;
  std::vector<listener> all;
  all.reserve(count);
  for (; all.size() != count; where = all.front().local()) {
    auto listening = listen(options, where);
    all.push_back(co_await std::move(listening));
  }
  co_return all;
}

task<listener> listen(listen_options options, endpoint where) {
  const system_address address{where};
  new_socket made{open_socket(address)};
  const int number = made.number();
  if (options.reuse_address) set(number, SOL_SOCKET, SO_REUSEADDR, 1, "listen");
  if (options.reuse_port) set(number, SOL_SOCKET, SO_REUSEPORT, 1, "listen");
  if (where.is_v6()) set(number, IPPROTO_IPV6, IPV6_V6ONLY, options.only_v6, "listen");
  new_socket_file file{where};
  const int refused = file.bind(number, address, options.replace_stale);
  if (refused != 0 || ::listen(number, options.backlog) != 0)
    co_await fail_with(socket_error(refused != 0 ? refused : errno, "listen", where));
  detail::descriptor& at = made.watch();
  at.is_of_unix(where.is_unix());
  co_return listener{at, file.give()};
}

listener listener::adopt(int number) {
  make_non_blocking(number, "adopt a listening socket");
  listener made{detail::io_service_here().watch(number, true)};
  made.at_->is_of_unix(is_unix_socket(number));
  return made;
}

void listener::remove_file(bool is_last) noexcept {
  if (file_ == nullptr) return;
  file_->remove();
  if (is_last) delete std::exchange(file_, nullptr);
}

endpoint listener::local() const { return name_of(at_, ::getsockname, "ask for a listener's endpoint"); }

}  // namespace net

// ---- descriptors of the program -------------------------------------------------------------------------------------------

namespace detail {

twin::twin(int of, bool merges) {
  net::new_socket mine{::fcntl(of, F_DUPFD_CLOEXEC, 0)};
  if (mine.number() < 0) throw_errno("wait for a descriptor");
  at_ = &mine.watch(true);
  if (merges) at_->merge_directions();
}

tried getting_ready::attempt() const noexcept {
  at->expect_change(which());
  const auto asks = [this](net::readiness which) { return (static_cast<int>(wanted) & static_cast<int>(which)) != 0; };
  pollfd one{.fd = at->number(),
             .events = static_cast<short>((asks(net::readiness::readable) ? POLLIN : 0) |
                                          (asks(net::readiness::writable) ? POLLOUT : 0)),
             .revents = 0};
  int found_any;
  do found_any = ::poll(&one, 1, 0);
  while (found_any < 0 && errno == EINTR);
  if (found_any < 0) return failed(*at, which(), errno);
  const bool all = (one.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
  const std::size_t found =
      (all || (one.revents & POLLIN) != 0 ? 1U : 0U) | (all || (one.revents & POLLOUT) != 0 ? 2U : 0U);
  return {.size = found, .must_wait = found == 0};
}

}  // namespace detail
}  // namespace weft
