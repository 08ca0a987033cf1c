// Datagrams: UDP, and Unix sockets that keep what was sent in pieces.
//
//     w::task<> echo(const w::net::datagram& socket) {
//       std::array<std::byte, 2048> buffer;
//       for (;;) {
//         const w::net::received_from got = co_await socket.receive_from(buffer);
//         co_await socket.send_to(std::span{buffer}.first(got.size), got.from);
//       }
//     }
//
//     co_await echo(co_await w::net::bind(w::net::endpoint{"127.0.0.1", 7777}));
//
// As streams (net.hpp): an operation is tried at once, and where it can't go on, it waits until the socket is ready, so one
// that is stopped while it waits has had no effect. The system takes and gives whole datagrams. Some are lost on their way, or
// overtake others, as the network does that; on a Unix socket none.
//
// Several tasks may receive from one socket at once, and several send: each datagram is one's.
//
// Rejected: receives into buffers of a ring (multishot), which no operation can leave without an effect.
//
// Long because what operations do where they are awaited, or made cases, is in types that users' code is made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <weft/detail/base/config.hpp>
#include <weft/detail/io/descriptor.hpp>
#include <weft/detail/net/operation.hpp>
#include <weft/net.hpp>
#include <weft/task.hpp>

namespace weft::net {

// ---- what comes and goes --------------------------------------------------------------------------------------------------

/// What one receive has put into its buffer.
struct received {
  std::size_t size = 0;       ///< what is in the buffer; may be 0, as a datagram may be empty
  std::size_t full_size = 0;  ///< what was sent. The rest, which had no room, is lost
  /// Where set_merges_received() is on: several datagrams of one sender stand one behind the other, each of so many bytes but
  /// the last, which may have fewer. 0: it is one.
  std::size_t segment = 0;

  bool is_truncated() const noexcept { return full_size > size; }
};
struct received_from : received {
  endpoint from;  ///< of a Unix socket that has no name, one without a path; nobody can answer it
};

/// A buffer of a receive_batch(), and what has come into it.
struct incoming : received_from {
  std::span<std::byte> into;

  std::span<std::byte> bytes() const noexcept { return into.first(size); }
};

/// A datagram of a send_batch().
struct outgoing {
  std::span<const std::byte> data;
  endpoint to{};  ///< 0.0.0.0:0: the socket's peer
};

/// So many buffers of one size, in one piece of memory.
class incoming_buffers {
 public:
  /// Neither is 0. Throws std::bad_alloc.
  incoming_buffers(std::size_t count, std::size_t size)
      : bytes_{new std::byte[all_bytes(count, size)]}, all_{new incoming[count]}, count_{count} {
    for (std::size_t i = 0; i != count; ++i) all_[i].into = {bytes_.get() + i * size, size};
  }

  std::size_t size() const noexcept { return count_; }
  incoming& operator[](std::size_t index) const noexcept { return all_[index]; }
  incoming* begin() const noexcept { return all_.get(); }
  incoming* end() const noexcept { return all_.get() + count_; }
  operator std::span<incoming>() const noexcept { return {all_.get(), count_}; }  // NOLINT: stands for them

 private:
  static std::size_t all_bytes(std::size_t count, std::size_t size) {
    WEFT_EXPECTS(count != 0 && size != 0, "buffers for no datagrams, or of no bytes, were asked for");
    if (count > static_cast<std::size_t>(-1) / size) throw std::bad_array_new_length{};
    return count * size;
  }

  std::unique_ptr<std::byte[]> bytes_;
  std::unique_ptr<incoming[]> all_;
  std::size_t count_;
};

}  // namespace weft::net

// ---- what operations do ---------------------------------------------------------------------------------------------------

