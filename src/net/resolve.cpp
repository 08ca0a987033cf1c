// Lookups of names, without c-ares: numeric addresses, services, and lookups by getaddrinfo().
#include <weft/resolve.hpp>

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <weft/blocking.hpp>
#include <weft/error.hpp>
#include <weft/nothrow.hpp>
#include <weft/stop.hpp>

#include "net/name_query.hpp"
#include "net/system_address.hpp"

namespace weft {
namespace net {
namespace {

class category_of_resolve final : public std::error_category {
 public:
  const char* name() const noexcept override { return "weft.resolve"; }
  std::string message(int code) const override {
    switch (static_cast<resolve_errc>(code)) {
      case resolve_errc::not_found: return "there is no such name";
      case resolve_errc::no_address: return "the name has no address of the family that was asked for";
      case resolve_errc::bad_name: return "that can't be a name";
      case resolve_errc::unknown_service: return "there is no such service";
      case resolve_errc::no_answer: return "no name server has answered in time";
      case resolve_errc::unreachable: return "no name server can be reached";
      case resolve_errc::server_failed: return "the name server could not find out";
      case resolve_errc::refused: return "the name server does not answer such questions";
      case resolve_errc::not_understood: return "the name server did not understand the question";
      case resolve_errc::malformed: return "the name server's answer makes no sense";
      case resolve_errc::configuration: return "the configuration can't be read";
    }
    return "unknown error " + std::to_string(code);
  }
};

}  // namespace

const std::error_category& resolve_category() noexcept {
  static const category_of_resolve one;
  return one;
}

}  // namespace net

namespace detail {

std::exception_ptr lookup_failure(std::error_code code, const name_query& what) {
  try {
    return std::make_exception_ptr(error{code, "resolve", what.host + ", service " + what.service});
  } catch (...) {  // no memory for its text
    return std::current_exception();
  }
}

namespace {

using net::address_family;
using net::endpoint;
using net::resolve_errc;

std::error_code code_of_getaddrinfo(int status, int error) noexcept {
  switch (status) {
    case EAI_NONAME: return resolve_errc::not_found;
    case EAI_NODATA:
    case EAI_ADDRFAMILY: return resolve_errc::no_address;
    case EAI_SERVICE: return resolve_errc::unknown_service;
    case EAI_AGAIN: return resolve_errc::no_answer;
    case EAI_MEMORY: return std::make_error_code(std::errc::not_enough_memory);
    case EAI_SYSTEM: return {error, std::generic_category()};
    default: return resolve_errc::server_failed;
  }
}

struct free_of_getaddrinfo {
  void operator()(addrinfo* all) const noexcept { ::freeaddrinfo(all); }
};

// Blocks.
std::vector<endpoint> ask_system(const name_query& what, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_family = what.family == address_family::any  ? AF_UNSPEC
                    : what.family == address_family::v4 ? AF_INET
                                                        : AF_INET6;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int status = ::getaddrinfo(what.host.c_str(), nullptr, &hints, &found); status != 0)
    std::rethrow_exception(lookup_failure(code_of_getaddrinfo(status, errno), what));
  const std::unique_ptr<addrinfo, free_of_getaddrinfo> all{found};
  std::vector<endpoint> endpoints = endpoints_of(found, port);
  if (endpoints.empty()) std::rethrow_exception(lookup_failure(resolve_errc::no_address, what));
  return endpoints;
}

task<std::vector<endpoint>> look_up_by_system(name_query what, std::uint16_t port) {
  const auto ask = [](const name_query& its, std::uint16_t of) { return ask_system(its, of); };
  co_return co_await blocking(ask, std::move(what), port);
}

// The host as an endpoint, if it is a numeric address.
std::optional<endpoint> in_numbers(const std::string& host, std::uint16_t port) {
  const bool may_be = host.find(':') != host.npos || host.find_first_not_of("0123456789.") == host.npos;
  if (!may_be) return std::nullopt;
  try {
    return endpoint{host, port};
  } catch (const error& none) {
    if (none.code() == std::errc::no_such_device) throw;  // an address on an interface that does not exist
    return std::nullopt;
  }
}

// May block: NSS looks up a service that is given by name.
std::error_code find_port(const std::string& service, std::uint16_t& port) {
  if (service.find('\0') != service.npos) return resolve_errc::unknown_service;
  const char* const last = service.data() + service.size();
  if (const auto [end, failed] = std::from_chars(service.data(), last, port); failed == std::errc{} && end == last)
    return {};
  if (service.empty() || service.find_first_not_of("0123456789") == service.npos) return resolve_errc::unknown_service;
  constexpr std::size_t most = 1 << 20;
  servent its{}, *found = nullptr;
  int refused = ERANGE;
  for (std::size_t size = 1'024; refused == ERANGE && size <= most; size *= 2) {
    std::vector<char> names(size);  // for the service's names, which are not used after the call
    refused = ::getservbyname_r(service.c_str(), "tcp", &its, names.data(), names.size(), &found);
  }
  if (refused == ERANGE || refused == ENOMEM) return std::make_error_code(std::errc::not_enough_memory);
  if (refused != 0 || found == nullptr) return resolve_errc::unknown_service;
  port = ntohs(static_cast<std::uint16_t>(its.s_port));
  return {};
}

// Decimal digits, or 0x and hexadecimal ones.
bool is_number(std::string_view label) noexcept {
  const bool is_hexadecimal = label.starts_with("0x") || label.starts_with("0X");
  if (is_hexadecimal) label.remove_prefix(2);
  return label.find_first_not_of(is_hexadecimal ? "0123456789abcdefABCDEF" : "0123456789") == label.npos;
}

// No label is longer than 63 bytes, no name longer than 253, and none contains a NUL, at which the system would cut it off. The
// last label is no number (RFC 1123, section 2.1): getaddrinfo() would take such a name for an address in an old notation, and
// c-ares would ask name servers for it.
bool may_be_a_name(const std::string& host) noexcept {
  constexpr std::size_t longest = 253, longest_label = 63;
  std::string_view left = host;
  if (left.ends_with('.')) left.remove_suffix(1);
  if (left.empty() || left.size() > longest || left.find('\0') != left.npos) return false;
  for (;;) {
    const std::size_t dot = std::min(left.find('.'), left.size());
    if (dot == 0 || dot > longest_label) return false;
    if (dot == left.size()) return !is_number(left);
    left.remove_prefix(dot + 1);
  }
}

bool is_of(address_family family, const endpoint& one) noexcept {
  return family == address_family::any || (family == address_family::v6) == one.is_v6();
}

task<std::vector<endpoint>> look_up(name_query what) {
  co_await check_stop();
  std::uint16_t port = 0;
  if (const std::error_code failed = find_port(what.service, port)) co_await fail_with(lookup_failure(failed, what));
  if (const std::optional<endpoint> its_own = in_numbers(what.host, port)) {
    if (!is_of(what.family, *its_own)) co_await fail_with(lookup_failure(resolve_errc::no_address, what));
    co_return std::vector<endpoint>{*its_own};
  }
  if (!may_be_a_name(what.host)) co_await fail_with(lookup_failure(resolve_errc::bad_name, what));
#if defined(WEFT_WITH_CARES)
  if (what.by == net::resolver::automatic) {
    auto by_channel = look_up_by_channel(std::move(what), port);
    co_return co_await std::move(by_channel);
  }
#endif
  auto by_system = look_up_by_system(std::move(what), port);
  co_return co_await std::move(by_system);
}

int in_milliseconds(clock::duration d) noexcept {
  const auto whole = std::chrono::ceil<std::chrono::milliseconds>(d).count();
  constexpr int longest = 1'000 * 60 * 60;  // c-ares doubles it with each round, which must not overflow
  return static_cast<int>(std::min<decltype(whole)>(whole, longest));
}

}  // namespace
}  // namespace detail

task<std::vector<net::endpoint>> net::resolve(resolve_options options, std::string_view host,
                                              std::string_view service) {
  WEFT_EXPECTS(options.timeout >= clock::duration::zero(), "resolve() was given a timeout below zero");
  return detail::look_up({.host = std::string{host},
                          .service = std::string{service},
                          .family = options.family,
                          .by = options.by,
                          .channel = {.servers = {options.servers.begin(), options.servers.end()},
                                      .timeout = detail::in_milliseconds(options.timeout),
                                      .tries = static_cast<int>(std::min(options.tries, 1'000U)),
                                      .configuration = std::string{options.configuration},
                                      .port = options.port}});
}

}  // namespace weft
