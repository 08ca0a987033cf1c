#include <weft/unix.hpp>

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <type_traits>

#include "net/sockets.hpp"

namespace weft {
namespace net {

static_assert(std::is_same_v<pid_t, int> && std::is_same_v<uid_t, unsigned> && std::is_same_v<gid_t, unsigned>);

void owned_descriptor::close() noexcept { ::close(number_); }

peer_credentials credentials(const stream& of) {
  constexpr const char* asking = "ask who a stream's peer is";
  detail::descriptor* const at = detail::socket_access::of(of);
  const detail::descriptor_use use{at};
  if (!use) throw_closed(asking);
  if (!at->is_unix()) throw error{std::make_error_code(std::errc::address_family_not_supported), asking};
  ucred found{};
  socklen_t size = sizeof found;
  if (::getsockopt(at->number(), SOL_SOCKET, SO_PEERCRED, &found, &size) != 0) throw_errno(asking);
  return {.process = found.pid, .user = found.uid, .group = found.gid};
}

}  // namespace net

namespace detail {
namespace {

constexpr int scm_pidfd = 4;  // SCM_PIDFD, which comes if the program has set SO_PASSPIDFD

struct descriptor_room {
  alignas(cmsghdr) std::byte bytes[CMSG_SPACE(net::most_descriptors * sizeof(int))];
};

// The descriptors received are open in this process, so each gets an owner, or is closed. The caller has reserved the room.
void take_descriptors(msghdr& message, net::with_descriptors& what) noexcept {
  for (cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr; one = CMSG_NXTHDR(&message, one)) {
    if (one->cmsg_level != SOL_SOCKET) continue;
    const std::size_t count = (one->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i != count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(one) + i * sizeof number, sizeof number);
      if (one->cmsg_type == SCM_RIGHTS) what.descriptors.emplace_back(number);
      if (one->cmsg_type == scm_pidfd) ::close(number);
    }
  }
}

}  // namespace

tried try_send_descriptors(descriptor& to, std::span<const int> those, std::span<const std::byte> with) noexcept {
  if (!to.is_unix()) return {.refused = std::make_error_code(std::errc::invalid_argument)};
  iovec part{.iov_base = const_cast<std::byte*>(with.data()), .iov_len = with.size()};  // NOLINT: only read
  descriptor_room room;
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!those.empty()) {
    message.msg_control = room.bytes;
    message.msg_controllen = CMSG_SPACE(those.size_bytes());
    cmsghdr& first = *CMSG_FIRSTHDR(&message);
    first.cmsg_level = SOL_SOCKET;
    first.cmsg_type = SCM_RIGHTS;
    first.cmsg_len = CMSG_LEN(those.size_bytes());
    std::memcpy(CMSG_DATA(&first), those.data(), those.size_bytes());
  }
  return counted(try_write(to, [&] { return ::sendmsg(to.number(), &message, send_flags); }));
}

tried try_receive_descriptors(descriptor& from, std::span<std::byte> into, std::size_t most,
                              net::with_descriptors& what, bool keeps_pieces) noexcept {
  try {
    what.descriptors.reserve(most);
  } catch (...) {
    return {.refused = std::make_error_code(std::errc::not_enough_memory)};
  }
  const bool was_repeated = from.take_repeated();
  from.expect_change(direction::in);
  iovec part{.iov_base = into.data(), .iov_len = into.size()};
  descriptor_room room;
  msghdr message;
  ssize_t size;
  do {
    message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    // CMSG_LEN(), not CMSG_SPACE(): into the padding after an odd number of descriptors the system would put one more.
    message.msg_control = most != 0 ? room.bytes : nullptr;
    message.msg_controllen = most != 0 ? CMSG_LEN(most * sizeof(int)) : 0;
    size = ::recvmsg(from.number(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | (keeps_pieces ? MSG_TRUNC : 0));
  } while (size < 0 && errno == EINTR);
  if (size < 0) {
    if (keeps_pieces && (from.is_closed() || (errno == EAGAIN && from.has_ended(direction::in))))
      return {.refused = closed_here()};
    return failed(from, direction::in, errno);
  }
  take_descriptors(message, what);
  what.full_size = static_cast<std::size_t>(size);
  what.size = std::min(what.full_size, into.size());
  what.lost_descriptors = (message.msg_flags & MSG_CTRUNC) != 0;
  if (size == 0 && !keeps_pieces && from.is_closed()) return {.refused = closed_here()};  // by close(), not by the peer
  from.has_moved(static_cast<std::size_t>(size));
  count_io(static_cast<std::size_t>(size));
  if (keeps_pieces || what.size == into.size() || what.lost_descriptors || !what.descriptors.empty() ||
      (size != 0 && from.has_marks()))
    from.has_more(direction::in);
  if (was_repeated && size != 0) [[unlikely]]
    from.has_perhaps_more();
  return {.size = what.size};
}

}  // namespace detail
}  // namespace weft
