// Lookups by c-ares: a channel, and the state of a lookup that the channel uses.
//
// A channel is an ares_channel with its sockets, which are in an epoll set of the channel's own. So a waiter has to wait only for
// that set, whatever sockets c-ares opens and closes meanwhile, and for the next time-out. One of the lookups, the leader, waits
// for both; each other lookup waits for its event. (This is the leader/followers pattern.) Three operations set these events:
//
//   begin     a lookup starts its query. The first lookup leads. If the next time-out is now earlier, it sets the leader's event
//   process   the leader has c-ares read what came, and handle time-outs. It sets the events of lookups that have their answer
//   leave     a lookup is over, or was stopped. If it led, the oldest of the others leads now, and its event is set. The last one
//             has c-ares drop the queries that nobody waits for, and closes the set
//
// All three hold the channel's lock while they are in c-ares, which only one thread at a time may use. They set events after they
// have released the lock, since the lookup that waits may resume at once, inside set().
//
// c-ares can't cancel a single query. It keeps a stopped lookup alive, by a shared_ptr in the lookup itself, until it has an
// answer or has given up; its callback then finds that no task waits. A channel that has had a thousand lookups gets no more: so
// stopped lookups can't use up its 16-bit query ids, and its sockets do not keep one port for as long as some lookup is under
// way, by which an attacker could learn the port and forge answers.
//
// Time-outs go by the real clock, also in a test with a virtual clock: c-ares reads the system's clock, and so does the server.
#pragma once

#define CARES_NO_DEPRECATED  // 1.18 lacks the replacements of what newer versions deprecate
#include <ares.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <system_error>
#include <weft/clock.hpp>
#include <weft/event.hpp>

#include "net/name_query.hpp"

namespace weft::detail {

/// A status of c-ares as the error code that programs see.
std::error_code code_of_status(int status) noexcept;
void expect_success(int status, const char* operation);
/// Whether it is the system that lacked or forbade something: no server, and no network.
bool is_lack(std::error_code refused) noexcept;

class name_channel;

// A lookup that is under way. Its task shares it with c-ares, until c-ares has called back.
struct lookup : std::enable_shared_from_this<lookup> {
  explicit lookup(name_channel& of) noexcept : channel{of} {}
  lookup(const lookup&) = delete;
  ~lookup() {
    if (found != nullptr) ::ares_freeaddrinfo(found);
  }

  name_channel& channel;
  event turn;  // set when the lookup has its answer, or leads, or when the leader must look at the next time-out again

  // Guarded by the channel's lock; `status` and `found` are the task's alone once `is_over`.
  bool is_over = false;
  bool is_left = false;
  bool is_doubtful = false;  // one of its questions may have failed: by an answer, or for want of one
  int status = 0;
  ares_addrinfo* found = nullptr;
  std::error_code refused{};                // why no server could be used, if that is known
  std::error_code lacked{};                 // what the system lacked or forbade, perhaps for one of its questions
  lookup *next = nullptr, *prev = nullptr;  // in the list of those under way, oldest first
  std::shared_ptr<lookup> kept;             // c-ares' share of this lookup
  std::shared_ptr<lookup> next_over;        // in the channel's list of those whose event is still to be set
};

class name_channel {
 public:
  explicit name_channel(const name_query::channel_options& options);
  name_channel(const name_channel&) = delete;
  ~name_channel() { ::ares_destroy(ares_); }

  // Whether new lookups must use another channel.
  bool is_used_up() const noexcept {
    constexpr std::size_t most = 1'000;  // not fewer: to make a channel takes as long as some lookups
    const std::lock_guard guard{lock_};
    return begun_ >= most;
  }

  // After a begin() without error, leave() must be called.
  std::error_code begin(lookup& one, const char* host, net::address_family family) noexcept;
  void leave(lookup& one) noexcept;

  struct role {
    bool is_over, leads;
  };
  role role_of(const lookup& one) const noexcept {
    const std::lock_guard guard{lock_};
    return {one.is_over, leader_ == &one};
  }
  int set() const noexcept { return set_; }  // for the leader, which waits for it

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
  void fail_unwatched() noexcept;
  void expect_timeouts(clock::time_point now) noexcept { due_ = std::min(due_, next_timeout(now)); }
  clock::time_point next_timeout(clock::time_point now) const noexcept;

  // Callbacks of c-ares.
  static void called_back(void* its, int status, int timeouts, ares_addrinfo* found) noexcept;
  static void watch_socket(void* its, int number, int to_read, int to_write) noexcept;
  static int open(int family, int type, int protocol, void* its) noexcept;
  static int close(int number, void* its) noexcept;
  static int connect(int number, const sockaddr* to, ares_socklen_t size, void* its) noexcept;
  static ares_ssize_t receive(int number, void* into, std::size_t size, int flags, sockaddr* of, ares_socklen_t* length,
                              void* its) noexcept;
  static ares_ssize_t send(int number, const iovec* parts, int count, void* its) noexcept;
  static constexpr ares_socket_functions calls{
      .asocket = open, .aclose = close, .aconnect = connect, .arecvfrom = receive, .asendv = send};

  // Notes why a server can't be used, which c-ares does not report.
  int refuse(int error) noexcept {
    refused_ = {error, std::generic_category()};
    if (is_lack(refused_)) note_lack();
    errno = error;
    return -1;
  }
  void note_lack() noexcept;
  void note_doubt() noexcept;
  void look_at(std::span<const unsigned char> datagram) noexcept;
  // The place of a socket in `unwatched_`; for -1 a free place. Null: there is none.
  int* unwatched(int number) noexcept {
    const auto one = std::ranges::find(unwatched_, number);
    return one != unwatched_.end() ? &*one : nullptr;
  }

  mutable std::mutex lock_;  // guards the members below
  ares_channel ares_ = nullptr;
  int set_ = -1;
  lookup *first_ = nullptr, *last_ = nullptr, *leader_ = nullptr;
  lookup* begins_ = nullptr;  // whose questions c-ares asks right now for the first time
  std::size_t begun_ = 0, under_way_ = 0;
  std::size_t left_ = 0;          // lookups that were stopped, and that c-ares still has
  std::shared_ptr<lookup> over_;  // lookups that c-ares has called back, and whose event is still to be set
  // When the leader must look. Never later than the next time-out, but perhaps earlier: for a query that is answered by now.
  clock::time_point due_ = clock::time_point::max();
  // The error of the system or of a server in this call of c-ares. An error of an earlier call may be about another lookup.
  std::error_code refused_{};
  bool found_ = false;                                            // the last read got something
  std::array<int, 8> unwatched_{-1, -1, -1, -1, -1, -1, -1, -1};  // sockets that could not be added to the set
  int not_watched_ = 0;                                           // the error number with which that failed
};

}  // namespace weft::detail
