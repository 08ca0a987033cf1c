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
// What is received and sent, with buffers for many, is in datagram_buffers.hpp.
//
// Rejected: receives into buffers of a ring (multishot), which no operation can leave without an effect.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <weft/datagram_buffers.hpp>
#include <weft/detail/base/config.hpp>
#include <weft/detail/io/descriptor.hpp>
#include <weft/detail/net/datagram_operation.hpp>
#include <weft/detail/net/operation.hpp>
#include <weft/net.hpp>
#include <weft/task.hpp>

namespace weft::net {

/// How a socket for datagrams is made, before it is bound or connected.
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
  /// and then, since the system reports no room while others have a quarter of the buffer unread; as a case of a
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
