// connect, accept, and the calls that send only on sockets.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <optional>

#include "hook/descriptors.hpp"
#include "hook/file_identity.hpp"
#include "hook/next.hpp"
#include "hook/parts.hpp"

namespace weft::detail {
namespace {

WEFT_HOOK_NEXT(connect);
WEFT_HOOK_NEXT(accept);
WEFT_HOOK_NEXT(accept4);
WEFT_HOOK_NEXT(sendto);
WEFT_HOOK_NEXT(sendmmsg);

using namespace std::chrono_literals;
using weft::hook_options;

// ---- sending ----------------------------------------------------------------------------------------------------------------

// Retries with exponential backoff, after 1 ms, then 2 ms, up to 64 ms. For sends to a Unix datagram socket by its address, and
// connects to a Unix listener: no event says when these have room. After a close() the number may name another socket, which
// must not be connected, or send.
template <class Attempt>
ssize_t retry_with_backoff(const hooked_call& call, int number, ssize_t result, Attempt attempt) noexcept {
  const clock::time_point until = limit_of(number, direction::out);
  const file_identity before{number};
  for (clock::duration pause = 1ms; would_block(result); pause = std::min<clock::duration>(2 * pause, 64ms)) {
    const clock::duration left = until == without_end ? pause : until - current_clock().now();
    if (left <= clock::duration::zero()) return call.fail(EAGAIN);
    if (!await_unless_stopped(sleep_for(std::min(left, pause)))) return call.fail(ECANCELED);
    if (file_identity{number} != before) return call.fail(EBADF);
    result = attempt();
  }
  return call.give(result);
}

// send(done, flags) sends what comes after the first `done` bytes. `sends_whole`: the socket sends whole messages. has_address()
// says whether the call names an address; it is asked when the system has read the message.
template <class Size, class Send, class HasAddress>
ssize_t send_hooked(const hooked_call& call, int number, Size size, int flags, bool sends_whole, Send send,
                    HasAddress has_address) noexcept {
  if ((flags & (MSG_DONTWAIT | MSG_OOB)) != 0) return call.give(send(0, flags));
  if (!may_begin(call)) return is_non_blocking(number) ? call.give(send(0, flags)) : call.fail(ECANCELED);
  const auto attempt = [&](std::size_t done) {
    // A later part of one call raises no SIGPIPE: the call then reports the part that was sent.
    const ssize_t sent = send(done, flags | MSG_DONTWAIT | (done != 0 ? MSG_NOSIGNAL : 0));
    if (sent >= 0 || errno == EINPROGRESS) flags &= ~MSG_FASTOPEN;  // it has begun to connect
    // Each call that sends a part without a copy takes one number for its completion, of which the program expects one.
    if (sent > 0) flags &= ~MSG_ZEROCOPY;
    return sent;
  };
  if (sends_whole) {
    const ssize_t sent = attempt(0);
    if (!would_block(sent)) return call.give(sent);  // no stream, so it was sent as a whole
    if (is_non_blocking(number)) return call.fail(EAGAIN);
    if (has_address() && socket_option_of(number, SO_DOMAIN) == AF_UNIX)
      return retry_with_backoff(call, number, sent, [&] { return attempt(0); });
  }
  return send_whole(call, number, size, attempt, [&](std::size_t done) { return send(done, flags); });
}

constexpr auto with_address = [] { return true; };
constexpr auto without_address = [] { return false; };

// Sends the rest of a message of which a stream socket has taken some bytes: its iovecs alone, without address and control
// data. The system has read the iovecs by then, so they are known to be readable.
class rest_of_message {
 public:
  rest_of_message(int number, const msghdr* message) noexcept : number_{number}, message_{message} {}
  ssize_t send(std::size_t done, int how) noexcept {
    if (!left_) left_.emplace(message_->msg_iov, message_->msg_iovlen);
    const auto [parts, count] = left_->rest_after(done);
    if (count == 0) return 0;
    msghdr rest{};
    rest.msg_iov = parts;
    rest.msg_iovlen = count;
    return next_sendmsg(number_, &rest, how);
  }

