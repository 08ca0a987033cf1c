// Lookups by c-ares: a channel, and what of a lookup the channel knows.
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
#pragma once

#define CARES_NO_DEPRECATED  // what newer versions have for the same, 1.18 has not
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

/// What a status of c-ares is to the program.
std::error_code code_of_status(int status) noexcept;
void expect_success(int status, const char* operation);

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
  std::error_code begin(lookup& one, const char* host, net::address_family family) noexcept;
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
    refused_ = {error, std::generic_category()};
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

}  // namespace weft::detail
