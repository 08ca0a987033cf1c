// connect, accept, and what sends and receives by sockets alone.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <optional>

#include "hook/descriptors.hpp"
#include "hook/next.hpp"
#include "hook/parts.hpp"

extern "C" {
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
ssize_t __recv_chk(int number, void* into, std::size_t size, std::size_t room, int flags);
ssize_t __recvfrom_chk(int number, void* into, std::size_t size, std::size_t room, int flags, sockaddr* from,
                       socklen_t* from_size);
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
}

namespace weft::detail {
namespace {

WEFT_HOOK_NEXT(connect);
WEFT_HOOK_NEXT(accept);
WEFT_HOOK_NEXT(accept4);
WEFT_HOOK_NEXT(recv);
WEFT_HOOK_NEXT(recvfrom);
WEFT_HOOK_NEXT(recvmsg);
WEFT_HOOK_NEXT(recvmmsg);
WEFT_HOOK_NEXT(send);
WEFT_HOOK_NEXT(sendto);
WEFT_HOOK_NEXT(sendmsg);
WEFT_HOOK_NEXT(sendmmsg);
WEFT_HOOK_NEXT(__recv_chk);
WEFT_HOOK_NEXT(__recvfrom_chk);

using namespace std::chrono_literals;
using weft::hook_options;

// What never waits, whatever it finds.
constexpr int never_waits = MSG_DONTWAIT | MSG_ERRQUEUE | MSG_OOB;

// ---- receiving --------------------------------------------------------------------------------------------------------------

// With MSG_PEEK and MSG_WAITALL, as TCP does, and no local socket.
bool waits_at_peeks(int number) noexcept {
  return socket_option_of(number, SO_TYPE) == SOCK_STREAM && socket_option_of(number, SO_DOMAIN) != AF_UNIX;
}

// attempt(done) and plain(done): as of recv(), behind what is done.
template <class Attempt, class Plain>
ssize_t receive_hooked(const hooked_call& call, int number, std::size_t size, int flags, Attempt attempt,
                       Plain plain) noexcept {
  if ((flags & never_waits) != 0) return call.give(plain(0));
  if (!may_begin(call)) return call.fail(ECANCELED);
  const bool waits_for_all = (flags & MSG_WAITALL) != 0;
  if ((flags & MSG_PEEK) != 0) {  // what is there stays there: so all of it is looked at each time
    const auto look = [&] {
      const ssize_t got = attempt(0);
      if (!waits_for_all || got <= 0 || static_cast<std::size_t>(got) >= size || !waits_at_peeks(number)) return got;
      errno = EAGAIN;
      return ssize_t{-1};
    };
    return transfer(call, number, direction::in, look, [&] { return plain(0); });
  }
  std::size_t done = 0;
  for (;;) {
    const ssize_t got =
        transfer(call, number, direction::in, [&] { return attempt(done); }, [&] { return plain(done); });
    if (got < 0) return done != 0 ? call.give(static_cast<ssize_t>(done)) : got;
    done += static_cast<std::size_t>(got);
    if (!waits_for_all || got == 0 || done >= size || socket_option_of(number, SO_TYPE) != SOCK_STREAM)
      return call.give(static_cast<ssize_t>(done));
  }
}

// ---- sending ----------------------------------------------------------------------------------------------------------------

// Nothing tells when a local datagram socket that this one is not connected to has room, nor when a local listener has: so it
// is tried again, after 1 ms, and then after up to 64 ms.
template <class Attempt>
ssize_t try_at_times(const hooked_call& call, int number, ssize_t result, Attempt attempt) noexcept {
  const clock::time_point until = limit_of(number, direction::out);
  for (clock::duration pause = 1ms; found_nothing(result); pause = std::min<clock::duration>(2 * pause, 64ms)) {
    const clock::duration left = until == without_end ? pause : until - current_clock().now();
    if (left <= clock::duration::zero()) return call.fail(EAGAIN);
    if (!await_unless_stopped(sleep_for(std::min(left, pause)))) return call.fail(ECANCELED);
    result = attempt();
  }
  return call.give(result);
}

// attempt(done) and plain(done), as of send(). `is_to_any`: to an address that the call names.
template <class Attempt, class Plain>
ssize_t send_hooked(const hooked_call& call, int number, std::size_t size, int flags, bool is_to_any, Attempt attempt,
                    Plain plain) noexcept {
  if ((flags & (MSG_DONTWAIT | MSG_OOB)) != 0) return call.give(plain(0));
  if (!may_begin(call)) return call.fail(ECANCELED);
  if (is_to_any) {
    const ssize_t sent = attempt(0);
    if (!found_nothing(sent)) return call.give(sent);  // an address is no stream's, which takes a part of it
    if (is_non_blocking(number)) return call.fail(EAGAIN);
    if (socket_option_of(number, SO_DOMAIN) == AF_UNIX)
      return try_at_times(call, number, sent, [&] { return attempt(0); });
  }
  return write_whole(call, number, size, attempt, plain);
}

// Behind the first part, which has told the program of a peer that is gone.
int flags_behind(std::size_t done, int flags) noexcept { return flags | MSG_DONTWAIT | (done != 0 ? MSG_NOSIGNAL : 0); }

// A message of a stream that was sent in part: what goes behind that are its parts alone, which the system has read by then.
class rest_of_message {
 public:
  rest_of_message(int number, const msghdr* message) noexcept : number_{number}, message_{message} {}
  ssize_t send(std::size_t done, int how) noexcept {
    if (!left_) left_.emplace(message_->msg_iov, message_->msg_iovlen);
    const auto [parts, count] = left_->behind(done);
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

// As sendmmsg() of a stream: a message that is taken in part ends it, or the next would stand in the middle of that one. So one
// after the other, each as a whole: with MSG_DONTWAIT the system may take a part of any.
int send_each(const hooked_call& call, int number, mmsghdr* messages, unsigned count, int flags) noexcept {
  for (unsigned done = 0; done != count; ++done) {
    mmsghdr& one = messages[done];
    rest_of_message rest{number, &one.msg_hdr};
    const auto send = [&](std::size_t behind, int how) {
      if (behind != 0) return rest.send(behind, how);
      return next_sendmmsg(number, &one, 1, how) == 1 ? ssize_t{one.msg_len} : ssize_t{-1};
    };
    const ssize_t sent = send_hooked(
        call, number, SIZE_MAX, flags, false,
        [&](std::size_t behind) { return send(behind, flags_behind(behind, flags)); },
        [&](std::size_t behind) { return send(behind, flags); });
    if (sent < 0) return done != 0 ? call.give(static_cast<int>(done)) : static_cast<int>(sent);
    one.msg_len = static_cast<unsigned>(sent);
    if (static_cast<std::size_t>(sent) < size_of(one.msg_hdr.msg_iov, one.msg_hdr.msg_iovlen))
      return call.give(static_cast<int>(done + 1));
  }
  return call.give(static_cast<int>(count));
}

// ---- connecting -------------------------------------------------------------------------------------------------------------

// The one place where a flag of the file is changed, since nothing else has connect() not block: for the time of the call. A
// socket that is being connected is seldom shared with others.
class without_blocking {
 public:
  explicit without_blocking(int number) noexcept : number_{number}, flags_{::fcntl(number, F_GETFL)} {
    ::fcntl(number, F_SETFL, flags_ | O_NONBLOCK);
  }
  without_blocking(const without_blocking&) = delete;
  ~without_blocking() {
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
  if (type != SOCK_STREAM && type != SOCK_SEQPACKET) return call.give(plain());  // it only notes the address
  if (!may_begin(call)) return call.fail(ECANCELED);
  const auto attempt = [&] {
    const without_blocking now{number};
    return plain();
  };
  forget_changes_of(number);
  const int refused = attempt();
  // A local listener without room; of any other socket the system says so to one that blocks, too.
  if (found_nothing(refused) && socket_option_of(number, SO_DOMAIN) == AF_UNIX)
    return static_cast<int>(try_at_times(call, number, refused, attempt));
  if (refused == 0 || (errno != EINPROGRESS && errno != EALREADY)) return call.give(refused);
  const waited how = wait_until(call, number, direction::out, limit_of(number, direction::out),
                                [&] { return is_ready(number, direction::out); });
  // By now it is connected or has failed, and the call says which, and has the socket be so.
  if (how == waited::ready || how == waited::impossible) return call.give(plain());
  return call.fail(error_of(how, EINPROGRESS));
}

// ---- accepting --------------------------------------------------------------------------------------------------------------

template <class Plain>
int accept_hooked(const hooked_call& call, int number, Plain plain) noexcept {
  if (is_non_blocking(number)) return call.give(plain());
  if (!may_begin(call)) return call.fail(ECANCELED);
  const auto attempt = [&] { return call_if_ready(number, direction::in, plain); };
  const ssize_t got = attempt();
  if (!found_nothing(got)) return call.give(static_cast<int>(got));
  if (socket_option_of(number, SO_ACCEPTCONN) != 1) return call.give(plain());  // it fails
  return static_cast<int>(go_on(call, number, direction::in, limit_of(number, direction::in), got, attempt, plain));
}

}  // namespace

extern const char hooks_sockets;
const char hooks_sockets = 0;  // see waiting.cpp

}  // namespace weft::detail

using namespace weft::detail;  // NOLINT(google-build-using-namespace): these functions are of the same library

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
  return call ? accept_hooked(call, number, plain) : plain();
}

ssize_t recv(int number, void* into, std::size_t size, int flags) {
  const hooked_call call{&hook_options::sockets};
  if (!call) return next_recv(number, into, size, flags);
  const auto receive = [&](std::size_t done, int how) {
    return next_recv(number, static_cast<char*>(into) + done, size - done, how);
  };
  return receive_hooked(
      call, number, size, flags, [&](std::size_t done) { return receive(done, flags | MSG_DONTWAIT); },
      [&](std::size_t done) { return receive(done, flags); });
}

ssize_t recvfrom(int number, void* into, std::size_t size, int flags, sockaddr* from, socklen_t* from_size) {
  const hooked_call call{&hook_options::sockets};
  if (!call) return next_recvfrom(number, into, size, flags, from, from_size);
  const auto receive = [&](std::size_t done, int how) {
    return next_recvfrom(number, static_cast<char*>(into) + done, size - done, how, from, from_size);
  };
  return receive_hooked(
      call, number, size, flags, [&](std::size_t done) { return receive(done, flags | MSG_DONTWAIT); },
      [&](std::size_t done) { return receive(done, flags); });
}

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): what the fortified ones are
ssize_t __recv_chk(int number, void* into, std::size_t size, std::size_t room, int flags) {
  return size > room ? next___recv_chk(number, into, size, room, flags) : recv(number, into, size, flags);
}
ssize_t __recvfrom_chk(int number, void* into, std::size_t size, std::size_t room, int flags, sockaddr* from,
                       socklen_t* from_size) {
  return size > room ? next___recvfrom_chk(number, into, size, room, flags, from, from_size)
                     : recvfrom(number, into, size, flags, from, from_size);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

// With MSG_WAITALL it gives what there is where that is less than all, of a message with several parts or with control data.
ssize_t recvmsg(int number, msghdr* message, int flags) {
  const hooked_call call{&hook_options::sockets};
  if (!call) return next_recvmsg(number, message, flags);
  return receive_hooked(
      call, number, 0, flags, [&](std::size_t) { return next_recvmsg(number, message, flags | MSG_DONTWAIT); },
      [&](std::size_t) { return next_recvmsg(number, message, flags); });
}

int recvmmsg(int number, mmsghdr* messages, unsigned count, int flags, timespec* limit) {
  const hooked_call call{&hook_options::sockets};
  // A limit of its own is looked at only when a message has come.
  if (!call || limit != nullptr || count == 0) return next_recvmmsg(number, messages, count, flags, limit);
  unsigned done = 0;
  const auto receive = [&](std::size_t, int how) {
    return ssize_t{next_recvmmsg(number, messages + done, count - done, how, nullptr)};
  };
  const bool waits_for_all = (flags & (MSG_WAITFORONE | never_waits)) == 0;
  do {
    const ssize_t got = receive_hooked(
        call, number, 0, flags & ~MSG_WAITALL, [&](std::size_t) { return receive(0, flags | MSG_DONTWAIT); },
        [&](std::size_t) { return receive(0, flags); });
    if (got < 0) return done != 0 ? call.give(static_cast<int>(done)) : static_cast<int>(got);
    done += static_cast<unsigned>(got);
  } while (waits_for_all && done < count);
  return call.give(static_cast<int>(done));
}

ssize_t send(int number, const void* data, std::size_t size, int flags) {
  const hooked_call call{&hook_options::sockets};
  if (!call) return next_send(number, data, size, flags);
  const auto at = [&](std::size_t done) { return static_cast<const char*>(data) + done; };
  return send_hooked(
      call, number, size, flags, false,
      [&](std::size_t done) { return next_send(number, at(done), size - done, flags_behind(done, flags)); },
      [&](std::size_t done) { return next_send(number, at(done), size - done, flags); });
}

ssize_t sendto(int number, const void* data, std::size_t size, int flags, const sockaddr* to, socklen_t to_size) {
  const hooked_call call{&hook_options::sockets};
  if (!call) return next_sendto(number, data, size, flags, to, to_size);
  const auto at = [&](std::size_t done) { return static_cast<const char*>(data) + done; };
  return send_hooked(
      call, number, size, flags, to != nullptr && socket_option_of(number, SO_TYPE) != SOCK_STREAM,
      [&](std::size_t done) {
        return next_sendto(number, at(done), size - done, flags_behind(done, flags), to, to_size);
      },
      [&](std::size_t done) { return next_sendto(number, at(done), size - done, flags, to, to_size); });
}

ssize_t sendmsg(int number, const msghdr* message, int flags) {
  const hooked_call call{&hook_options::sockets};
  if (!call) return next_sendmsg(number, message, flags);
  rest_of_message rest{number, message};
  const auto send_rest = [&](std::size_t done, int how) {
    return done == 0 ? next_sendmsg(number, message, how) : rest.send(done, how);
  };
  const int type = socket_option_of(number, SO_TYPE);
  const auto attempt = [&](std::size_t done) { return send_rest(done, flags_behind(done, flags)); };
  const auto plain = [&](std::size_t done) { return send_rest(done, flags); };
  if (type == SOCK_STREAM) return send_hooked(call, number, SIZE_MAX, flags, false, attempt, plain);
  return send_hooked(call, number, 0, flags, true, attempt, plain);  // a message is sent as a whole
}

int sendmmsg(int number, mmsghdr* messages, unsigned count, int flags) {
  const hooked_call call{&hook_options::sockets};
  if (!call || count == 0 || (flags & MSG_DONTWAIT) != 0) return next_sendmmsg(number, messages, count, flags);
  unsigned done = 0;
  count = std::min<unsigned>(count, UIO_MAXIOV);
  if (socket_option_of(number, SO_TYPE) == SOCK_STREAM) return send_each(call, number, messages, count, flags);
  do {
    const ssize_t sent = send_hooked(
        call, number, 0, flags, true,
        [&](std::size_t) {
          return ssize_t{next_sendmmsg(number, messages + done, count - done, flags | MSG_DONTWAIT)};
        },
        [&](std::size_t) { return ssize_t{next_sendmmsg(number, messages + done, count - done, flags)}; });
    if (sent < 0) return done != 0 ? call.give(static_cast<int>(done)) : static_cast<int>(sent);
    done += static_cast<unsigned>(sent);
  } while (done < count);
  return call.give(static_cast<int>(done));
}

}  // extern "C"
