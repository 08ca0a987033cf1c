#include <weft/datagram.hpp>

#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <weft/clock.hpp>
#include <weft/select.hpp>
#include <weft/timed.hpp>

#include "net/socket_file.hpp"
#include "net/sockets.hpp"
#include "net/system_address.hpp"

namespace weft {
namespace {

int bytes_in_flight(int number) noexcept {
  int count = 0;
  return ::ioctl(number, SIOCOUTQ, &count) == 0 ? count : 0;
}

// Whether the sender's own buffer has room, by the rule of the system's send, which counts one byte for the socket itself.
bool has_room(int number) noexcept { return bytes_in_flight(number) + 1 < net::socket_option(number, SO_SNDBUF); }

constexpr unsigned most_doublings = 6;
clock::duration longest_wait(unsigned tries) noexcept {
  return std::chrono::milliseconds{1 << std::min(tries, most_doublings)};
}

// A socket with the same peer as `from`, which sends nothing: so it is writable exactly if that peer has room.
class probe_socket {
 public:
  // at() is null if `from` itself has no room, if its peer has no name, or if the system gives no further socket.
  explicit probe_socket(int from) noexcept {
    net::system_address peer;
    if (!has_room(from) || ::getpeername(from, &peer.any, &peer.size) != 0) return;
    if (peer.any.sa_family != AF_UNIX || peer.size <= sizeof peer.any.sa_family) return;
    net::new_socket made{::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    if (made.number() < 0 || ::connect(made.number(), &peer.any, peer.size) != 0) return;
    try {
      at_ = &detail::io_service_here().watch(made.number(), false);
      at_->is_of_ours_alone();
      static_cast<void>(made.give());
    } catch (...) {  // at() stays null
    }
  }
  probe_socket(const probe_socket&) = delete;
  ~probe_socket() {
    if (at_ != nullptr) at_->drop();
  }
  detail::descriptor* at() const noexcept { return at_; }

 private:
  detail::descriptor* at_ = nullptr;
};

}  // namespace

// The system reports room at a receiver only to sockets that are connected to it, so this wait makes such a socket. Rejected: to
// wait for the readiness of the sender's socket, too, so that a close() is noticed at once: each send that finds no room causes a
// new report of that readiness, so the send would be tried in a loop without a pause.
task<> detail::until_room_at(int from, net::endpoint to, unsigned tries) {
  if (!has_room(from)) {
    // The system reports `from` as writable once three quarters of its buffer are free, and not while a peer has no room.
    auto waits = timeout(longest_wait(tries), net::ready(from, net::readiness::writable));
    const auto how = co_await as_result(std::move(waits));
    if (how.is_stopped()) co_await check_stop();
    if (how.error() && how.error() != errc::timed_out) co_await fail_with(how.exception());
    co_return;
  }
  const net::system_address target{to};
  const net::new_socket asks{net::open_socket(target, SOCK_DGRAM)};
  if (::connect(asks.number(), &target.any, target.size) != 0) co_return;  // the next send says why
  co_await net::ready(asks.number(), net::readiness::writable);
}

// The system may never report room, depending on what other tasks send to other receivers by the same socket. So after some waits
// that ended by their limit, this waits by another socket, which has the same peer and sends nothing.
task<> detail::until_room_at_peer(descriptor& from, unsigned tries) {
  std::optional<probe_socket> asks;
  if (tries > most_doublings) asks.emplace(from.number());
  if (asks && asks->at() != nullptr)
    co_await select(on(from.until_ready(direction::out)), on(asks->at()->until_ready(direction::out)));
  else
    co_await select(on(from.until_ready(direction::out)), after(longest_wait(tries)));
}

namespace net {
namespace {

constexpr const char* asking = "set a datagram socket's option";

bool is_v6(int number) noexcept { return socket_option(number, SO_DOMAIN) == AF_INET6; }
bool takes_v4(int number) noexcept {
  int only_v6 = 0;
  socklen_t size = sizeof only_v6;
  return !is_v6(number) || (::getsockopt(number, IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, &size) == 0 && only_v6 == 0);
}

struct of_both {
  int v4, v6;
};

// Sets an option for IPv4, for IPv6, or, on a dual-stack socket, for both. IPv4 comes first: it accepts fewer values, so a
// refusal changes nothing.
void set(const detail::descriptor* at, of_both option, int value) {
  with_number(at, asking, [&](int number) {
    if (takes_v4(number)) net::set(number, IPPROTO_IP, option.v4, value, asking);
    if (is_v6(number)) net::set(number, IPPROTO_IPV6, option.v6, value, asking);
  });
}

unsigned interface_number(std::string_view interface) {
  unsigned number = 0;
  if (interface.empty()) return number;
  const auto [end, failure] = std::from_chars(interface.data(), interface.data() + interface.size(), number);
  if (failure == std::errc{} && end == interface.data() + interface.size()) return number;
  number = ::if_nametoindex(std::string{interface}.c_str());
  if (number == 0) throw error{std::make_error_code(std::errc::no_such_device), "find an interface", interface};
  return number;
}

void change_group(const detail::descriptor* at, int what, const endpoint& group, std::string_view interface,
                  const char* operation) {
  const system_address address{group};
  group_req asked{};
  asked.gr_interface = interface_number(interface);
  std::memcpy(&asked.gr_group, &address.storage, sizeof asked.gr_group);
  const int level = group.is_v6() ? IPPROTO_IPV6 : IPPROTO_IP;
  with_number(at, operation, [&](int number) {
    if (::setsockopt(number, level, what, &asked, sizeof asked) == 0) return;
    const int refused = errno;
    throw socket_error(refused, operation, group.address());
  });
}

}  // namespace

datagram datagram::adopt(int number) {
  if (const int type = socket_option(number, SO_TYPE); type != SOCK_DGRAM) {
    const int refused = type < 0 ? errno : EPROTOTYPE;
    throw socket_error(refused, "adopt a datagram socket");
  }
  // A datagram's sender is given as an endpoint, which can't hold an address of another family.
  const int family = socket_option(number, SO_DOMAIN);
  if (family != AF_INET && family != AF_INET6 && family != AF_UNIX)
    throw error{std::make_error_code(std::errc::address_family_not_supported), "adopt a datagram socket"};
  make_non_blocking(number, "adopt a datagram socket");
  datagram made{detail::io_service_here().watch(number, true)};
  made.at_->is_of_unix(family == AF_UNIX);
  return made;
}

int datagram::release() noexcept {
  if (at_ == nullptr || at_->is_closed()) return -1;
  detail::descriptor& mine = *std::exchange(at_, nullptr);
  delete std::exchange(file_, nullptr);
  const int number = mine.release();
  mine.drop();
  return number;
}

void datagram::remove_file(bool is_last) noexcept {
  if (file_ == nullptr) return;
  file_->remove();
  if (is_last) delete std::exchange(file_, nullptr);
}

task<datagram> bind(datagram_options options, endpoint where) {
  const system_address address{where};
  new_socket made{open_socket(address, SOCK_DGRAM)};
  const int number = made.number();
  if (options.reuse_address) set(number, SOL_SOCKET, SO_REUSEADDR, 1, "bind");
  if (options.reuse_port) set(number, SOL_SOCKET, SO_REUSEPORT, 1, "bind");
  if (where.is_v6()) set(number, IPPROTO_IPV6, IPV6_V6ONLY, options.only_v6, "bind");
  new_socket_file file{where};
  if (const int refused = file.bind(number, address, options.replace_stale); refused != 0)
    co_await fail_with(socket_error(refused, "bind", where));
  detail::descriptor& at = made.watch();
  at.is_of_unix(where.is_unix());
  co_return datagram{at, file.give()};
}

task<datagram> connect_datagram(endpoint to) {
  const system_address address{to};
  new_socket made{open_socket(address, SOCK_DGRAM)};
  if (::connect(made.number(), &address.any, address.size) != 0) co_await fail_with(socket_error(errno, "connect", to));
  detail::descriptor& at = made.watch();
  at.is_of_unix(to.is_unix());
  co_return datagram{at};
}

void datagram::connect(const endpoint& peer) const {
  const detail::descriptor_use use{at_};
  if (!use) throw_closed("connect");
  const system_address address{peer};
  if (::connect(at_->number(), &address.any, address.size) != 0) throw socket_error(errno, "connect", peer);
}

void datagram::disconnect() const {
  const detail::descriptor_use use{at_};
  if (!use) throw_closed("disconnect");
  const sockaddr none{.sa_family = AF_UNSPEC, .sa_data = {}};
  if (::connect(at_->number(), &none, sizeof none) != 0) throw_errno("disconnect");
}

endpoint datagram::local() const { return name_of(at_, ::getsockname, "ask for a datagram socket's endpoint"); }
endpoint datagram::peer() const { return name_of(at_, ::getpeername, "ask for a datagram socket's peer"); }

void datagram::set_receive_buffer(int bytes) const { set(at_, SOL_SOCKET, SO_RCVBUF, bytes, asking); }
void datagram::set_send_buffer(int bytes) const { set(at_, SOL_SOCKET, SO_SNDBUF, bytes, asking); }
void datagram::set_broadcast(bool on) const { set(at_, SOL_SOCKET, SO_BROADCAST, on, asking); }
void datagram::set_time_to_live(int hops) const { set(at_, {IP_TTL, IPV6_UNICAST_HOPS}, hops); }
void datagram::set_type_of_service(int value) const { set(at_, {IP_TOS, IPV6_TCLASS}, value); }
bool datagram::set_merges_received(bool on) const {
  return with_number(at_, asking, [on](int number) {
    const int value = on ? 1 : 0;
    if (::setsockopt(number, SOL_UDP, UDP_GRO, &value, sizeof value) == 0) return true;
    if (errno != ENOPROTOOPT && errno != EOPNOTSUPP) throw_errno(asking);
    return false;
  });
}

void datagram::join(const endpoint& group, std::string_view interface) const {
  change_group(at_, MCAST_JOIN_GROUP, group, interface, "join the group");
}
void datagram::leave(const endpoint& group, std::string_view interface) const {
  change_group(at_, MCAST_LEAVE_GROUP, group, interface, "leave the group");
}
void datagram::set_multicast_interface(std::string_view interface) const {
  ip_mreqn asked{};
  asked.imr_ifindex = static_cast<int>(interface_number(interface));
  with_number(at_, asking, [&asked](int number) {
    if (takes_v4(number) && ::setsockopt(number, IPPROTO_IP, IP_MULTICAST_IF, &asked, sizeof asked) != 0)
      throw_errno(asking);
    if (is_v6(number)) set(number, IPPROTO_IPV6, IPV6_MULTICAST_IF, asked.imr_ifindex, asking);
  });
}
void datagram::set_multicast_loopback(bool on) const { set(at_, {IP_MULTICAST_LOOP, IPV6_MULTICAST_LOOP}, on); }
void datagram::set_multicast_time_to_live(int hops) const { set(at_, {IP_MULTICAST_TTL, IPV6_MULTICAST_HOPS}, hops); }

}  // namespace net
}  // namespace weft
