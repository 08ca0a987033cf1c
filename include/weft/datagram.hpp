// Datagrams: by UDP, and by Unix sockets.
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
// As in net.hpp, an operation is tried at once, and where it would block, it waits until the socket is ready: one that is
// stopped while it waits has had no effect. The system sends and receives whole datagrams. The network may lose or reorder
// them; a Unix socket does not.
//
// Several tasks may receive from one socket at once, and several may send: each datagram goes to one of them.
//
// Buffers, and what a receive gives, are in datagram_buffers.hpp.
//
// Rejected: receives into buffers of an io_uring (multishot): a receive that is stopped could not be without effect.
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

/// How a datagram socket is made.
struct datagram_options {
  /// Several sockets may have the same address (SO_REUSEADDR). A datagram to one receiver goes to one of them, one to a
  /// multicast group to all.
  bool reuse_address = false;
  bool reuse_port = false;  ///< several sockets share the port, and the system spreads senders over them (SO_REUSEPORT)
  bool only_v6 = false;     ///< of an IPv6 address: receives nothing from IPv4
  bool replace_stale = false;  ///< of a Unix path: removes a socket there that nobody has open, as a crash leaves it
};

/// A datagram socket, UDP or Unix. Any number of tasks may send and receive at once.
///
/// Threads   any thread may call it, but move, destroy or release it only while no other thread uses it. close() may be called
///           while an operation waits, which then fails with errc::closed.
/// Lifetime  as of a stream.
class datagram {
 public:
  /// Makes a `datagram` without a socket: every operation fails with errc::closed.
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

  /// Takes over a datagram socket, which becomes non-blocking and close-on-exec. Throws error: wrong_protocol_type for another
  /// kind of socket, address_family_not_supported for one that is neither IP nor Unix. The socket is then still the caller's.
  static datagram adopt(int number);

  /// Receives the next datagram into `into`; what does not fit is lost. A connected socket receives from its peer alone.
  ///
  /// Suspends  where no datagram has arrived, and after 128 operations in a row that did not suspend.
  /// Cancel    a stopped call has taken nothing.
  /// Fails     with the system's error; with errc::closed after close(). Of a connected UDP socket, once with
  ///           connection_refused after the peer's system has reported that nobody receives there; that report may be about a
  ///           datagram sent long before.
  /// Cost      one system call for a datagram that has arrived, and one in vain before each wait.
  detail::operation<detail::receiving_datagram> receive(std::span<std::byte> into) const noexcept {
    return {{.at = at_, .into = into}};
  }
  /// The same, and gives who has sent it.
  detail::operation<detail::receiving_from> receive_from(std::span<std::byte> into) const noexcept {
    return {{.at = at_, .into = into}};
  }
  /// Receives the datagrams that have arrived: at least one, at most 16, and at most as many as there are buffers. They are put
  /// into the first buffers of `into`, in the order of arrival. Gives how many they are. Otherwise as receive_from().
  ///
  /// Cost  one system call for all of them, and none in vain.
  detail::operation<detail::receiving_batch> receive_batch(std::span<incoming> into) const noexcept {
    return {{.at = at_, .into = into}};
  }

  /// Sends `data` as one datagram to the socket's peer: all of it or nothing.
  ///
  /// Suspends  where the socket's buffer is full; of a Unix socket, where the receiver's is. There it also tries again at
  ///           intervals, since the system reports room only once three quarters of the buffer are free. As a case of a select
  ///           it waits for that report.
  /// Cancel    a stopped call has sent nothing.
  /// Fails     with the system's error, and has sent nothing: message_size where `data` is too long for a datagram;
  ///           destination_address_required where there is no peer; no_buffer_space; connection_refused, as receive().
  detail::sending<detail::sending_datagram> send(std::span<const std::byte> data) const noexcept {
    return detail::sending_datagram{at_, data};
  }
  detail::sending<detail::sending_datagram> send(std::string_view text) const noexcept {
    return send(std::as_bytes(std::span{text}));
  }
  /// The same to the address `to`.
  ///
  /// Suspends  as send(). Of a Unix socket whose receiver has no room it waits by a second socket that is connected to the
  ///           receiver, since the system reports room to nobody else; it notices close() only after that wait. As a case of a
  ///           select it fails with resource_unavailable_try_again instead of waiting there.
  detail::sending<detail::sending_to> send_to(std::span<const std::byte> data, const endpoint& to) const noexcept {
    return detail::sending_to{at_, data, to};
  }
  detail::sending<detail::sending_to> send_to(std::string_view text, const endpoint& to) const noexcept {
    return send_to(std::as_bytes(std::span{text}), to);
  }

