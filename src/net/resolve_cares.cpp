// Lookups by c-ares: a channel, and the lookups that use it.
//
// A channel is a state of c-ares with its sockets, which are in an epoll set of the channel's own. So all that has to be waited
// for is that set, whatever c-ares opens and closes meanwhile, and the next time-out. One of the lookups, the leader, waits for
// both; the others wait for their event. Whoever has changed something tells those whom it concerns by their events:
//
//   begin     a lookup asks c-ares. The first one leads. Where the next time-out is earlier than before, the leader is told
//   process   the leader has c-ares read what came, and see to time-outs. Lookups that have their answer are told
//   leave     a lookup is over, or was stopped. One that led makes the oldest of the others lead, and tells it. The last one has
//             c-ares drop all that nobody waits for, and closes the set
//
// All three have the channel's lock while they are in c-ares, which is of one thread at a time, and set events only behind it:
// what is told may go on at once, on this thread.
//
// c-ares can't end one question alone. It keeps a lookup that was stopped until it has an answer or has given up, by a count in
// the lookup itself, and its callback finds that nobody is there. A channel that has had a thousand lookups gets no others: so
// its ids, of 16 bits, are not used up by those, and the port of its sockets does not stay the same where there always is a
// lookup under way, by which somebody could learn it, and send answers of his own.
//
// Time-outs go by the real clock, also in a test with a clock of its own: c-ares reads the system's, and so does the server.
//
// Long because the channel, its sockets and the set of all channels know each other.
#define CARES_NO_DEPRECATED  // what newer versions have for the same, 1.18 has not
#include <ares.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>
#include <weft/clock.hpp>
#include <weft/error.hpp>
#include <weft/event.hpp>
#include <weft/hop.hpp>
#include <weft/nothrow.hpp>
#include <weft/select.hpp>

#include "io/io_service.hpp"
#include "net/name_query.hpp"
#include "net/system_address.hpp"

namespace weft::detail {
namespace {

using net::address_family;
using net::endpoint;
using net::resolve_errc;
using std::chrono::steady_clock;

std::error_code system_error(int number) noexcept { return {number, std::generic_category()}; }

class name_channel;

// One that is under way. Whoever has its lookup's task, and c-ares until it has called back.
struct lookup : std::enable_shared_from_this<lookup> {
  explicit lookup(name_channel& of) noexcept : channel{of} {}
  lookup(const lookup&) = delete;
  ~lookup() {
    if (found != nullptr) ::ares_freeaddrinfo(found);
  }

  name_channel& channel;
  event turn;  // it has its answer, leads, or is to look at the time-outs

  // With the channel's lock; `status` and `found` are the task's once it is over.
  bool is_over = false;
  bool is_left = false;
  int status = 0;
  ares_addrinfo* found = nullptr;
  std::error_code refused{};                // why no server could be used, if that is known
  lookup *next = nullptr, *prev = nullptr;  // among those that are under way, in their order
  std::shared_ptr<lookup> kept;             // by c-ares
  std::shared_ptr<lookup> next_over;        // told once, by whoever has taken it from the channel
};

// Who is to be told, when the lock is free: those that are over, and perhaps the leader.
struct told {
  told() noexcept = default;
  told(const told&) = delete;
  ~told() {
    while (over) {
      const std::shared_ptr<lookup> one = std::move(over);
      over = std::move(one->next_over);
      one->turn.set();
    }
    if (leader) leader->turn.set();
  }

  std::shared_ptr<lookup> over, leader;
};

class name_channel {
 public:
  explicit name_channel(const name_query::channel_options& options);
  name_channel(const name_channel&) = delete;
  ~name_channel() { ::ares_destroy(ares_); }

  // Whether new lookups are to get another one.
  bool is_worn() const noexcept {
    constexpr std::size_t most = 1'000;  // to make one takes as long as some lookups
    const std::lock_guard guard{lock_};
    return begun_ >= most;
  }

  // Where it gives no error, leave() comes behind it.
  std::error_code begin(lookup& one, const char* host, address_family family) noexcept;
  void leave(lookup& one) noexcept;