namespace weft::detail {

tried try_receive_datagram(descriptor& from, std::span<std::byte> into, net::received& what,
                           net::endpoint* sender) noexcept;
tried try_receive_batch(descriptor& from, std::span<net::incoming> into) noexcept;
/// `where`, if it is null: to the peer. To a Unix one, want of room is refused as EAGAIN, since nothing is reported of it.
tried try_send_datagram(descriptor& to, std::span<const std::byte> data, const net::endpoint* where) noexcept;
/// Gives how many bytes have gone: whole segments, but for the last.
tried try_send_segments(descriptor& to, std::span<const std::byte> data, std::size_t segment,
                        const net::endpoint* where) noexcept;
tried try_send_batch(descriptor& to, std::span<const net::outgoing> those) noexcept;

struct receiving_datagram {
  using value_type = net::received;
  static constexpr const char* name = "receive a datagram";
  static constexpr const char* if_taken = nullptr;
  static constexpr direction which() noexcept { return direction::in; }
  bool may_try() const noexcept { return at->may_try(which()); }
  tried attempt() noexcept { return try_receive_datagram(*at, into, got, nullptr); }
  net::received give(const tried&) const noexcept { return got; }

  descriptor* at;
  std::span<std::byte> into;
  net::received got{};
};

struct receiving_from {
  using value_type = net::received_from;
  static constexpr const char* name = "receive a datagram";
  static constexpr const char* if_taken = nullptr;
  static constexpr direction which() noexcept { return direction::in; }
  bool may_try() const noexcept { return at->may_try(which()); }
  tried attempt() noexcept { return try_receive_datagram(*at, into, got, &got.from); }
  const net::received_from& give(const tried&) const noexcept { return got; }

  descriptor* at;
  std::span<std::byte> into;
  net::received_from got{};
};

struct receiving_batch {
  using value_type = std::size_t;
  static constexpr const char* name = "receive datagrams";
  static constexpr const char* if_taken = nullptr;
  static constexpr direction which() noexcept { return direction::in; }
  bool may_try() const noexcept { return into.empty() || at->may_try(which()); }
  tried attempt() const noexcept { return into.empty() ? tried{} : try_receive_batch(*at, into); }
  static std::size_t give(const tried& got) noexcept { return got.size; }

  descriptor* at;
  std::span<net::incoming> into;
};

/// What waits until a Unix socket may send to `to`, of which it is not told: neither where that has no room, nor, for sure, where
/// its own buffer is full. After so many tries it waits longer for the next one.
task<> until_room_at(int from, net::endpoint to, unsigned tries);
/// What waits until a Unix socket may send to its peer. It is told when the peer has room, and when three quarters of its own
/// buffer are free; but of neither while another receiver has more than a quarter of that unread: then it waits a while only.
task<> until_room_at_peer(descriptor& from, unsigned tries);

// A send has another member: `full()`, the Unix receiver to which it was that has no room; null: it can't be one. To one it
// always tries: the socket's readiness says whether its peer has room.

struct sending_datagram {
  using value_type = void;
  static constexpr const char* name = "send a datagram";
  static constexpr const char* if_taken = nullptr;
  static constexpr direction which() noexcept { return direction::out; }
  bool may_try() const noexcept { return at->may_try(which()); }
  tried attempt() const noexcept { return try_send_datagram(*at, data, nullptr); }
  static void give(const tried&) noexcept {}
  static const net::endpoint* full() noexcept { return nullptr; }

  descriptor* at;
  std::span<const std::byte> data;
};

struct sending_to {
  using value_type = void;
  static constexpr const char* name = "send a datagram";
  static constexpr const char* if_taken = nullptr;
  static constexpr direction which() noexcept { return direction::out; }
  bool may_try() const noexcept { return full() != nullptr || at->may_try(which()); }
  tried attempt() const noexcept { return try_send_datagram(*at, data, &to); }
  static void give(const tried&) noexcept {}
  const net::endpoint* full() const noexcept { return to.is_unix() ? &to : nullptr; }

  descriptor* at;
  std::span<const std::byte> data;
  net::endpoint to;
};

struct sending_segments {
  using value_type = std::size_t;
  static constexpr const char* name = "send datagrams";
  static constexpr const char* if_taken = nullptr;
  static constexpr direction which() noexcept { return direction::out; }
  bool may_try() const noexcept { return data.empty() || full() != nullptr || at->may_try(which()); }
  tried attempt() const noexcept {
    return data.empty() ? tried{} : try_send_segments(*at, data, segment, has_target ? &to : nullptr);
  }
  static std::size_t give(const tried& sent) noexcept { return sent.size; }
  const net::endpoint* full() const noexcept { return has_target && to.is_unix() ? &to : nullptr; }