  /// Cuts `data` into datagrams of `segment` bytes each (the last may have fewer), and sends the first of them, at least one.
  /// Gives how many bytes it has sent, so that the next call can go on there.
  ///
  /// Fails    as send(), before it has sent any.
  /// Cost     one system call for up to 64 datagrams where the system can cut them (GSO), otherwise for up to 16.
  /// Misuse   a segment of no bytes ends the program with a sentence.
  detail::sending<detail::sending_segments> send_segments(std::span<const std::byte> data,
                                                          std::size_t segment) const noexcept {
    WEFT_EXPECTS(segment != 0, "datagrams of no bytes each were to be sent: there would be no end of them");
    return detail::sending_segments{.at = at_, .data = data, .segment = segment};
  }
  /// The same to the address `to`.
  detail::sending<detail::sending_segments> send_segments_to(std::span<const std::byte> data, std::size_t segment,
                                                             const endpoint& to) const noexcept {
    WEFT_EXPECTS(segment != 0, "datagrams of no bytes each were to be sent: there would be no end of them");
    return detail::sending_segments{.at = at_, .data = data, .segment = segment, .to = to, .has_target = true};
  }

  /// Sends the first datagrams of `those`, in order: at least one, at most 16, and as many as there is room for. Gives how
  /// many.
  ///
  /// Fails  as send(), with the error of the first datagram. The error of a later one comes with the next call, which begins
  ///        with it.
  /// Cost   one system call.
  detail::sending<detail::sending_batch> send_batch(std::span<const outgoing> those) const noexcept {
    return detail::sending_batch{at_, those};
  }

  /// Gives the socket a peer, or another one: it then sends to that, and receives from it alone. Datagrams of others that
  /// arrived before may still be received. Does not suspend. Throws error.
  void connect(const endpoint& peer) const;
  /// Takes the peer away. A port that the system had chosen changes. Does not suspend. Throws error.
  void disconnect() const;

  /// Closes the socket, as stream::close(); removes the socket file that bind() has made, as a listener does.
  void close() noexcept {
    if (at_ == nullptr) return;
    remove_file(false);
    at_->close();
  }
  bool is_open() const noexcept { return at_ != nullptr && !at_->is_closed(); }
  /// Gives its descriptor to the caller, who closes it. Only while nothing waits for it. Keeps a socket file.
  [[nodiscard("the descriptor is nobody's then")]] int release() noexcept;
  int native_handle() const noexcept { return at_ != nullptr ? at_->shown_number() : -1; }

  endpoint local() const;  ///< its own address; throws error
  endpoint peer() const;   ///< the peer's address; throws error, not_connected where there is none

  // ---- options; none suspends, and all throw error

  /// Sets the size of the system's buffer, in bytes, of which Linux makes twice as many, and at most twice net.core.rmem_max.
  /// Datagrams that find it full are lost.
  void set_receive_buffer(int bytes) const;
  /// The same for what is sent.
  void set_send_buffer(int bytes) const;
  /// Whether it may send to a broadcast address, such as 192.168.0.255.
  void set_broadcast(bool on) const;
  // An IPv6 socket that also takes IPv4 applies the following to both.

  /// Sets the time to live (IPv6: hop limit) of what it sends to single receivers. Each router subtracts one, and drops the
  /// datagram at 0.
  void set_time_to_live(int hops) const;
  /// Sets the type of service (IPv6: traffic class) of what is sent. Its lowest two bits are ECN.
  void set_type_of_service(int value) const;
  /// Whether one receive may give several datagrams of one sender (GRO): see received::segment. It then needs a buffer of up to
  /// 64 KiB. Gives false where the system can't do that; each receive then gives one datagram.
  bool set_merges_received(bool on) const;

  /// Receives what is sent to a multicast group, whose port is ignored, on an interface, given by name or number; empty: one
  /// that the system chooses.
  void join(const endpoint& group, std::string_view interface = {}) const;
  /// Undoes join().
  void leave(const endpoint& group, std::string_view interface = {}) const;
  /// Sets the interface by which it sends to groups.
  void set_multicast_interface(std::string_view interface) const;
  /// Whether sockets on this machine receive what it sends to groups. By default they do.
  void set_multicast_loopback(bool on) const;
  /// Sets the time to live (IPv6: hop limit) of what it sends to groups: by default 1, which no router passes on. 0: it does
  /// not leave this machine.
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

/// Makes a socket that receives at the address `where`; for port 0 the system chooses one. Does not suspend.
///
/// Fails   with the system's error: address_in_use, permission_denied, ...
/// Misuse  with .replace_stale, as listen().
task<datagram> bind(datagram_options options, endpoint where);
WEFT_COROUTINE_WRAPPER inline task<datagram> bind(endpoint where) { return bind({}, where); }

/// Makes a socket whose peer is `to`. Of a UDP socket the system chooses the port; a Unix socket has no name, so nobody can
/// answer it. Does not suspend, since nothing is sent.
///
/// Fails  with the system's error: network_unreachable; of a Unix socket also connection_refused.
task<datagram> connect_datagram(endpoint to);

}  // namespace weft::net