 private:
  int number_;
  const msghdr* message_;
  std::optional<parts_left> left_;
};

// sendmmsg() on a stream. With MSG_DONTWAIT the system may take a part of any message, and the bytes of the next one would then
// land in the middle of it. So the messages are sent one by one, each as a whole; one that is taken only in part ends the call.
int send_each(const hooked_call& call, int number, mmsghdr* messages, unsigned count, int flags) noexcept {
  for (unsigned done = 0; done != count; ++done) {
    mmsghdr& one = messages[done];
    rest_of_message rest{number, &one.msg_hdr};
    const auto send = [&](std::size_t offset, int how) {
      if (offset != 0) return rest.send(offset, how);
      return next_sendmmsg(number, &one, 1, how) == 1 ? ssize_t{one.msg_len} : ssize_t{-1};
    };
    const ssize_t sent = send_hooked(
        call, number, [&] { return size_of(one.msg_hdr.msg_iov, one.msg_hdr.msg_iovlen); }, flags, false, send,
        without_address);
    if (sent < 0) return done != 0 ? call.give(static_cast<int>(done)) : static_cast<int>(sent);
    one.msg_len = static_cast<unsigned>(sent);
    if (static_cast<std::size_t>(sent) < size_of(one.msg_hdr.msg_iov, one.msg_hdr.msg_iovlen))
      return call.give(static_cast<int>(done + 1));
  }
  return call.give(static_cast<int>(count));
}

// ---- connecting -------------------------------------------------------------------------------------------------------------

// Sets O_NONBLOCK during one call. Only connect() needs this, since it has no flag like MSG_DONTWAIT. Other users of the open
// file could see the flag meanwhile, but a socket that is being connected is seldom shared.
class nonblocking_for_one_call {
 public:
  explicit nonblocking_for_one_call(int number) noexcept : number_{number}, flags_{::fcntl(number, F_GETFL)} {
    ::fcntl(number, F_SETFL, flags_ | O_NONBLOCK);
  }
  nonblocking_for_one_call(const nonblocking_for_one_call&) = delete;
  ~nonblocking_for_one_call() {
    const int kept = errno;
    ::fcntl(number_, F_SETFL, flags_);
    errno = kept;
  }

 private:
  int number_, flags_;
};

int connect_hooked(const hooked_call& call, int number, const sockaddr* to, socklen_t size) noexcept {
  const auto plain = [&] { return next_connect(number, to, size); };
  if (is_non_blocking(number)) return call.give(plain());
  const int type = socket_option_of(number, SO_TYPE);
  if (type != SOCK_STREAM && type != SOCK_SEQPACKET) return call.give(plain());  // connect() only stores the address
  if (!may_begin(call)) return call.fail(ECANCELED);
  const auto attempt = [&] {
    const nonblocking_for_one_call now{number};
    return plain();
  };
  end_unused_watches_of(number);
  const int refused = attempt();
  // EAGAIN from a Unix socket: the listener's backlog is full. On other sockets a blocking connect() fails with it, too.
  if (would_block(refused) && socket_option_of(number, SO_DOMAIN) == AF_UNIX)
    return static_cast<int>(retry_with_backoff(call, number, refused, attempt));
  if (refused == 0 || (errno != EINPROGRESS && errno != EALREADY)) return call.give(refused);
  const waited how = wait_until(call, number, direction::out, limit_of(number, direction::out),
                                [&] { return is_ready(number, direction::out); });
  // The attempt has ended. A second connect() gives its result, and leaves the socket in the state that a blocking one would.
  if (how == waited::ready || how == waited::impossible) return call.give(plain());
  return call.fail(error_of(how, EINPROGRESS));
}

// ---- accepting --------------------------------------------------------------------------------------------------------------

template <class Plain>
int accept_hooked(const hooked_call& call, int number, Plain plain) noexcept {
  if (is_non_blocking(number)) return call.give(plain());
  if (!may_begin(call)) return call.fail(ECANCELED);
  const auto attempt = [&] { return call_if_ready(number, direction::in, plain, true); };
  const ssize_t got = attempt();
  if (!would_block(got)) return call.give(static_cast<int>(got));
  if (socket_option_of(number, SO_ACCEPTCONN) != 1) return call.give(plain());  // it is no listener: the call fails
  return static_cast<int>(
      finish_when_ready(call, number, direction::in, limit_of(number, direction::in), got, attempt, plain));
}

}  // namespace

// The system, too, looks for an error before it waits for more, and then returns the part. On a Unix stream it takes the error
// all the same, so there the attempt is made. On any other stream the error of a connection that has failed comes with POLLHUP;
// POLLERR alone may tell of a zero-copy send or a time stamp, after which the transfer goes on.
bool has_error_for_next_call(int number) noexcept {
  const int kept = errno;
  pollfd one{.fd = number, .events = 0, .revents = 0};
  const bool any = next_poll(&one, nfds_t{1}, 0) > 0 && (one.revents & POLLERR) != 0;
  errno = kept;
  if (!any || socket_option_of(number, SO_TYPE) != SOCK_STREAM) return any;
  return (one.revents & POLLHUP) != 0 && socket_option_of(number, SO_DOMAIN) != AF_UNIX;
}

extern const char hooks_sockets;
const char hooks_sockets = 0;  // makes the linker include this file; see all_sources in fiber_hooks.cpp

}  // namespace weft::detail

