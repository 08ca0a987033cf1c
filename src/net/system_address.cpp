#include "net/system_address.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <weft/error.hpp>

namespace weft::net {

system_address::system_address(const endpoint& of) noexcept {
  switch (of.kind_) {
    case endpoint::kind::v4:
      v4.sin_family = AF_INET;
      v4.sin_port = htons(of.port_);
      std::memcpy(&v4.sin_addr, of.bytes_.data(), sizeof v4.sin_addr);
      size = sizeof v4;
      break;
    case endpoint::kind::v6:
      v6.sin6_family = AF_INET6;
      v6.sin6_port = htons(of.port_);
      v6.sin6_scope_id = of.scope_;
      std::memcpy(&v6.sin6_addr, of.bytes_.data(), sizeof v6.sin6_addr);
      size = sizeof v6;
      break;
    case endpoint::kind::path:
    case endpoint::kind::abstract: {
      // An abstract name comes after a NUL, and `size` tells its end; a path is followed by a NUL.
      const bool is_abstract = of.kind_ == endpoint::kind::abstract;
      local.sun_family = AF_UNIX;
      std::memcpy(local.sun_path + (is_abstract ? 1 : 0), of.bytes_.data(), of.size_);
      // A path that another process has bound may fill sun_path, without a NUL.
      size = std::min<socklen_t>(offsetof(sockaddr_un, sun_path) + of.size_ + (of.size_ != 0 ? 1U : 0U), sizeof local);
      break;
    }
  }
}

endpoint ip_address::to_endpoint() const noexcept {
  endpoint it;
  if (any.sa_family == AF_INET6) {
    it.kind_ = endpoint::kind::v6;
    it.port_ = ntohs(v6.sin6_port);
    it.scope_ = v6.sin6_scope_id;
    std::memcpy(it.bytes_.data(), &v6.sin6_addr, sizeof v6.sin6_addr);
  } else if (any.sa_family == AF_INET) {
    it.port_ = ntohs(v4.sin_port);
    std::memcpy(it.bytes_.data(), &v4.sin_addr, sizeof v4.sin_addr);
  }
  return it;
}

endpoint system_address::to_endpoint() const {
  endpoint it;
  switch (any.sa_family) {
    case AF_INET:
    case AF_INET6: {
      ip_address ip;
      std::memcpy(static_cast<void*>(&ip), &storage, sizeof ip);
      return ip.to_endpoint();
    }
    case AF_UNIX: {
      const std::size_t before = offsetof(sockaddr_un, sun_path);
      const std::size_t there = size > before ? std::min<std::size_t>(size - before, sizeof local.sun_path) : 0;
      const bool is_abstract = there > 1 && local.sun_path[0] == '\0';
      it.kind_ = is_abstract ? endpoint::kind::abstract : endpoint::kind::path;
      const std::size_t length = is_abstract ? there - 1 : ::strnlen(local.sun_path, there);
      it.size_ = static_cast<std::uint8_t>(length);
      std::memcpy(it.bytes_.data(), local.sun_path + (is_abstract ? 1 : 0), length);
      return it;
    }
    default: throw error{std::make_error_code(std::errc::address_family_not_supported), "read a socket's address"};
  }
}

std::optional<endpoint> system_address::of(const sockaddr* address, std::size_t size, std::uint16_t port) noexcept {
  if (address == nullptr) return std::nullopt;
  const bool is_v6 = address->sa_family == AF_INET6;
  if (!is_v6 && address->sa_family != AF_INET) return std::nullopt;
  if (size < (is_v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in))) return std::nullopt;
  ip_address copy;
  std::memcpy(&copy.v6, address, is_v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
  endpoint it = copy.to_endpoint();
  it.port_ = port;
  return it;
}

}  // namespace weft::net
