// The system calls of datagram sockets. Each function makes one try.
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <weft/datagram.hpp>

#include "net/sockets.hpp"
#include "net/system_address.hpp"

namespace weft {
namespace detail {

using net::system_address;

namespace {

constexpr std::size_t most_at_once = 16;  // some 4 KiB of stack, also of a fiber

// Room for a control message: the segment size of a datagram that was merged from several (GRO), or that is to be cut (GSO).
struct control_room {
  alignas(cmsghdr) std::byte bytes[CMSG_SPACE(sizeof(int))];
};

// ---- receiving --------------------------------------------------------------------------------------------------------------

// A datagram to be received, in the system's form.
class message_in {
 public:
  // For a Unix socket without room for control messages, so that the system drops descriptors that were sent with the datagram
  // instead of opening them in this process.
  void prepare(msghdr& message, std::span<std::byte> into, bool is_unix) noexcept {
    part_ = {.iov_base = into.data(), .iov_len = into.size()};
    message = {};
    message.msg_name = &sender_.any;
    message.msg_namelen = sizeof sender_.storage;
    message.msg_iov = &part_;
    message.msg_iovlen = 1;
    if (is_unix) return;
    message.msg_control = control_.bytes;
    message.msg_controllen = sizeof control_.bytes;
  }

  void tell(msghdr& message, std::size_t full_size, net::received& what) const noexcept {
    what.full_size = full_size;
    what.size = std::min(full_size, part_.iov_len);
    what.segment = 0;
    for (cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr; one = CMSG_NXTHDR(&message, one)) {
      if (one->cmsg_level != SOL_UDP || one->cmsg_type != UDP_GRO) continue;
      int segment = 0;
      std::memcpy(&segment, CMSG_DATA(one), sizeof segment);
      if (segment > 0 && static_cast<std::size_t>(segment) < full_size)
        what.segment = static_cast<std::size_t>(segment);
    }
  }
  net::endpoint sender(const msghdr& message) noexcept {
    if (message.msg_namelen == 0) sender_.any.sa_family = AF_UNIX;  // a Unix sender without a name
    sender_.size = message.msg_namelen;
    return sender_.to_endpoint();  // does not throw: an endpoint can hold all three families
  }