  descriptor* at;
  std::span<const std::byte> data;
  std::size_t segment;
  net::endpoint to{};
  bool has_target = false;
};

struct sending_batch {
  using value_type = std::size_t;
  static constexpr const char* name = "send datagrams";
  static constexpr const char* if_taken = nullptr;
  static constexpr direction which() noexcept { return direction::out; }
  bool may_try() const noexcept { return those.empty() || full() != nullptr || at->may_try(which()); }
  tried attempt() const noexcept { return those.empty() ? tried{} : try_send_batch(*at, those); }
  static std::size_t give(const tried& sent) noexcept { return sent.size; }
  const net::endpoint* full() const noexcept {
    return !those.empty() && those.front().to.is_unix() ? &those.front().to : nullptr;
  }

  descriptor* at;
  std::span<const net::outgoing> those;
};

/// To a Unix socket that is not the sender's peer.
template <class Act>
task<typename Act::value_type> send_to_unix(Act act) {
  const descriptor_use use{act.at};  // its number stays while this waits for another one
  for (unsigned tries = 0;; ++tries) {
    auto one = run_operation(act);
    auto how = co_await as_result(std::move(one));
    if (how.is_stopped()) {
      co_await check_stop();
      continue;
    }
    if (how.has_value()) {
      if constexpr (std::is_void_v<typename Act::value_type>)
        co_return;
      else
        co_return *how;
    }
    if (how.error() != std::errc::resource_unavailable_try_again) co_await fail_with(how.exception());
    co_await until_room_at(act.at->number(), *act.full(), tries);
  }
}

/// To the peer of a Unix socket. As run_operation(), but that it tries now and then, whatever was reported.
template <class Act>
task<typename Act::value_type> send_to_unix_peer(Act act) {
  const descriptor_use use{act.at};
  if (!use) co_await fail_with(failure_of(closed_here(), Act::name));
  co_await check_stop();
  if (has_had_its_turn()) co_await yield();
  for (unsigned tries = 0;; ++tries) {
    if (const tried got = act.attempt(); !got.must_wait) {
      if (got.refused) co_await fail_with(failure_of(got.refused, Act::name));
      co_return act.give(got);
    }
    co_await until_room_at_peer(*act.at, tries);
    if (act.at->is_closed()) co_await fail_with(failure_of(closed_here(), Act::name));
  }
}

/// What a send returns.
template <class Act>
class [[nodiscard("nothing happens until it is awaited")]] sending
    : public task_inside<sending<Act>, typename Act::value_type> {
 public:
  using value_type = typename Act::value_type;
  using may_be_a_case = void;
  sending(Act act) noexcept : act_(std::move(act)) {}

  WEFT_COROUTINE_WRAPPER task<value_type> as_task() && {
    if (act_.full() != nullptr) return send_to_unix<Act>(std::move(act_));
    if (act_.at != nullptr && act_.at->is_unix()) return send_to_unix_peer<Act>(std::move(act_));
    return run_operation<Act>(std::move(act_));
  }
  operation_case<Act> as_case() && { return operation_case<Act>{std::move(act_)}; }

 private:
  Act act_;
};

}  // namespace weft::detail

// ---- sockets --------------------------------------------------------------------------------------------------------------

namespace weft::net {

struct datagram_options {
  bool reuse_address =
      false;  ///< several sockets may have one address, as for multicast: each datagram comes to one, or all
  bool reuse_port = false;     ///< several sockets share the port, and the system spreads senders
  bool only_v6 = false;        ///< of an IPv6 address: takes nothing from IPv4
  bool replace_stale = false;  ///< of a Unix path: removes a socket there that nobody has, as a crash leaves it
};

/// A socket for datagrams, of UDP or of Unix.
///
/// Threads   any, but for moves, destruction and release(), which are for when nothing else goes on. close() may come while an
///           operation waits, which ends with the error `closed`.
/// Lifetime  as of a stream.
class datagram {
 public:
  /// None: every operation fails with `closed`.
  datagram() noexcept = default;
  datagram(datagram&& other) noexcept
      : at_{std::exchange(other.at_, nullptr)}, file_{std::exchange(other.file_, nullptr)} {}
  datagram& operator=(datagram&& other) noexcept {
    datagram old{std::move(*this)};
    at_ = std::exchange(other.at_, nullptr);
    file_ = std::exchange(other.file_, nullptr);
    return *this;
  }
  ~datagram() {
    if (at_ == nullptr) return;
    remove_file(true);
    at_->drop();
  }

