// A channel: the callbacks that c-ares calls, and the operations of lookups. See name_channel_cares.hpp.
#include "net/name_channel_cares.hpp"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>
#include <vector>
#include <weft/error.hpp>

#include "net/system_address.hpp"

namespace weft::detail {

using net::address_family;
using net::endpoint;
using net::resolve_errc;
using std::chrono::steady_clock;

namespace {

std::error_code system_error(int number) noexcept { return {number, std::generic_category()}; }

// The lookups whose events are to be set once the lock is released: those that are over, and perhaps the leader. Declared before
// the lock's guard, so that its destructor runs after the unlocking.
struct events_to_set {
  events_to_set() noexcept = default;
  events_to_set(const events_to_set&) = delete;
  ~events_to_set() {
    while (over) {
      const std::shared_ptr<lookup> one = std::move(over);
      over = std::move(one->next_over);
      one->turn.set();
    }
    if (leader) leader->turn.set();
  }

  std::shared_ptr<lookup> over, leader;
};

// The name servers in c-ares' form, which has no scope of an IPv6 address.
std::vector<ares_addr_port_node> as_nodes(const std::vector<endpoint>& servers) {
  std::vector<ares_addr_port_node> nodes(servers.size());
  for (std::size_t i = 0; i != servers.size(); ++i) {
    const net::system_address address{servers[i]};
    ares_addr_port_node& one = nodes[i];
    one.next = i + 1 != servers.size() ? &nodes[i + 1] : nullptr;
    one.family = address.any.sa_family;
    if (servers[i].is_v6())
      std::memcpy(&one.addr.addr6, &address.v6.sin6_addr, sizeof one.addr.addr6);
    else
      one.addr.addr4 = address.v4.sin_addr;
    one.udp_port = one.tcp_port = servers[i].port();
  }
  return nodes;
}

}  // namespace

std::error_code code_of_status(int status) noexcept {
  switch (status) {
    case ARES_ENODATA: return resolve_errc::no_address;
    case ARES_ENOTFOUND:
    case ARES_ENONAME: return resolve_errc::not_found;
    case ARES_EBADNAME:
    case ARES_EBADSTR:
    case ARES_EBADQUERY: return resolve_errc::bad_name;
    case ARES_ESERVICE: return resolve_errc::unknown_service;
    case ARES_ETIMEOUT: return resolve_errc::no_answer;
    case ARES_ECONNREFUSED: return resolve_errc::unreachable;
    case ARES_EREFUSED: return resolve_errc::refused;
    case ARES_EFORMERR:
    case ARES_ENOTIMP: return resolve_errc::not_understood;
    case ARES_EBADRESP:
    case ARES_EOF: return resolve_errc::malformed;
    case ARES_EFILE:
    case ARES_ENOTINITIALIZED: return resolve_errc::configuration;
    case ARES_ENOMEM: return std::make_error_code(std::errc::not_enough_memory);
    default: return resolve_errc::server_failed;
  }
}

void expect_success(int status, const char* operation) {
  if (status != ARES_SUCCESS) throw error{code_of_status(status), operation};
}

bool is_lack(std::error_code refused) noexcept {
  for (const int lack : {EMFILE, ENFILE, ENOBUFS, ENOMEM, ENOSPC, EPERM, EACCES})
    if (refused == system_error(lack)) return true;
  return false;
}

// Of a call that is not for one lookup alone nobody says whose question it was: so it is noted for all.
void name_channel::note_lack() noexcept {
  if (begins_ != nullptr) {
    begins_->lacked = refused_;
    return;
  }
  for (lookup* one = first_; one != nullptr; one = one->next)
    if (!one->is_over) one->lacked = refused_;
}

// Nor is it looked up whose question an answer is for: a lookup that is doubtful for another one's sake may ask once more.
void name_channel::note_doubt() noexcept {
  for (lookup* one = first_; one != nullptr; one = one->next)
    if (!one->is_over) one->is_doubtful = true;
}

// ---- callbacks of c-ares ----------------------------------------------------------------------------------------------------

void name_channel::called_back(void* its, int status, int timeouts, ares_addrinfo* found) noexcept {
  auto& one = *static_cast<lookup*>(its);
  name_channel& mine = one.channel;
  std::shared_ptr<lookup> kept = std::move(one.kept);
  one.is_over = true;
  one.status = status;
  one.found = found;
  one.refused = mine.refused_;
  if (timeouts != 0) one.is_doubtful = true;
  if (status == ARES_SUCCESS) mine.refused_ = {};  // what failed was only a socket by which c-ares sorts addresses
  if (one.is_left) {
    --mine.left_;
    return;
  }
  one.next_over = std::move(mine.over_);
  mine.over_ = std::move(kept);
}

// c-ares calls this for the sockets by which it sends queries, not for those by which it sorts addresses.
void name_channel::watch_socket(void* its, int number, int to_read, int to_write) noexcept {
  if (to_read == 0 && to_write == 0) return;  // it is about to be closed
  auto& mine = *static_cast<name_channel*>(its);
  epoll_event event{};
  event.events = (to_read != 0 ? EPOLLIN : 0U) | (to_write != 0 ? EPOLLOUT : 0U);
  event.data.fd = number;
  if (::epoll_ctl(mine.set_, EPOLL_CTL_ADD, number, &event) == 0) return;
  if (errno == EEXIST && ::epoll_ctl(mine.set_, EPOLL_CTL_MOD, number, &event) == 0) return;
  mine.not_watched_ = errno;
  if (int* const place = mine.unwatched(-1); place != nullptr) *place = number;  // else the query's time-out ends it
}

int name_channel::open(int family, int type, int protocol, void* its) noexcept {
  const int number = ::socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
  return number >= 0 ? number : static_cast<name_channel*>(its)->refuse(errno);
}

int name_channel::close(int number, void* its) noexcept {
  if (int* const place = static_cast<name_channel*>(its)->unwatched(number); place != nullptr) *place = -1;
  return ::close(number);
}

int name_channel::connect(int number, const sockaddr* to, ares_socklen_t size, void* its) noexcept {
  if (::connect(number, to, size) == 0) return 0;
  if (errno == EINTR) errno = EINPROGRESS;  // the connect goes on
  if (errno == EINPROGRESS) return -1;
  return static_cast<name_channel*>(its)->refuse(errno);
}

ares_ssize_t name_channel::receive(int number, void* into, std::size_t size, int flags, sockaddr* of,
                                   ares_socklen_t* length, void* its) noexcept {
  auto& mine = *static_cast<name_channel*>(its);
  if (mine.unwatched(number) != nullptr) return mine.refuse(mine.not_watched_);
  ssize_t got;
  do got = ::recvfrom(number, into, size, flags, of, length);
  while (got < 0 && errno == EINTR);
  mine.found_ = got > 0;
  if (got < 0 && errno != EAGAIN) return mine.refuse(errno);
  if (got > 0 && of != nullptr) mine.look_at({static_cast<const unsigned char*>(into), static_cast<std::size_t>(got)});
  return got;
}

ares_ssize_t name_channel::send(int number, const iovec* parts, int count, void* its) noexcept {
  auto& mine = *static_cast<name_channel*>(its);
  if (mine.unwatched(number) != nullptr) return mine.refuse(mine.not_watched_);
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts);  // NOLINT: only read
  message.msg_iovlen = static_cast<std::size_t>(count);
  ssize_t sent;
  do sent = ::sendmsg(number, &message, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  if (sent < 0 && errno != EAGAIN) return mine.refuse(errno);
  return sent;
}

// Notes the error in a server's answer. c-ares goes on to its next server after one of these, and reports none of them when no
// server is left. The rest of an answer that is truncated comes by TCP, which is not looked at: so it may be an error, too.
void name_channel::look_at(std::span<const unsigned char> datagram) noexcept {
  constexpr std::size_t header = 12;
  constexpr unsigned is_truncated = 0x2, no_error = 0, no_such_name = 3;
  if (datagram.size() < header) return;
  const unsigned code = datagram[3] & 0xfU;
  if ((datagram[2] & is_truncated) != 0 || (code != no_error && code != no_such_name)) note_doubt();
  switch (code) {
    case 2: refused_ = resolve_errc::server_failed; break;
    case 4: refused_ = resolve_errc::not_understood; break;
    case 5: refused_ = resolve_errc::refused; break;
    default: break;
  }
}

// ---- operations of lookups --------------------------------------------------------------------------------------------------

name_channel::name_channel(const name_query::channel_options& options) {
  ares_options asked{};
  int which = ARES_OPT_SOCK_STATE_CB;
  asked.sock_state_cb = watch_socket;
  asked.sock_state_cb_data = this;
  if (options.timeout != 0) {
    asked.timeout = options.timeout;
    which |= ARES_OPT_TIMEOUTMS;
  }
  if (options.tries != 0) {
    asked.tries = options.tries;
    which |= ARES_OPT_TRIES;
  }
  std::string path = options.configuration;
  if (!path.empty()) {
    asked.resolvconf_path = path.data();
    which |= ARES_OPT_RESOLVCONF;
  }
  if (options.port != 0) {
    asked.udp_port = asked.tcp_port = options.port;  // c-ares converts it to network byte order
    which |= ARES_OPT_UDP_PORT | ARES_OPT_TCP_PORT;
  }
  expect_success(::ares_init_options(&ares_, &asked, which), "read the resolver's configuration");
  ::ares_set_socket_functions(ares_, &calls, this);
  int status = ARES_SUCCESS;
  if (!options.servers.empty()) {
    try {
      status = ::ares_set_servers_ports(ares_, as_nodes(options.servers).data());
    } catch (...) {
      ::ares_destroy(ares_);
      throw;
    }
  }
  if (status != ARES_SUCCESS) {
    ::ares_destroy(ares_);
    throw error{code_of_status(status), "use name servers"};
  }
}

std::error_code name_channel::begin(lookup& one, const char* host, address_family family) noexcept {
  events_to_set those;
  const std::lock_guard guard{lock_};
  if (set_ < 0) {
    set_ = ::epoll_create1(EPOLL_CLOEXEC);
    if (set_ < 0) return system_error(errno);
  }
  ++begun_;
  ++under_way_;
  one.prev = last_;
  (last_ != nullptr ? last_->next : first_) = &one;
  last_ = &one;
  one.kept = one.shared_from_this();
  ares_addrinfo_hints hints{};
  hints.ai_family = family == address_family::any ? AF_UNSPEC : family == address_family::v4 ? AF_INET : AF_INET6;
  hints.ai_socktype = SOCK_STREAM;
  const clock::time_point due_before = due_;
  refused_ = {};
  begins_ = &one;
  ::ares_getaddrinfo(ares_, host, nullptr, &hints, called_back, &one);
  begins_ = nullptr;
  fail_unwatched();
  expect_timeouts(steady_clock::now());
  those.over = std::move(over_);
  if (leader_ == nullptr)
    leader_ = &one;
  else if (due_ < due_before)
    those.leader = leader_->shared_from_this();
  return {};
}

void name_channel::leave(lookup& one) noexcept {
  events_to_set those;
  const std::lock_guard guard{lock_};
  (one.prev != nullptr ? one.prev->next : first_) = one.next;
  (one.next != nullptr ? one.next->prev : last_) = one.prev;
  if (!one.is_over) {
    one.is_left = true;
    ++left_;
  }
  if (leader_ == &one) {
    leader_ = first_;
    if (leader_ != nullptr) those.leader = leader_->shared_from_this();
  }
  if (--under_way_ != 0) return;
  if (left_ != 0) ::ares_cancel(ares_);
  due_ = clock::time_point::max();
  ::close(std::exchange(set_, -1));
}

name_channel::progress name_channel::process(const lookup& leader) noexcept {
  events_to_set those;
  const std::lock_guard guard{lock_};
  epoll_event came[16];
  int count;
  do count = ::epoll_wait(set_, came, static_cast<int>(std::size(came)), 0);
  while (count < 0 && errno == EINTR);
  bool has_more = count == static_cast<int>(std::size(came));
  for (int i = 0; i < count; ++i) {
    const bool to_read = (came[i].events & ~EPOLLOUT) != 0, to_write = (came[i].events & ~EPOLLIN) != 0;
    found_ = false;
    process(to_read ? came[i].data.fd : ARES_SOCKET_BAD, to_write ? came[i].data.fd : ARES_SOCKET_BAD);
    has_more = has_more || found_;
  }
  const clock::time_point now = steady_clock::now();
  if (now >= due_) {
    process(ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    due_ = clock::time_point::max();
  }
  fail_unwatched();
  expect_timeouts(now);
  those.over = std::move(over_);
  return {leader.is_over, has_more, due_};
}

// Asks c-ares, which alone knows: from 1.32 on, the first time-out of a query is shorter than configured if its server has been
// quick so far.
clock::time_point name_channel::next_timeout(clock::time_point now) const noexcept {
  timeval left{};
  if (::ares_timeout(ares_, nullptr, &left) == nullptr) return clock::time_point::max();
  // One more, since some versions round down to whole milliseconds.
  return now + std::chrono::seconds{left.tv_sec} + std::chrono::microseconds{left.tv_usec} +
         std::chrono::milliseconds{1};
}

// Has c-ares use each socket that could not be added to the set: receive() and send() then fail, and c-ares goes on to its next
// server.
void name_channel::fail_unwatched() noexcept {
  for (const int& one : unwatched_)
    for (int i = 0; one >= 0 && i != 8; ++i) process(one, one);
}

}  // namespace weft::detail
