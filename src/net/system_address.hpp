// An endpoint as the system's calls take it.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <weft/net.hpp>

namespace weft::net {

struct system_address {
  system_address() noexcept : storage{} {}
  explicit system_address(const endpoint& of) noexcept;
  /// Throws error for a family that an endpoint has not.
  endpoint to_endpoint() const;
  /// That address with another port; nothing, where it is of another family.
  static std::optional<endpoint> of(const sockaddr* address, std::size_t size, std::uint16_t port) noexcept;

  union {
    sockaddr_storage storage{};
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
  };
  socklen_t size = sizeof storage;
};

}  // namespace weft::net