  /// Takes over a socket for datagrams, which becomes non-blocking and close-on-exec. Throws error, wrong_protocol_type if it is
  /// another kind of socket, and address_family_not_supported if it is neither of IP nor of Unix; then it is the caller's still.
  static datagram adopt(int number);

  /// The next datagram, of which `into` holds as much as there is room for. Of a connected socket, from its peer alone.
  ///
  /// Suspends  only where none has come, and after 128 operations in a row that did not.
  /// Cancel    has had no effect.
  /// Fails     with an error of the system's; `closed` where this was closed here. Of a connected UDP socket, with
  ///           connection_refused, once, where its peer's system has said that nobody receives there, which may be about what
  ///           was sent long before.
  /// Cost      one system call where one has come, and one that finds nothing before each wait.
  detail::operation<detail::receiving_datagram> receive(std::span<std::byte> into) const noexcept {
    return {{.at = at_, .into = into}};
  }
  /// The same, and who has sent it.
  detail::operation<detail::receiving_from> receive_from(std::span<std::byte> into) const noexcept {
    return {{.at = at_, .into = into}};
  }
  /// As many as have come: at least one, and at most 16, or as there are buffers. Gives how many. The first of `into` are filled,
  /// in the order in which they came. Otherwise as receive_from().
  ///
  /// Cost  one system call, for up to 16 of them, and none that finds nothing.
  detail::operation<detail::receiving_batch> receive_batch(std::span<incoming> into) const noexcept {
    return {{.at = at_, .into = into}};
  }

  /// Sends one to the peer: the system has all of it then, or none.
  ///
  /// Suspends  only where the socket's buffer is full; on a Unix socket, where the receiver has no room. There it also tries now
  /// and then, since the system reports no room while others have more than a quarter of the buffer unread; as a case of a
  /// select it goes by what is reported.
  /// Cancel    has had no effect.
  /// Fails     with an error of the system's, and has sent nothing: message_size, where it is too long for a datagram;
  ///           destination_address_required, where there is no peer; no_buffer_space; and connection_refused, as receive().
  detail::sending<detail::sending_datagram> send(std::span<const std::byte> data) const noexcept {
    return detail::sending_datagram{at_, data};
  }
  detail::sending<detail::sending_datagram> send(std::string_view text) const noexcept {
    return send(std::as_bytes(std::span{text}));
  }
  /// The same to whomever.
  ///
  /// Suspends  on a Unix socket by a socket more, where the receiver has no room, since the system tells nobody else when it
  ///           has; close() is noticed only behind that. Where its own buffer is full it tries now and then, too. As a case of a
  ///           select it fails with resource_unavailable_try_again in both.
  detail::sending<detail::sending_to> send_to(std::span<const std::byte> data, const endpoint& to) const noexcept {
    return detail::sending_to{at_, data, to};
  }
  detail::sending<detail::sending_to> send_to(std::string_view text, const endpoint& to) const noexcept {
    return send_to(std::as_bytes(std::span{text}), to);
  }

  /// Sends datagrams of `segment` bytes each, and the last of what is left: some of them, at least one. Gives how many bytes
  /// those had, so that the rest can be sent by another call. By one system call for 64 at most, where the system can cut them
  /// (GSO), and by one for 16 otherwise.
  ///
  /// Fails    as send(), before any was sent.
  /// Misuse   a segment of no bytes ends the program with a sentence.
  detail::sending<detail::sending_segments> send_segments(std::span<const std::byte> data,
                                                          std::size_t segment) const noexcept {
    WEFT_EXPECTS(segment != 0, "datagrams of no bytes each were to be sent: there would be no end of them");
    return detail::sending_segments{.at = at_, .data = data, .segment = segment};
  }
  /// The same to whomever.
  detail::sending<detail::sending_segments> send_segments_to(std::span<const std::byte> data, std::size_t segment,
                                                             const endpoint& to) const noexcept {
    WEFT_EXPECTS(segment != 0, "datagrams of no bytes each were to be sent: there would be no end of them");
    return detail::sending_segments{.at = at_, .data = data, .segment = segment, .to = to, .has_target = true};
  }

