#include <arpa/inet.h>
#include <net/if.h>

#include <charconv>
#include <cstring>
#include <weft/net.hpp>

#include "net/system_address.hpp"

namespace weft::net {
namespace {

[[noreturn]] void refuse(std::string_view text) {
  throw error{std::make_error_code(std::errc::invalid_argument), "read an endpoint", text};
}

template <class Number>
bool read_number(std::string_view text, Number& into) noexcept {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), into);
  return failure == std::errc{} && end == text.data() + text.size() && !text.empty();
}

// An IPv6 scope: a number, or the name of an interface.
std::uint32_t scope_of(std::string_view name, std::string_view whole) {
  std::uint32_t number = 0;
  if (read_number(name, number)) return number;
  number = ::if_nametoindex(std::string{name}.c_str());
  if (number == 0) throw error{std::make_error_code(std::errc::no_such_device), "read an endpoint", whole};
  return number;
}

}  // namespace

endpoint::endpoint(std::string_view address, std::uint16_t port) : port_{port} {
  const std::size_t percent = address.find('%');
  if (address.find('\0') != address.npos) refuse(address);  // where the system would take it to end
  const std::string numbers{address.substr(0, percent)};    // with a zero at its end
  if (percent == address.npos && ::inet_pton(AF_INET, numbers.c_str(), bytes_.data()) == 1) return;
  if (::inet_pton(AF_INET6, numbers.c_str(), bytes_.data()) != 1) refuse(address);
  is_v6_ = true;
  if (percent != address.npos) scope_ = scope_of(address.substr(percent + 1), address);
}

endpoint endpoint::parse(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  std::uint16_t port = 0;
  if (colon == text.npos || !read_number(text.substr(colon + 1), port)) refuse(text);
  std::string_view address = text.substr(0, colon);
  const bool bracketed = address.size() >= 2 && address.front() == '[' && address.back() == ']';
  if (bracketed) address = address.substr(1, address.size() - 2);
  if (bracketed != (address.find(':') != address.npos)) refuse(text);
  return {address, port};
}

std::string endpoint::address() const {
  char text[INET6_ADDRSTRLEN];
  ::inet_ntop(is_v6_ ? AF_INET6 : AF_INET, bytes_.data(), text, sizeof text);
  return scope_ != 0 ? std::string{text} + '%' + std::to_string(scope_) : text;
}

std::string endpoint::to_string() const {
  const std::string port = ':' + std::to_string(port_);
  return is_v6_ ? '[' + address() + ']' + port : address() + port;
}

system_address::system_address(const endpoint& of) noexcept {
  if (of.is_v6_) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(of.port_);
    v6.sin6_scope_id = of.scope_;
    std::memcpy(&v6.sin6_addr, of.bytes_.data(), sizeof v6.sin6_addr);
    size = sizeof v6;
  } else {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(of.port_);
    std::memcpy(&v4.sin_addr, of.bytes_.data(), sizeof v4.sin_addr);
    size = sizeof v4;
  }
}

endpoint system_address::to_endpoint() const {
  endpoint it;
  if (any.sa_family == AF_INET6) {
    it.is_v6_ = true;
    it.port_ = ntohs(v6.sin6_port);
    it.scope_ = v6.sin6_scope_id;
    std::memcpy(it.bytes_.data(), &v6.sin6_addr, sizeof v6.sin6_addr);
  } else if (any.sa_family == AF_INET) {
    it.port_ = ntohs(v4.sin_port);
    std::memcpy(it.bytes_.data(), &v4.sin_addr, sizeof v4.sin_addr);
  } else {
    throw error{std::make_error_code(std::errc::address_family_not_supported), "read a socket's address"};
  }
  return it;
}

std::optional<endpoint> system_address::of(const sockaddr* address, std::size_t size, std::uint16_t port) noexcept {
  if (address == nullptr) return std::nullopt;
  const bool is_v6 = address->sa_family == AF_INET6;
  if (!is_v6 && address->sa_family != AF_INET) return std::nullopt;
  if (size < (is_v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in))) return std::nullopt;
  system_address copy;
  std::memcpy(&copy.storage, address, is_v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
  endpoint it = copy.to_endpoint();
  it.port_ = port;
  return it;
}

}  // namespace weft::net
