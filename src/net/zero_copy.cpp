// Writes whose memory the system sends from, without a copy (MSG_ZEROCOPY).
//
// Each call lends what it sends. The error queue of the socket reports ranges of calls whose memory is back. One write is
// under way at a time, and ends when all that it has lent is back: so whoever counts calls and reports knows whose they are.
//
// What ends early, by a stop or an error, still has memory lent, and the peer may take as long as it likes. So it resets the
// connection, which has the system drop what it would have sent; then it waits, shielded, for the reports.
//
// Rejected: (a) sends by a ring (IORING_OP_SEND_ZC). They save the same copy, but only runtimes with rings have them, and a
// worker would have to wait for two completions of each. (b) To keep memory that is lent alive in the library, so that a write
// ends at once: a copy would be cheaper than what that costs callers.
#include <time.h>  // which the next one needs

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
  bool has_refused = false;  // what is lent
};

// Whether this socket can send so: TCP can, a Unix socket can't.
bool may_lend(descriptor* at) noexcept {
  const descriptor_use use{at};
  if (!use || at->is_copied_anyway()) return false;
  const int on = 1;
  return ::setsockopt(at->number(), SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on) == 0;
}

ssize_t send_once(lent_sends& of, std::span<const std::byte> data, int flag) noexcept {
  ssize_t size;
  do size = ::send(of.at.number(), data.data(), data.size(), MSG_NOSIGNAL | flag);
  while (size < 0 && errno == EINTR);
  if (size > 0) {
    of.has_begun = true;
    of.out += flag != 0 ? 1 : 0;
  }
  return size;
}

// Without memory for another report the system refuses: then this piece is copied. Of a socket that takes nothing lent, whatever
// it said of SO_ZEROCOPY, as one that encrypts (kTLS), all is.
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

// The system forgets what it would have sent, and the peer is told by a reset.
void drop_what_is_lent(const lent_sends& of) noexcept {
  sockaddr none{};
  none.sa_family = AF_UNSPEC;
  ::connect(of.at.number(), &none, sizeof none);
  int error = 0;  // of the reset: it is no news for the next one who writes
  socklen_t size = sizeof error;
  ::getsockopt(of.at.number(), SOL_SOCKET, SO_ERROR, &error, &size);
}

// The error that the connection has ended with, if it has: then lent memory came back although its content never arrived. The
// system is asked, since its report of the end may come later, and a read may have taken the error.
std::error_code what_has_ended(descriptor& at) noexcept {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(at.number(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return failed_write(at, error).refused;
  pollfd now{.fd = at.number(), .events = 0, .revents = 0};
  if (::poll(&now, 1, 0) == 1 && (now.revents & POLLHUP) != 0) return closed_here();
  return {};
}

// As the cleanup of a write that ended early it first resets the connection. It allocates nothing but its frame, which is
// made before: a cleanup must not fail for want of memory.
task<> until_all_is_back(lent_sends& of, bool as_cleanup) {
  using namespace std::chrono_literals;
  if (as_cleanup && of.is_done) co_return;
  if (as_cleanup && of.out != 0) drop_what_is_lent(of);
  while (of.out != 0) {
    of.at.expect_change(direction::out);
    take_reports(of);
    if (of.out == 0) break;
    if (!as_cleanup && of.at.is_closed()) co_await fail_with(failure_of(closed_here(), "write"));
    // Of a connection that has ended, or is closed, no change is reported: so this looks again after a while.
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
