// Endpoints: addresses of sockets.
//
//     const w::net::endpoint here{"127.0.0.1", 7777};
//     const w::net::endpoint there = w::net::endpoint::parse("[::1]:80");
//
// Names of hosts are looked up by resolve(), in resolve.hpp.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <weft/detail/base/narrow.hpp>

namespace weft::net {

/// The address of a socket: an IPv4 address and a port; an IPv6 address with its scope, and a port; or a Unix socket of this
/// machine, by the path of its file, or by an abstract name, which is no file and vanishes with its socket.
///
/// Nothing here suspends.
class endpoint {
 public:
  endpoint() = default;  ///< 0.0.0.0:0
  /// From a numeric address: "127.0.0.1", "::1", "fe80::1%eth0" or "fe80::1%2". Throws error for any other text, and for an
  /// unknown interface.
  endpoint(std::string_view address, std::uint16_t port);
  /// From the path of a Unix socket, at most 107 bytes. Throws error: filename_too_long; invalid_argument if it is empty or
  /// contains a zero byte.
  static endpoint unix_path(std::string_view path);
  /// From the abstract name of a Unix socket, at most 107 bytes of any value. Throws error: filename_too_long; invalid_argument
  /// if it is empty.
  static endpoint unix_abstract(std::string_view name);
  /// From a text: "127.0.0.1:80", "[::1]:80", "[fe80::1%eth0]:80", "unix:/run/x" or "unix:@name". Throws error for any other.
  static endpoint parse(std::string_view text);

  bool is_v6() const noexcept { return kind_ == kind::v6; }  ///< whether it is an IPv6 address
  /// Whether it is a Unix socket: with a path, with an abstract name, or without a name.
  bool is_unix() const noexcept { return kind_ >= kind::path; }
  std::uint16_t port() const noexcept { return port_; }  ///< 0 for a Unix socket
  /// The numeric address, with its scope as a number. Of a Unix socket its path, or @ and its abstract name; empty if it has no
  /// name, as most clients.
  std::string address() const;
  /// The text that parse() takes; for a Unix socket without a name "unix:", which parse() refuses.
  std::string to_string() const;

  friend auto operator<=>(const endpoint&, const endpoint&) = default;

 private:
  friend union ip_address;
  friend struct system_address;
  enum class kind { v4, v6, path, abstract };
  endpoint(kind which, std::string_view name);
  detail::narrow<kind> kind_ = kind::v4;
  std::uint8_t size_ = 0;  // of a Unix socket's path or name
  std::uint16_t port_ = 0;
  std::uint32_t scope_ = 0;  // of an IPv6 address: the interface's number; 0: none
  // In the order of the network, IPv4 in the first four; or a path or name. Zeros behind it.
  std::array<std::uint8_t, 108> bytes_{};
};

}  // namespace weft::net
