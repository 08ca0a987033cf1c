// What only Unix sockets do: they say who the peer is, and pass descriptors.
//
// Their streams and listeners are those of net.hpp, their datagrams those of datagram.hpp, by the endpoints
// endpoint::unix_path("/run/x") and endpoint::unix_abstract("x").
//
//     w::task<> serve_one(w::net::stream peer) {
//       if (w::net::credentials(peer).user != 0) co_return;
//       std::array<std::byte, 64> request;
//       auto got = co_await w::net::receive_descriptors(peer, request, 1);
//       if (!got.descriptors.empty()) handle(std::move(got.descriptors[0]));
//     }
#pragma once

#include <cstddef>
#include <new>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/datagram.hpp>
#include <weft/detail/base/config.hpp>
#include <weft/detail/io/descriptor.hpp>
#include <weft/detail/net/operation.hpp>
#include <weft/net.hpp>

namespace weft::net {

// ---- who the peer is ------------------------------------------------------------------------------------------------------

/// Who the peer of a Unix socket was when it connected, or began to listen, by the system's word. The process may have ended
/// since, and its id may be another one's by now.
struct peer_credentials {
  int process = 0;  ///< its id
  unsigned user = 0, group = 0;
};
/// Gives the credentials of a stream's peer. Does not suspend. Throws error, also where the stream is no Unix socket.
peer_credentials credentials(const stream& of);

// ---- descriptors ----------------------------------------------------------------------------------------------------------

/// A descriptor that its destructor closes.
class owned_descriptor {
 public:
  owned_descriptor() noexcept = default;  ///< owns none
  explicit owned_descriptor(int number) noexcept : number_{number} {}
  owned_descriptor(owned_descriptor&& other) noexcept : number_{other.release()} {}
  owned_descriptor& operator=(owned_descriptor&& other) noexcept {
    owned_descriptor old{std::move(*this)};
    number_ = other.release();
    return *this;
  }
  ~owned_descriptor() {
    if (number_ >= 0) close();
  }

  int number() const noexcept { return number_; }  ///< -1: none
  /// Gives the descriptor to the caller, who closes it; -1: there is none.
  [[nodiscard("the descriptor is nobody's then")]] int release() noexcept { return std::exchange(number_, -1); }

 private:
  void close() noexcept;
  int number_ = -1;
};

/// What receive_descriptors() gives: how many bytes came, and descriptors.
struct with_descriptors : received {
  /// In the order in which they were sent; close-on-exec. Whether one is non-blocking, sender and receiver share.
  std::vector<owned_descriptor> descriptors;
  /// Some are missing at the end: the peer has sent more than `most`, or this process may have no more descriptors.
  bool lost_descriptors = false;
};

/// How many descriptors the system passes at once.
inline constexpr std::size_t most_descriptors = 253;

}  // namespace weft::net

namespace weft::detail {

struct socket_access {
  static descriptor* of(const net::stream& from) noexcept { return from.at_; }
  static descriptor* of(const net::datagram& from) noexcept { return from.at_; }
};

tried try_send_descriptors(descriptor& to, std::span<const int> those, std::span<const std::byte> with) noexcept;
tried try_receive_descriptors(descriptor& from, std::span<std::byte> into, std::size_t most,
                              net::with_descriptors& what, bool keeps_pieces) noexcept;

struct sending_descriptors {
  using value_type = std::size_t;
  static constexpr const char* name = "send descriptors";
  static constexpr const char* if_taken = two_writers;
  static constexpr direction which() noexcept { return direction::out; }
  bool may_try() const noexcept { return at->may_try(which()); }
  tried attempt() const noexcept { return try_send_descriptors(*at, those, with); }
  static std::size_t give(const tried& sent) noexcept { return sent.size; }

