// An endpoint as the sockaddr that system calls take.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <optional>
#include <weft/endpoint.hpp>

namespace weft::net {

/// An IP address alone: smaller than a system_address, for objects of which there are many.
union ip_address {
  sockaddr any{};
  sockaddr_in v4;
  sockaddr_in6 v6;

  bool is_one() const noexcept { return any.sa_family == AF_INET || any.sa_family == AF_INET6; }
  /// 0.0.0.0:0 if it is no IP address.
  endpoint to_endpoint() const noexcept;
};

struct system_address {
  system_address() noexcept : storage{} {}
  explicit system_address(const endpoint& of) noexcept;
  /// Throws error for a family that an endpoint can't hold.
  endpoint to_endpoint() const;
  /// That IP address with another port; nothing if it is of another family.
  static std::optional<endpoint> of(const sockaddr* address, std::size_t size, std::uint16_t port) noexcept;

  union {
    sockaddr_storage storage{};
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
    sockaddr_un local;
  };
  socklen_t size = sizeof storage;
};

}  // namespace weft::net