using namespace weft::detail;  // NOLINT(google-build-using-namespace): the hooks below belong to weft

extern "C" {

int connect(int number, const sockaddr* to, socklen_t size) {
  const hooked_call call{&hook_options::sockets};
  return call ? connect_hooked(call, number, to, size) : next_connect(number, to, size);
}

int accept(int number, sockaddr* from, socklen_t* size) {
  const hooked_call call{&hook_options::sockets};
  const auto plain = [&] { return next_accept(number, from, size); };
  return call ? accept_hooked(call, number, plain) : plain();
}

int accept4(int number, sockaddr* from, socklen_t* size, int flags) {
  const hooked_call call{&hook_options::sockets};
  const auto plain = [&] { return next_accept4(number, from, size, flags); };
  if (!call) return plain();
  if ((flags & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) != 0) return call.give(plain());  // it fails before it would wait
  return accept_hooked(call, number, plain);
}

ssize_t send(int number, const void* data, std::size_t size, int flags) {
  const hooked_call call{&hook_options::sockets};
  if (!call) return next_send(number, data, size, flags);
  const auto send_rest = [&](std::size_t done, int how) {
    return next_send(number, static_cast<const char*>(data) + done, size - done, how);
  };
  return send_hooked(call, number, [&] { return size; }, flags, false, send_rest, without_address);
}

ssize_t sendto(int number, const void* data, std::size_t size, int flags, const sockaddr* to, socklen_t to_size) {
  const hooked_call call{&hook_options::sockets};
  if (!call) return next_sendto(number, data, size, flags, to, to_size);
  const auto send_rest = [&](std::size_t done, int how) {
    return next_sendto(number, static_cast<const char*>(data) + done, size - done, how, to, to_size);
  };
  const bool sends_whole = to != nullptr && socket_option_of(number, SO_TYPE) != SOCK_STREAM;
  return send_hooked(call, number, [&] { return size; }, flags, sends_whole, send_rest, with_address);
}

ssize_t sendmsg(int number, const msghdr* message, int flags) {
  const hooked_call call{&hook_options::sockets};
  if (!call) return next_sendmsg(number, message, flags);
  rest_of_message rest{number, message};
  const auto send_rest = [&](std::size_t done, int how) {
    return done == 0 ? next_sendmsg(number, message, how) : rest.send(done, how);
  };
  const auto has_address = [&] { return message->msg_name != nullptr; };
  const bool sends_whole = socket_option_of(number, SO_TYPE) != SOCK_STREAM;
  const auto size = [&] { return sends_whole ? 0 : size_of(message->msg_iov, message->msg_iovlen); };
  return send_hooked(call, number, size, flags, sends_whole, send_rest, has_address);
}

int sendmmsg(int number, mmsghdr* messages, unsigned count, int flags) {
  const hooked_call call{&hook_options::sockets};
  if (!call || count == 0 || (flags & MSG_DONTWAIT) != 0) return next_sendmmsg(number, messages, count, flags);
  unsigned done = 0;
  count = std::min<unsigned>(count, UIO_MAXIOV);
  if (socket_option_of(number, SO_TYPE) == SOCK_STREAM) return send_each(call, number, messages, count, flags);
  do {
    const ssize_t sent = send_hooked(
        call, number, [] { return std::size_t{0}; }, flags, true,
        [&](std::size_t, int how) { return ssize_t{next_sendmmsg(number, messages + done, count - done, how)}; },
        [&] { return messages[done].msg_hdr.msg_name != nullptr; });
    if (sent < 0) return done != 0 ? call.give(static_cast<int>(done)) : static_cast<int>(sent);
    done += static_cast<unsigned>(sent);
  } while (done < count);
  return call.give(static_cast<int>(done));
}

}  // extern "C"
