// Endpoints: where a socket is.
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

namespace weft::net {

/// Where a socket is: an address and a port, of IPv4, or of IPv6 with its scope; or a Unix socket of this machine, by the path
/// of its file or by an abstract name, which is no file and goes with its socket.
class endpoint {
 public:
  endpoint() = default;  ///< 0.0.0.0:0
  /// `address` in numbers: "127.0.0.1", "::1", "fe80::1%eth0" or "fe80::1%2". Throws error where it is none, or the
  /// interface is not known.
  endpoint(std::string_view address, std::uint16_t port);
  /// Of 107 bytes at most. Throws error: filename_too_long; invalid_argument where it is empty, or has a zero in it.
  static endpoint unix_path(std::string_view path);
  /// Of 107 bytes at most, of any value. Throws error: filename_too_long; invalid_argument where it is empty.
  static endpoint unix_abstract(std::string_view name);
  /// "127.0.0.1:80", "[::1]:80", "[fe80::1%eth0]:80", "unix:/run/x", "unix:@name". Throws error.
  static endpoint parse(std::string_view text);

  bool is_v6() const noexcept { return kind_ == kind::v6; }  ///< an address of IPv6
  /// Whether it is of a Unix socket: with a path, with an abstract name, or with neither.
  bool is_unix() const noexcept { return kind_ >= kind::path; }
  std::uint16_t port() const noexcept { return port_; }  ///< 0 of a Unix socket
  /// The address in numbers, with its scope as a number. Of a Unix socket its path, or @ and its abstract name; empty where it
  /// has neither, as most clients.
  std::string address() const;
  /// As parse() takes it; of a Unix socket that has no name "unix:", which it refuses.
  std::string to_string() const;

  friend auto operator<=>(const endpoint&, const endpoint&) = default;

 private:
  friend union ip_address;
  friend struct system_address;
  enum class kind : std::uint8_t { v4, v6, path, abstract };
  endpoint(kind which, std::string_view name);
  kind kind_ = kind::v4;
  std::uint8_t size_ = 0;  // of a Unix socket's path or name
  std::uint16_t port_ = 0;
  std::uint32_t scope_ = 0;  // of an IPv6 address: the interface's number; 0: none
  // In the order of the network, IPv4 in the first four; or a path or name. Zeros behind it.
  std::array<std::uint8_t, 108> bytes_{};
};

}  // namespace weft::net