  /// Sends the first of them, in order, as many as there is room for, at least one, and at most 16. Gives how many.
  ///
  /// Fails  as send(), with what the first one met. One behind it that can't be sent is the first of the next call.
  /// Cost   one system call.
  detail::sending<detail::sending_batch> send_batch(std::span<const outgoing> those) const noexcept {
    return detail::sending_batch{at_, those};
  }

  /// From now on, to the peer and from it alone; again, to another one. What had come before from others may still be there.
  /// Does not wait. Throws error.
  void connect(const endpoint& peer) const;
  /// Has no peer from now on; and another port, if the system had chosen it. Throws error.
  void disconnect() const;

  /// As of a stream. A Unix path, which bind() has made, is removed, as of a listener.
  void close() noexcept {
    if (at_ == nullptr) return;
    remove_file(false);
    at_->close();
  }
  bool is_open() const noexcept { return at_ != nullptr && !at_->is_closed(); }
  /// Gives its descriptor to the caller; where nothing waits. A Unix path stays.
  [[nodiscard("the descriptor is nobody's then")]] int release() noexcept;
  int native_handle() const noexcept { return at_ != nullptr ? at_->shown_number() : -1; }

  endpoint local() const;  ///< throws error
  endpoint peer() const;   ///< throws error, not_connected where there is none

  // ---- options; all throw error

  /// In bytes, as the system takes them: Linux doubles it, and allows no more than net.core.rmem_max. What has no room is lost.
  void set_receive_buffer(int bytes) const;
  void set_send_buffer(int bytes) const;
  /// Whether it may send to a broadcast address, such as 192.168.0.255.
  void set_broadcast(bool on) const;
  // Of an IPv6 socket that takes IPv4, too, those about hops, service and groups hold for both.

  /// Over how many routers its datagrams may go; what is sent to a group, by default, over none.
  void set_time_to_live(int hops) const;
  /// The type of service of what is sent (IPv6: traffic class), of which the lowest two bits are ECN.
  void set_type_of_service(int value) const;
  /// Whether the system puts several datagrams of one sender into one receive, see received::segment (GRO). Needs a buffer for
  /// them: up to 64 KiB. False: this system can't, and they come one by one.
  bool set_merges_received(bool on) const;

  /// Receives what is sent to the group `group`, of which the port counts for nothing, on an interface, by its name or number;
  /// empty: the one that the system chooses.
  void join(const endpoint& group, std::string_view interface = {}) const;
  void leave(const endpoint& group, std::string_view interface = {}) const;
  /// By which interface it sends to groups.
  void set_multicast_interface(std::string_view interface) const;
  /// Whether sockets of this machine receive what it sends to groups. They do, unless it is turned off.
  void set_multicast_loopback(bool on) const;
  /// Over how many routers what it sends to groups may go, but one: 1, unless it is set. 0: it stays in this machine.
  void set_multicast_time_to_live(int hops) const;

 private:
  friend detail::socket_access;
  friend task<datagram> bind(datagram_options options, endpoint where);
  friend task<datagram> connect_datagram(endpoint to);
  explicit datagram(detail::descriptor& at, detail::socket_file* file = nullptr) noexcept : at_{&at}, file_{file} {}
  void remove_file(bool is_last) noexcept;

  detail::descriptor* at_ = nullptr;
  detail::socket_file* file_ = nullptr;  // of a Unix path
};

/// A socket at `where`; port 0: the system chooses one. Does not suspend.
///
/// Fails   with an error of the system's: address_in_use, permission_denied, ...
/// Misuse  with .replace_stale, as listen().
task<datagram> bind(datagram_options options, endpoint where);
WEFT_COROUTINE_WRAPPER inline task<datagram> bind(endpoint where) { return bind({}, where); }

/// A socket whose peer is `to`. By UDP the system chooses its port; on a Unix socket it has no name, so nobody can answer it.
/// Does not suspend: nobody is asked.
///
/// Fails  with an error of the system's: network_unreachable; on a Unix socket connection_refused, ...
task<datagram> connect_datagram(endpoint to);

}  // namespace weft::net