 private:
  iovec part_;
  system_address sender_;
  control_room control_;
};

// After the program has shut a socket down, has_ended() stays true and no change is reported, so EAGAIN is an error here.
tried failed_to_receive(descriptor& from, int error) noexcept {
  if (from.is_closed() || (error == EAGAIN && from.has_ended(direction::in))) return {.refused = closed_here()};
  return failed(from, direction::in, error);
}

}  // namespace

tried try_receive_datagram(descriptor& from, std::span<std::byte> into, net::received& what,
                           net::endpoint* sender) noexcept {
  from.expect_change(direction::in);
  ssize_t size;
  if (sender == nullptr && from.is_unix()) {  // recv(), since only the bytes are wanted: recvmsg() costs more copies
    do size = ::recv(from.number(), into.data(), into.size(), MSG_DONTWAIT | MSG_TRUNC);
    while (size < 0 && errno == EINTR);
    if (size < 0) return failed_to_receive(from, errno);
    from.has_more(direction::in);  // there may be another datagram
    count_io(static_cast<std::size_t>(size));
    what = {.size = std::min(static_cast<std::size_t>(size), into.size()), .full_size = static_cast<std::size_t>(size)};
    return {};
  }
  message_in one;
  msghdr message;
  do {
    one.prepare(message, into, from.is_unix());
    size = ::recvmsg(from.number(), &message, MSG_DONTWAIT | MSG_TRUNC);
  } while (size < 0 && errno == EINTR);
  if (size < 0) return failed_to_receive(from, errno);
  from.has_more(direction::in);  // there may be another datagram
  count_io(static_cast<std::size_t>(size));
  one.tell(message, static_cast<std::size_t>(size), what);
  if (sender != nullptr) *sender = one.sender(message);
  return {};
}

tried try_receive_batch(descriptor& from, std::span<net::incoming> into) noexcept {
  from.expect_change(direction::in);
  std::array<message_in, most_at_once> those;
  std::array<mmsghdr, most_at_once> messages;
  const std::size_t count = std::min(into.size(), most_at_once);
  int got;
  do {
    for (std::size_t i = 0; i != count; ++i) those[i].prepare(messages[i].msg_hdr, into[i].into, from.is_unix());
    got = ::recvmmsg(from.number(), messages.data(), static_cast<unsigned>(count), MSG_DONTWAIT | MSG_TRUNC, nullptr);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return failed_to_receive(from, errno);
  const auto came = static_cast<std::size_t>(got);
  // With fewer, there are no more; or an error has come in between, for which a change is reported.
  if (came == count) from.has_more(direction::in);
  for (std::size_t i = 0; i != came; ++i) {
    those[i].tell(messages[i].msg_hdr, messages[i].msg_len, into[i]);
    count_io(messages[i].msg_len);
    into[i].from = those[i].sender(messages[i].msg_hdr);
  }
  return {.size = came};
}

// ---- sending ----------------------------------------------------------------------------------------------------------------

namespace {

iovec part_of(std::span<const std::byte> data) noexcept {
  return {.iov_base = const_cast<std::byte*>(data.data()), .iov_len = data.size()};  // NOLINT: only read
}

// Makes the call; if it finds no room, resets the event and makes the call again, so that no change in between is lost.
template <class Send>
tried try_to_send(descriptor& to, bool is_to_unix, Send send) noexcept {
  const auto uninterrupted = [&send] {
    ssize_t sent;
    do sent = send();
    while (sent < 0 && errno == EINTR);
    return sent;
  };
  ssize_t sent = uninterrupted();
  if (sent < 0 && errno == EAGAIN) {
    // The event tells of room at this socket's peer, and this send was to another receiver: so the event is not reset.
    if (is_to_unix) return {.refused = system_error(EAGAIN)};
    to.expect_change(direction::out);
    sent = uninterrupted();
    if (sent >= 0) to.has_more(direction::out);
  }
  if (sent >= 0) return {.size = static_cast<std::size_t>(sent)};
  return errno == EPIPE || to.is_closed() ? tried{.refused = closed_here()} : failed(to, direction::out, errno);
}

void address(msghdr& message, system_address& to) noexcept {
  message.msg_name = &to.any;
  message.msg_namelen = to.size;
}

}  // namespace

tried try_send_datagram(descriptor& to, std::span<const std::byte> data, const net::endpoint* where) noexcept {
  // Not sendmsg(), for which the kernel copies the msghdr and the iovec in.
  if (where == nullptr)
    return counted(try_to_send(
        to, false, [&] { return ::sendto(to.number(), data.data(), data.size(), send_flags, nullptr, 0); }));
  const system_address target{*where};
  return counted(try_to_send(to, to.is_unix(), [&] {
    return ::sendto(to.number(), data.data(), data.size(), send_flags, &target.any, target.size);
  }));
}

tried try_send_batch(descriptor& to, std::span<const net::outgoing> those) noexcept {
  std::array<iovec, most_at_once> parts;
  std::array<system_address, most_at_once> targets;
  std::array<mmsghdr, most_at_once> messages;
  const std::size_t count = std::min(those.size(), most_at_once);
  static const net::endpoint nobody;
  for (std::size_t i = 0; i != count; ++i) {
    parts[i] = part_of(those[i].data);
    messages[i] = {};
    messages[i].msg_hdr.msg_iov = &parts[i];
    messages[i].msg_hdr.msg_iovlen = 1;
    if (those[i].to == nobody) continue;
    targets[i] = system_address{those[i].to};
    address(messages[i].msg_hdr, targets[i]);
  }
  return try_to_send(to, those.front().to.is_unix(), [&] {
    return ::sendmmsg(to.number(), messages.data(), static_cast<unsigned>(count), send_flags);
  });
}

namespace {

// Whether this system can cut data into segments (GSO). A system that can't would ignore the control message, and send all the
// data as one datagram.
bool cuts_segments() noexcept {
  static const bool can = [] {
    const net::new_socket asks{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    int value = 0;
    socklen_t size = sizeof value;
    return asks.number() >= 0 && ::getsockopt(asks.number(), SOL_UDP, UDP_SEGMENT, &value, &size) == 0;
  }();
  return can;
}

// Sends several segments in one call, which the system cuts (GSO). The call may fail: some interfaces can't cut, or can't send
// segments of that size.
tried try_send_cut(descriptor& to, std::span<const std::byte> data, std::uint16_t segment,
                   system_address* target) noexcept {
  iovec part = part_of(data);
  control_room room{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (target != nullptr) address(message, *target);
  message.msg_control = room.bytes;
  message.msg_controllen = CMSG_SPACE(sizeof segment);
  cmsghdr& first = *CMSG_FIRSTHDR(&message);
  first.cmsg_level = SOL_UDP;
  first.cmsg_type = UDP_SEGMENT;
  first.cmsg_len = CMSG_LEN(sizeof segment);
  std::memcpy(CMSG_DATA(&first), &segment, sizeof segment);
  return try_to_send(to, false, [&] { return ::sendmsg(to.number(), &message, send_flags); });
}

}  // namespace

tried try_send_segments(descriptor& to, std::span<const std::byte> data, std::size_t segment,
                        const net::endpoint* where) noexcept {
  constexpr std::size_t most_bytes = 65'000, most_segments = 64;  // limits of a UDP datagram, and of GSO
  system_address target;
  if (where != nullptr) target = system_address{*where};
  system_address* const given = where != nullptr ? &target : nullptr;
  const std::size_t at_once = std::min(most_segments, most_bytes / segment);
  if (at_once > 1 && data.size() > segment && !to.is_unix() && cuts_segments()) {
    const std::size_t size = std::min(data.size(), at_once * segment);
    const tried sent = try_send_cut(to, data.first(size), static_cast<std::uint16_t>(segment), given);
    if (sent.refused != std::errc::io_error && sent.refused != std::errc::invalid_argument &&
        sent.refused != std::errc::operation_not_supported)
      return sent.must_wait || sent.refused ? sent : counted({.size = size});
  }
  std::array<iovec, most_at_once> parts;
  std::array<mmsghdr, most_at_once> messages;
  unsigned count = 0;
  for (std::span<const std::byte> left = data; !left.empty() && count != most_at_once; ++count) {
    const std::span<const std::byte> one = left.first(std::min(segment, left.size()));
    left = left.subspan(one.size());
    parts[count] = part_of(one);
    messages[count] = {};
    messages[count].msg_hdr.msg_iov = &parts[count];
    messages[count].msg_hdr.msg_iovlen = 1;
    if (given != nullptr) address(messages[count].msg_hdr, *given);
  }
  const tried sent = try_to_send(to, given != nullptr && to.is_unix(),
                                 [&] { return ::sendmmsg(to.number(), messages.data(), count, send_flags); });
  if (sent.must_wait || sent.refused) return sent;
  return counted({.size = std::min(data.size(), sent.size * segment)});
}

}  // namespace detail
}  // namespace weft