  descriptor* at;
  std::span<const int> those;
  std::span<const std::byte> with;
};
struct sending_descriptors_by_datagram : sending_descriptors {
  static constexpr const char* if_taken = nullptr;
  static const net::endpoint* full() noexcept { return nullptr; }
};

struct receiving_descriptors {
  using value_type = net::with_descriptors;
  static constexpr const char* name = "receive descriptors";
  static constexpr const char* if_taken = reading::if_taken;
  static constexpr direction which() noexcept { return direction::in; }
  bool may_try() const noexcept { return at->may_try(which()); }
  tried attempt() noexcept { return try_receive_descriptors(*at, into, most, got, keeps_pieces); }
  net::with_descriptors give(const tried&) noexcept { return std::move(got); }

  descriptor* at;
  std::span<std::byte> into;
  std::size_t most;
  net::with_descriptors got{};
  bool keeps_pieces = false;
};
struct receiving_descriptors_by_datagram : receiving_descriptors {
  static constexpr const char* if_taken = nullptr;
};

inline void expect_sense(std::span<const int> those) noexcept {
  WEFT_EXPECTS(those.size() <= net::most_descriptors,
               "more descriptors were to be sent at once than the system passes");
}

}  // namespace weft::detail

namespace weft::net {

/// Sends duplicates of the descriptors `those`, which the caller keeps, together with a first part of `with`, at least one
/// byte. Gives the size of that part; send the rest by write().
///
/// Suspends  as write_some().
/// Cancel    a stopped call has sent nothing.
/// Fails     as write_some(); with bad_file_descriptor; with invalid_argument where `to` is no Unix socket; with ETOOMANYREFS
///           where the user has too many descriptors in transit. Nothing was sent then.
/// Misuse    an empty `with`, or more than most_descriptors, ends the program with a sentence. So do two tasks that write at
///           once.
[[nodiscard]] inline detail::operation<detail::sending_descriptors> send_descriptors(
    const stream& to, std::span<const int> those, std::span<const std::byte> with) noexcept {
  detail::expect_sense(those);
  WEFT_EXPECTS(!with.empty(), "descriptors were to be sent by a stream without a byte, with which they would go");
  return detail::sending_descriptors{detail::socket_access::of(to), those, with};
}
/// The same as one datagram to the socket's peer. `with` may be empty.
[[nodiscard]] inline detail::sending<detail::sending_descriptors_by_datagram> send_descriptors(
    const datagram& to, std::span<const int> those, std::span<const std::byte> with) noexcept {
  detail::expect_sense(those);
  return detail::sending_descriptors_by_datagram{{detail::socket_access::of(to), those, with}};
}

/// Reads as stream::read(), and takes up to `most` descriptors that were sent with those bytes: it stops behind the bytes that
/// they came with. A size of 0 is the end. Receive descriptors by this alone: read() closes those that come with its bytes.
///
/// Suspends  as read().
/// Cancel    a stopped call has taken nothing.
/// Fails     as read(); with not_enough_memory, before it has read anything.
/// Misuse    an empty `into`, or more than most_descriptors, end the program with a sentence.
[[nodiscard]] inline detail::operation<detail::receiving_descriptors> receive_descriptors(const stream& from,
                                                                                          std::span<std::byte> into,
                                                                                          std::size_t most) noexcept {
  WEFT_EXPECTS(!into.empty() && most <= most_descriptors,
               "descriptors were to be received from a stream without room for a byte, or more than the system passes");
  return detail::receiving_descriptors{.at = detail::socket_access::of(from), .into = into, .most = most};
}
/// The same for the next datagram.
[[nodiscard]] inline detail::operation<detail::receiving_descriptors_by_datagram> receive_descriptors(
    const datagram& from, std::span<std::byte> into, std::size_t most) noexcept {
  WEFT_EXPECTS(most <= most_descriptors, "more descriptors were to be received at once than the system passes");
  return detail::receiving_descriptors_by_datagram{
      {.at = detail::socket_access::of(from), .into = into, .most = most, .keeps_pieces = true}};
}

}  // namespace weft::net
