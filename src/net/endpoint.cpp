#include <arpa/inet.h>
#include <net/if.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
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

constexpr std::size_t longest_name = sizeof(sockaddr_un::sun_path) - 1;
constexpr std::string_view unix_prefix = "unix:";

}  // namespace

endpoint::endpoint(std::string_view address, std::uint16_t port) : port_{port} {
  const std::size_t percent = address.find('%');
  if (address.find('\0') != address.npos) refuse(address);  // where the system would take it to end
  const std::string numbers{address.substr(0, percent)};    // with a zero at its end
  if (percent == address.npos && ::inet_pton(AF_INET, numbers.c_str(), bytes_.data()) == 1) return;
  if (::inet_pton(AF_INET6, numbers.c_str(), bytes_.data()) != 1) refuse(address);
  kind_ = kind::v6;
  if (percent != address.npos) scope_ = scope_of(address.substr(percent + 1), address);
}

endpoint::endpoint(kind which, std::string_view name) : kind_{which}, size_{static_cast<std::uint8_t>(name.size())} {
  if (name.size() > longest_name)
    throw error{std::make_error_code(std::errc::filename_too_long), "take a Unix socket's name of at most 107 bytes",
                name};
  if (name.empty() || (which == kind::path && name.find('\0') != name.npos)) refuse(name);
  std::memcpy(bytes_.data(), name.data(), name.size());
}

endpoint endpoint::unix_path(std::string_view path) { return {kind::path, path}; }
endpoint endpoint::unix_abstract(std::string_view name) { return {kind::abstract, name}; }

endpoint endpoint::parse(std::string_view text) {
  if (text.starts_with(unix_prefix)) {
    text.remove_prefix(unix_prefix.size());
    return text.starts_with('@') ? unix_abstract(text.substr(1)) : unix_path(text);
  }
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
  if (is_unix()) {
    const std::string_view name{reinterpret_cast<const char*>(bytes_.data()), size_};
    // A path that begins as abstract names are written is the same file from here.
    const char* const mark = kind_ == kind::abstract ? "@" : name.starts_with('@') ? "./" : "";
    return std::string{mark}.append(name);
  }
  char text[INET6_ADDRSTRLEN];
  ::inet_ntop(is_v6() ? AF_INET6 : AF_INET, bytes_.data(), text, sizeof text);
  return scope_ != 0 ? std::string{text} + '%' + std::to_string(scope_) : text;
}

std::string endpoint::to_string() const {
  if (is_unix()) return std::string{unix_prefix} + address();
  const std::string port = ':' + std::to_string(port_);
  return is_v6() ? '[' + address() + ']' + port : address() + port;
}

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
      // Of an abstract name a zero stands before it, and its size counts; a path has one behind it.
      const bool is_abstract = of.kind_ == endpoint::kind::abstract;
      local.sun_family = AF_UNIX;
      std::memcpy(local.sun_path + (is_abstract ? 1 : 0), of.bytes_.data(), of.size_);
      // A path of others' may fill all of it: that has none.
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