  struct role {
    bool is_over, leads;
  };
  role role_of(const lookup& one) const noexcept {
    const std::lock_guard guard{lock_};
    return {one.is_over, leader_ == &one};
  }
  int set() const noexcept { return set_; }  // by the leader

  struct progress {
    bool is_over;   // the leader's own lookup
    bool has_more;  // there may be more to read
    clock::time_point due;
  };
  progress process(const lookup& leader) noexcept;

 private:
  void process(ares_socket_t to_read, ares_socket_t to_write) noexcept {
    refused_ = {};
    ::ares_process_fd(ares_, to_read, to_write);
  }
  void see_to_unwatched() noexcept;
  void expect_timeouts(clock::time_point now) noexcept { due_ = std::min(due_, next_timeout(now)); }
  clock::time_point next_timeout(clock::time_point now) const noexcept;

  // What c-ares calls.
  static void called_back(void* its, int status, int timeouts, ares_addrinfo* found) noexcept;
  static void wants(void* its, int number, int to_read, int to_write) noexcept;
  static int open(int family, int type, int protocol, void* its) noexcept;
  static int close(int number, void* its) noexcept;
  static int connect(int number, const sockaddr* to, ares_socklen_t size, void* its) noexcept;
  static ares_ssize_t receive(int number, void* into, std::size_t size, int flags, sockaddr* of, ares_socklen_t* length,
                              void* its) noexcept;
  static ares_ssize_t send(int number, const iovec* parts, int count, void* its) noexcept;
  static constexpr ares_socket_functions calls{
      .asocket = open, .aclose = close, .aconnect = connect, .arecvfrom = receive, .asendv = send};

  // Notes why a server can't be used, which c-ares keeps for itself.
  int refuse(int error) noexcept {
    refused_ = system_error(error);
    errno = error;
    return -1;
  }
  void look_at(std::span<const unsigned char> datagram) noexcept;
  // The place of one that could not be added to the set; of -1, a free one.
  int* unwatched(int number) noexcept {
    const auto one = std::ranges::find(unwatched_, number);
    return one != unwatched_.end() ? &*one : nullptr;
  }

