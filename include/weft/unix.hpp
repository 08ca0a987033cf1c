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

/// Who has connected, or listens: at that moment, and as the system says it. The process may have ended since, and its number
/// be another one's.
struct peer_credentials {
  int process = 0;
  unsigned user = 0, group = 0;
};
/// Of a stream's peer. Throws error, also for what is no Unix socket.
peer_credentials credentials(const stream& of);

// ---- descriptors ----------------------------------------------------------------------------------------------------------

/// A descriptor that is closed when this goes.
class owned_descriptor {
 public:
  owned_descriptor() noexcept = default;  ///< none
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
  /// Gives the descriptor up, to be closed by the caller; -1: there is none.
  [[nodiscard("the descriptor is nobody's then")]] int release() noexcept { return std::exchange(number_, -1); }

 private:
  void close() noexcept;
  int number_ = -1;
};

/// What came with descriptors.
struct with_descriptors : received {
  /// In the order in which they were sent; close-on-exec, and as non-blocking as the sender has them.
  std::vector<owned_descriptor> descriptors;
  /// The peer had sent more than were asked for, or this process has no more numbers: the last ones are lost.
  bool lost_descriptors = false;
};

/// How many can be sent at once.
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

/// Sends copies of descriptors, which stay the caller's, and with them some of `with`, at least a byte: how many. What is left
/// is sent by write().
///
/// Suspends  as write_some().
/// Cancel    has had no effect.
/// Fails     as write_some(), and has sent nothing: bad_file_descriptor; invalid_argument, where it is no Unix socket;
///           ETOOMANYREFS, where the user has too many on their way.
/// Misuse    no byte, or more than most_descriptors, end the program with a sentence. So do two tasks that write at once.
[[nodiscard]] inline detail::operation<detail::sending_descriptors> send_descriptors(
    const stream& to, std::span<const int> those, std::span<const std::byte> with) noexcept {
  detail::expect_sense(those);
  WEFT_EXPECTS(!with.empty(), "descriptors were to be sent by a stream without a byte, with which they would go");
  return detail::sending_descriptors{detail::socket_access::of(to), those, with};
}
/// The same as one datagram to the peer, which may be empty.
[[nodiscard]] inline detail::sending<detail::sending_descriptors_by_datagram> send_descriptors(
    const datagram& to, std::span<const int> those, std::span<const std::byte> with) noexcept {
  detail::expect_sense(those);
  return detail::sending_descriptors_by_datagram{{detail::socket_access::of(to), those, with}};
}

/// Reads as stream::read(), and takes up to `most` descriptors that came with those bytes: it ends behind the bytes with which
/// they were sent. A size of 0 is the end. A read() takes none: what was sent with its bytes is closed.
///
/// Suspends  as read().
/// Cancel    has had no effect: they come with the next one.
/// Fails     as read(), and with not_enough_memory, before it has read anything.
/// Misuse    an empty `into`, or more than most_descriptors, end the program with a sentence.
[[nodiscard]] inline detail::operation<detail::receiving_descriptors> receive_descriptors(const stream& from,
                                                                                          std::span<std::byte> into,
                                                                                          std::size_t most) noexcept {
  WEFT_EXPECTS(!into.empty() && most <= most_descriptors,
               "descriptors were to be received from a stream without room for a byte, or more than the system passes");
  return detail::receiving_descriptors{.at = detail::socket_access::of(from), .into = into, .most = most};
}
/// The same of the next datagram.
[[nodiscard]] inline detail::operation<detail::receiving_descriptors_by_datagram> receive_descriptors(
    const datagram& from, std::span<std::byte> into, std::size_t most) noexcept {
  WEFT_EXPECTS(most <= most_descriptors, "more descriptors were to be received at once than the system passes");
  return detail::receiving_descriptors_by_datagram{
      {.at = detail::socket_access::of(from), .into = into, .most = most, .keeps_pieces = true}};
}

}  // namespace weft::net
