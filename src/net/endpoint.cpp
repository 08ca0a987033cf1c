#include <arpa/inet.h>
#include <net/if.h>
#include <sys/un.h>

#include <charconv>
#include <cstring>
#include <weft/endpoint.hpp>
#include <weft/error.hpp>

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
  if (address.find('\0') != address.npos) refuse(address);  // the system would cut the address off there
  const std::string numbers{address.substr(0, percent)};    // NUL-terminated for inet_pton()
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
    // '@' marks an abstract name. A relative path that begins with '@' gets a "./", which leaves it the same file.
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

}  // namespace weft::net
