// Zero-copy writes: the system sends from the caller's memory (MSG_ZEROCOPY).
//
// Each send() lends its memory to the system. The socket's error queue reports ranges of calls whose memory the system has given
// back. A stream has one write under way at a time, and the write ends when all its memory is back: so all reports belong to it.
//
// A write that ends early, by a stop or an error, still has memory lent, and the peer may take as long as it likes to receive it.
// So the write resets the connection, which makes the system drop the unsent data; then it waits, shielded, for the reports.
//
// Rejected: (a) sends by a ring (IORING_OP_SEND_ZC). They save the same copy, but only runtimes with rings have them, and a
// worker would have to wait for two completions of each. (b) A write that ends at once while the library keeps the lent memory
// alive: it would have to own that memory, which costs callers more than a copy.
#include <time.h>  // <linux/errqueue.h> needs it

#include <linux/errqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <system_error>
#include <weft/clock.hpp>
#include <weft/net.hpp>
#include <weft/on_scope_exit.hpp>
#include <weft/with.hpp>

#include "net/failed_try.hpp"

namespace weft::detail {
namespace {

struct lent_sends {
  descriptor& at;
  std::uint32_t out = 0;  // calls whose memory the system has
  bool has_begun = false, is_done = false;
  bool has_refused = false;  // the system has refused MSG_ZEROCOPY
};

// Whether this socket supports zero-copy sends: TCP does, a Unix socket does not.
bool may_lend(descriptor* at) noexcept {
  const descriptor_use use{at};
  if (!use || at->is_copied_anyway()) return false;
  const int on = 1;
  return ::setsockopt(at->number(), SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on) == 0;
}

ssize_t send_once(lent_sends& of, std::span<const std::byte> data, int flag) noexcept {
  ssize_t size;
  do size = ::send(of.at.number(), data.data(), data.size(), send_flags | flag);
  while (size < 0 && errno == EINTR);
  if (size > 0) {
    of.has_begun = true;
    of.out += flag != 0 ? 1 : 0;
  }
  return size;
}

// Sends without a copy if the system can. If it has no memory for another report (ENOBUFS), this piece is copied. If the socket
// refuses MSG_ZEROCOPY although it accepted SO_ZEROCOPY, as one that encrypts does (kTLS), all is copied from now on.
ssize_t lend(lent_sends& of, std::span<const std::byte> data) noexcept {
  if (of.has_refused) return send_once(of, data, 0);
  const ssize_t size = send_once(of, data, MSG_ZEROCOPY);
  if (size >= 0) return size;
  if (errno == EOPNOTSUPP || errno == EINVAL) {
    of.has_refused = true;
    of.at.will_be_copied();
  } else if (errno != ENOBUFS) {
    return size;
  }
  return send_once(of, data, 0);
}

tried try_lend(lent_sends& of, std::span<const std::byte> data) noexcept {
  return try_write(of.at, [&] { return lend(of, data); });
}

void take_report(lent_sends& of, const cmsghdr& one) noexcept {
  if ((one.cmsg_level != SOL_IP || one.cmsg_type != IP_RECVERR) &&
      (one.cmsg_level != SOL_IPV6 || one.cmsg_type != IPV6_RECVERR))
    return;
  sock_extended_err what{};
  std::memcpy(&what, CMSG_DATA(&one), sizeof what);
  if (what.ee_errno != 0 || what.ee_origin != SO_EE_ORIGIN_ZEROCOPY) return;
  of.out -= std::min(of.out, what.ee_data - what.ee_info + 1);
  if ((what.ee_code & SO_EE_CODE_ZEROCOPY_COPIED) != 0) of.at.will_be_copied();
}

void take_reports(lent_sends& of) noexcept {
  while (of.out != 0) {
    alignas(cmsghdr) char control[128];
    msghdr message{};
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (::recvmsg(of.at.number(), &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) {
      if (errno == EINTR) continue;
      return;
    }
    for (cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr; one = CMSG_NXTHDR(&message, one))
      take_report(of, *one);
  }
}

// Resets the connection (connect() to AF_UNSPEC): the system drops the unsent data.
void drop_what_is_lent(const lent_sends& of) noexcept {
  sockaddr none{};
  none.sa_family = AF_UNSPEC;
  ::connect(of.at.number(), &none, sizeof none);
  int error = 0;  // takes the error of this reset away, so that the next write does not fail with it
  socklen_t size = sizeof error;
  ::getsockopt(of.at.number(), SOL_SOCKET, SO_ERROR, &error, &size);
}

// The error that the connection has ended with, if it has: then memory came back although its content never arrived. Asks the
// system, since the readiness report of the end may come later, and a read may have taken SO_ERROR.
std::error_code what_has_ended(descriptor& at) noexcept {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(at.number(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return failed_write(at, error).refused;
  pollfd now{.fd = at.number(), .events = 0, .revents = 0};
  if (::poll(&now, 1, 0) == 1 && (now.revents & POLLHUP) != 0) return closed_here();
  return {};
}

// Waits until all lent memory is back. As the cleanup of a write that ended early it first resets the connection. A cleanup must
// not fail for lack of memory: it allocates only its frame, and that before the write begins.
task<> until_all_is_back(lent_sends& of, bool as_cleanup) {
  using namespace std::chrono_literals;
  if (as_cleanup && of.is_done) co_return;
  if (as_cleanup && of.out != 0) drop_what_is_lent(of);
  while (of.out != 0) {
    of.at.expect_change(direction::out);
    take_reports(of);
    if (of.out == 0) break;
    if (!as_cleanup && of.at.is_closed()) co_await fail_with(failure_of(closed_here(), "write"));
    // After the connection has ended, or was closed, no change is reported: so this polls every 1 ms.
    if (of.at.has_ended(direction::out) || of.at.is_closed())
      co_await sleep_for(1ms);
    else
      co_await of.at.until_ready(direction::out);
  }
  of.at.has_more(direction::out);
  if (as_cleanup) {
    if (of.has_begun) of.at.shut_down_writes();
  } else if (const std::error_code ended = what_has_ended(of.at)) {
    co_await fail_with(failure_of(ended, "write"));
  }
}

task<> send_lent(lent_sends& of, std::span<const std::byte> data) {
  co_await on_scope_exit(until_all_is_back(of, true));
  co_await check_stop();
  if (has_had_its_turn()) co_await yield();
  while (!data.empty()) {
    if (of.at.may_try(direction::out))
      if (const tried sent = try_lend(of, data); !sent.must_wait) {
        if (sent.refused) co_await fail_with(failure_of(sent.refused, "write"));
        data = data.subspan(sent.size);
        continue;
      }
    co_await of.at.until_ready(direction::out);
    if (of.at.is_closed()) co_await fail_with(failure_of(closed_here(), "write"));
  }
  co_await until_all_is_back(of, false);
  of.is_done = true;
}

}  // namespace

task<> write_zero_copy(descriptor* at, std::span<const std::byte> data) {
  if (data.size() < net::stream::zero_copy_least || !may_lend(at)) {
    co_await write_all(at, one_part{data});
    co_return;
  }
  const descriptor_use use{at, direction::out, two_writers};
  if (!use) co_await fail_with(failure_of(closed_here(), "write"));
  lent_sends lent{*at};
  co_await send_lent(lent, data);
}

}  // namespace weft::detail