  mutable std::mutex lock_;  // of all that follows
  ares_channel ares_ = nullptr;
  int set_ = -1;
  lookup *first_ = nullptr, *last_ = nullptr, *leader_ = nullptr;
  std::size_t begun_ = 0, under_way_ = 0;
  std::size_t left_ = 0;          // were stopped, and c-ares does not know it
  std::shared_ptr<lookup> over_;  // have been called back, and are yet to be told
  // When the leader is to look. Not later than the next time-out: it is earlier, where that one's answer has come.
  clock::time_point due_ = clock::time_point::max();
  // By the system, or by a server, in this call of c-ares. What came of others may be about other lookups.
  std::error_code refused_{};
  bool found_ = false;                                            // the last read has
  std::array<int, 8> unwatched_{-1, -1, -1, -1, -1, -1, -1, -1};  // sockets that could not be added to the set
  int not_watched_ = 0;                                           // why not
};

// ---- what c-ares calls -----------------------------------------------------------------------------------------------------

void name_channel::called_back(void* its, int status, int, ares_addrinfo* found) noexcept {
  auto& one = *static_cast<lookup*>(its);
  name_channel& mine = one.channel;
  std::shared_ptr<lookup> kept = std::move(one.kept);
  one.is_over = true;
  one.status = status;
  one.found = found;
  one.refused = mine.refused_;
  if (status == ARES_SUCCESS) mine.refused_ = {};  // that was about the sorting of its addresses
  if (one.is_left) {
    --mine.left_;
    return;
  }
  one.next_over = std::move(mine.over_);
  mine.over_ = std::move(kept);
}

// Called for the sockets of questions, and not for those by which addresses are sorted.
void name_channel::wants(void* its, int number, int to_read, int to_write) noexcept {
  if (to_read == 0 && to_write == 0) return;  // it is about to be closed
  auto& mine = *static_cast<name_channel*>(its);
  epoll_event event{};
  event.events = (to_read != 0 ? EPOLLIN : 0U) | (to_write != 0 ? EPOLLOUT : 0U);
  event.data.fd = number;
  if (::epoll_ctl(mine.set_, EPOLL_CTL_ADD, number, &event) == 0) return;
  if (errno == EEXIST && ::epoll_ctl(mine.set_, EPOLL_CTL_MOD, number, &event) == 0) return;
  mine.not_watched_ = errno;
  if (int* const place = mine.unwatched(-1); place != nullptr) *place = number;  // else its time-outs are there
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
  if (errno == EINTR) errno = EINPROGRESS;  // it goes on
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

// ---- the channel -------------------------------------------------------------------------------------------------------------

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

// c-ares passes over a server that fails in one of these ways, and does not say so when there is none left.
void name_channel::look_at(std::span<const unsigned char> datagram) noexcept {
  constexpr std::size_t header = 12;
  if (datagram.size() < header) return;
  switch (datagram[3] & 0xf) {
    case 2: refused_ = resolve_errc::server_failed; break;
    case 4: refused_ = resolve_errc::not_understood; break;
    case 5: refused_ = resolve_errc::refused; break;
    default: break;
  }
}

void expect_success(int status, const char* operation) {
  if (status != ARES_SUCCESS) throw error{code_of_status(status), operation};
}

// Which name servers c-ares is to ask. It knows no scope of an address.
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

name_channel::name_channel(const name_query::channel_options& options) {
  ares_options asked{};
  int which = ARES_OPT_SOCK_STATE_CB;
  asked.sock_state_cb = wants;
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
    asked.udp_port = asked.tcp_port = options.port;  // c-ares turns it round
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
  told those;
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
  ::ares_getaddrinfo(ares_, host, nullptr, &hints, called_back, &one);
  see_to_unwatched();
  expect_timeouts(steady_clock::now());
  those.over = std::move(over_);
  if (leader_ == nullptr)
    leader_ = &one;
  else if (due_ < due_before)
    those.leader = leader_->shared_from_this();
  return {};
}

void name_channel::leave(lookup& one) noexcept {
  told those;
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
  told those;
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
  see_to_unwatched();
  expect_timeouts(now);
  those.over = std::move(over_);
  return {leader.is_over, has_more, due_};
}

// c-ares alone knows: from 1.32 on a first time-out is shorter than the configured one where its server has been quick so far.
clock::time_point name_channel::next_timeout(clock::time_point now) const noexcept {
  timeval left{};
  if (::ares_timeout(ares_, nullptr, &left) == nullptr) return clock::time_point::max();
  // In whole milliseconds, cut, by some versions.
  return now + std::chrono::seconds{left.tv_sec} + std::chrono::microseconds{left.tv_usec} +
         std::chrono::milliseconds{1};
}

// c-ares calls the system for them, which is refused: so it goes on with its next server.
void name_channel::see_to_unwatched() noexcept {
  for (const int& one : unwatched_)
    for (int i = 0; one >= 0 && i != 8; ++i) process(one, one);
}

// ---- all channels ------------------------------------------------------------------------------------------------------------

// Whether a file is the one of before, and unchanged.
struct file_id {
  dev_t device = 0;
  ino_t number = 0;
  off_t size = -1;  // there is none
  std::int64_t seconds = 0, nanoseconds = 0;

  static file_id of(const char* path) noexcept {
    struct stat its;
    if (::stat(path, &its) != 0) return {};
    return {its.st_dev, its.st_ino, its.st_size, its.st_mtim.tv_sec, its.st_mtim.tv_nsec};
  }
  friend bool operator==(const file_id&, const file_id&) = default;
};

// A channel for each runtime, or other service that watches descriptors, and for each kind of options, as long as they fit.
class channels {
 public:
  std::shared_ptr<name_channel> get(const io_service* service, const name_query::channel_options& options) {
    const clock::time_point now = steady_clock::now();
    const std::lock_guard guard{lock_};
    place* at = nullptr;
    for (place& one : places_)
      if (one.channel != nullptr && one.service == service && one.options == options) at = &one;
    if (at != nullptr && is_current(*at, now)) return at->channel;
    if (at == nullptr) at = free_place();
    if (!has_library_) expect_success(::ares_library_init(ARES_LIB_INIT_ALL), "begin to use c-ares");
    has_library_ = true;
    const auto files = files_of(options);
    auto made = std::make_shared<name_channel>(options);
    if (at == nullptr) return made;
    name_query::channel_options copied = options;
    *at = {made, service, std::move(copied), files, now, now};
    return made;
  }

  static channels& instance() {
    leave_behind_in_children();
    channels* its = one.load(std::memory_order_acquire);  // <- channels (no model: as declared)
    if (its == nullptr) {
      auto made = std::make_unique<channels>();
      if (one.compare_exchange_strong(its, made.get(),
                                      std::memory_order_acq_rel,   // -> channels (no model: as declared)
                                      std::memory_order_acquire))  // <- channels (no model: as declared)
        its = made.release();
    }
    return *its;
  }

 private:
  // Not by the guard of a static, which a child that is forked meanwhile would find taken for ever. Two threads that come here
  // at once register twice, and either does the same.
  static void leave_behind_in_children() noexcept {
    // Relaxed: who sees it too late registers once more.
    static constinit std::atomic<bool> does{false};
    if (does.load(std::memory_order_relaxed)) return;
    ::pthread_atfork(nullptr, nullptr, [] {
      one.store(nullptr, std::memory_order_relaxed);  // a child that begins has one thread
    });
    does.store(true, std::memory_order_relaxed);
  }

  using files = std::array<file_id, 2>;
  struct place {
    std::shared_ptr<name_channel> channel;
    const io_service* service = nullptr;  // compared, and never used: there may be another one at that address
    name_query::channel_options options;
    files read_from{};
    clock::time_point looked_at, used_at;
  };

  static files files_of(const name_query::channel_options& options) noexcept {
    return {file_id::of(options.configuration.empty() ? "/etc/resolv.conf" : options.configuration.c_str()),
            file_id::of("/etc/nsswitch.conf")};
  }
  // Files are looked at ten times a second at most.
  static bool is_current(place& one, clock::time_point now) {
    one.used_at = now;
    if (one.channel->is_worn()) return false;
    if (now - one.looked_at < std::chrono::milliseconds{100}) return true;
    one.looked_at = now;
    return one.read_from == files_of(one.options);
  }
  // One that is free, or whose channel nobody has, the longest ago used; or none.
  place* free_place() noexcept {
    place* oldest = nullptr;
    for (place& one : places_) {
      if (one.channel == nullptr) return &one;
      if (one.channel.use_count() == 1 && (oldest == nullptr || one.used_at < oldest->used_at)) oldest = &one;
    }
    return oldest;
  }

  std::mutex lock_;           // of all that follows
  bool has_library_ = false;  // may be true of c-ares before: it counts
  std::array<place, 8> places_{};

  // Never destroyed, and left behind in a child that was forked, where the locks may be taken and the sockets are shared.
  //   edge channels  its construction  ->  who finds it. No model: one exchange, of what is never changed behind it
  static constinit std::atomic<channels*> one;
};

constinit std::atomic<channels*> channels::one{nullptr};

// ---- a lookup ----------------------------------------------------------------------------------------------------------------

class under_way {
 public:
  explicit under_way(lookup& one) noexcept : one_{one} {}
  under_way(const under_way&) = delete;
  ~under_way() {
    if (has_begun_) one_.channel.leave(one_);
  }
  std::error_code begin(const char* host, address_family family) noexcept {
    const std::error_code refused = one_.channel.begin(one_, host, family);
    has_begun_ = !refused;
    return refused;
  }

 private:
  lookup& one_;
  bool has_begun_ = false;
};

// The next time-out, of which the leader is told.
class due_timer : timer {
 public:
  explicit due_timer(event& tells) noexcept : timer{fire_now}, tells_{tells} {}
  ~due_timer() { real_clock().cancel(*this); }

  void set(clock::time_point to) noexcept {
    if (to == set_to_ && !has_fired_.load(std::memory_order_relaxed)) return;  // the event carries it
    real_clock().cancel(*this);
    has_fired_.store(false, std::memory_order_relaxed);  // it does not fire any more
    set_to_ = to;
    if (to != clock::time_point::max()) real_clock().arm(*this, to);
  }

 private:
  static void fire_now(timer& self) noexcept {
    auto& mine = static_cast<due_timer&>(self);
    mine.has_fired_.store(true, std::memory_order_relaxed);  // the event carries it
    mine.tells_.set();                                       // it may be gone after this line
  }

  event& tells_;
  clock::time_point set_to_ = clock::time_point::max();
  std::atomic<bool> has_fired_{false};
};

// The set of a channel, watched where its leader runs, and the channel's again behind that.
class watched_set {
 public:
  explicit watched_set(int set) : at_{io_service_here().watch(set, true)} {}
  watched_set(const watched_set&) = delete;
  ~watched_set() {
    static_cast<void>(at_.release());
    at_.drop();
  }
  descriptor& at() const noexcept { return at_; }

 private:
  descriptor& at_;
};

// Waits for the sockets and the time-outs of a channel, until its own answer is there.
task<> lead(name_channel& channel, lookup& mine) {
  const watched_set set{channel.set()};
  descriptor& watched = set.at();
  due_timer timer{mine.turn};
  for (;;) {
    if (has_had_its_turn()) co_await yield();
    mine.turn.reset();
    watched.expect_change(direction::in);
    const name_channel::progress now = channel.process(mine);
    if (now.is_over) co_return;
    if (now.has_more) continue;
    timer.set(now.due);
    auto either = select(on(watched.until_ready(direction::in)), on(mine.turn.wait()));
    co_await std::move(either);
  }
}

std::vector<endpoint> endpoints_of(const ares_addrinfo& found, std::uint16_t port) {
  std::vector<endpoint> all;
  for (const ares_addrinfo_node* one = found.nodes; one != nullptr; one = one->ai_next)
    if (const auto got = net::system_address::of(one->ai_addr, one->ai_addrlen, port)) all.push_back(*got);
  return all;
}

// That no server could be used, and what for, unless it is about the network: then none could be reached.
std::error_code why_it_failed(const lookup& one) noexcept {
  if (one.status == ARES_SUCCESS) return resolve_errc::no_address;
  if (one.status != ARES_ECONNREFUSED) return code_of_status(one.status);
  if (one.refused.category() == net::resolve_category()) return one.refused;
  for (const int lack : {EMFILE, ENFILE, ENOBUFS, ENOMEM, ENOSPC, EPERM, EACCES})
    if (one.refused == system_error(lack)) return one.refused;
  return resolve_errc::unreachable;
}

}  // namespace

task<std::vector<net::endpoint>> look_up_by_channel(name_query what, std::uint16_t port) {
  const std::shared_ptr<name_channel> channel = channels::instance().get(&io_service_here(), what.channel);
  const auto one = std::make_shared<lookup>(*channel);
  under_way mine{*one};
  if (const std::error_code refused = mine.begin(what.host.c_str(), what.family))
    co_await fail_with(lookup_failure(refused, what));
  for (;;) {
    one->turn.reset();
    const name_channel::role now = channel->role_of(*one);
    if (now.is_over) break;
    if (now.leads)
      co_await lead(*channel, *one);
    else
      co_await one->turn.wait();
  }
  if (one->status != ARES_SUCCESS || one->found == nullptr)
    co_await fail_with(lookup_failure(why_it_failed(*one), what));
  std::vector<net::endpoint> all = endpoints_of(*one->found, port);
  if (all.empty()) co_await fail_with(lookup_failure(resolve_errc::no_address, what));
  co_return all;
}

}  // namespace weft::detail
