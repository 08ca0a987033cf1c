// Names: from a host and a service to endpoints, and from there to a connection.
//
//     for (const w::net::endpoint& one : co_await w::net::resolve("db.example.com", "postgresql")) use(one);
//     w::net::stream server = co_await w::net::connect("db.example.com", "5432");
//
// Lookups are made by c-ares, as the system is configured: /etc/resolv.conf with its search list, /etc/hosts, and their order
// in /etc/nsswitch.conf. c-ares has no thread; its sockets are waited for as all others are. The lookups of a runtime share one
// state of c-ares, a channel, under a lock that is never held over a wait. One of the lookups under way receives for all, and
// passes that duty on when it ends or is stopped. So nothing runs when no lookup is left, and a runtime can be destroyed after
// its last one. A channel is replaced when the configuration has changed.
//
// Other sources in /etc/nsswitch.conf (LDAP, mDNS, names of containers) are known to getaddrinfo alone. `.by =
// resolver::system` calls that on the blocking pool, and so do all lookups of a weft that was built without c-ares.
//
// Rejected: (a) a task for each channel: it would outlive the last lookup. (b) A channel for each lookup: reading the
// configuration and making sockets costs more than the question. (c) getaddrinfo alone: it can't be stopped, and each lookup
// occupies a thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>
#include <weft/detail/base/config.hpp>
#include <weft/detail/base/duration.hpp>
#include <weft/net.hpp>
#include <weft/task.hpp>

namespace weft::net {

/// Why a name was not found.
enum class resolve_errc {
  not_found = 1,    ///< there is no such name
  no_address,       ///< the name has no address of the family that was asked for
  bad_name,         ///< it can't be the name of a host
  unknown_service,  ///< neither a port nor a service that /etc/services knows
  no_answer,        ///< no name server has answered in time
  unreachable,      ///< no name server can be reached
  server_failed,    ///< the name server could not find out
  refused,          ///< the name server refuses to answer
  not_understood,   ///< the name server did not understand the question
  malformed,        ///< the name server's answer can't be decoded
  configuration,    ///< the system's configuration can't be read
};

/// The category of resolve_errc, whose codes are std::error_codes.
const std::error_category& resolve_category() noexcept;
inline std::error_code make_error_code(resolve_errc code) noexcept {
  return {static_cast<int>(code), resolve_category()};
}

}  // namespace weft::net

template <>
struct std::is_error_code_enum<weft::net::resolve_errc> : std::true_type {};

namespace weft::net {

/// Which addresses of a name are asked for.
enum class address_family { any, v4, v6 };

/// How names are looked up.
enum class resolver {
  automatic,  ///< by c-ares, or as `system` where weft was built without it
  system,     ///< by getaddrinfo, which blocks a thread of the process's blocking pool meanwhile
};

/// Options of resolve(): `resolve({.family = address_family::v4}, host, service)`. All but the first two are for c-ares.
struct resolve_options {
  address_family family = address_family::any;
  resolver by = resolver::automatic;
  /// The name servers to ask, each with its port, instead of the configured ones. They are copied by the call, without the
  /// scope of an IPv6 address.
  std::span<const endpoint> servers{};
  /// How long to wait for an answer in the first round; each further round doubles it. Zero: as configured, or 5 s.
  detail::time_span timeout = std::chrono::seconds{0};
  /// How many rounds ask all servers; 0: as configured, or 4.
  unsigned tries = 0;
  /// The path of a file to read instead of /etc/resolv.conf; empty: /etc/resolv.conf.
  std::string_view configuration{};
  /// The port of the configured name servers; 0: 53.
  std::uint16_t port = 0;
};

/// Looks up the endpoints of a host's service: at least one, none twice, the best first (RFC 6724).
///
/// `host` is a name or a numeric address, `service` a port or a name in /etc/services. A numeric address is returned without
/// asking a name server. Old forms of IPv4 addresses (127.1, 0x7f.1, 017700000001) are not accepted: a host that is no address
/// and whose last label is a decimal or hexadecimal number fails with bad_name.
///
/// Suspends  until the answer is there. Several lookups of a runtime run at once.
/// Cancel    ends the lookup at once; with resolver::system only when getaddrinfo has returned.
/// Fails     with a resolve_errc; with the system's error where there is no socket or no memory. If the question for one
///           address family fails and the other has no address, both are asked once more, one after the other: not_found and
///           no_address are reliable answers.
/// Threads   any. One of a runtime's lookups receives for all of them, so a task that blocks its worker, or an executor that
///           runs seldom, may delay the others.
/// Lifetime  `host` and `service` are copied by the call.
/// Misuse    a negative timeout ends the program with a sentence.
/// Cost      some 25 system calls if no other lookup is under way. Each call reads /etc/hosts; the configuration is checked for
///           changes at intervals. A service given by name is looked up in /etc/services (getservbyname_r), which may block the
///           worker.
/// Source    RFC 1035, RFC 6724; c-ares.
WEFT_COROUTINE_TAKES_OVER task<std::vector<endpoint>> resolve(resolve_options options, std::string_view host,
                                                              std::string_view service);
WEFT_COROUTINE_TAKES_OVER inline task<std::vector<endpoint>> resolve(std::string_view host, std::string_view service) {
  return resolve({}, host, service);
}

/// Options of connect() to one of several endpoints: `connect({.timeout = 1s}, host, service)`.
struct connect_options {
  /// How long one address is tried before the next one is tried, too. If it fails, the next one is tried at once.
  detail::time_span delay = std::chrono::milliseconds{250};
  /// A limit for the lookup and all attempts together.
  detail::time_span timeout = std::chrono::steady_clock::duration::max();
  /// Options of the lookup, where a name is given.
  resolve_options names{};
};

/// Connects to the endpoint that answers first, by "happy eyeballs": tries them in their order, but IPv6 and IPv4 alternately,
/// each one when the one before it has failed or `.delay` has passed. Ends the other attempts, and closes their sockets, before
/// it returns.
///
/// Suspends  until one has answered, or all have failed.
/// Cancel    ends all attempts.
/// Fails     if all have failed, with the code of the first and a sentence that lists all; with errc::timed_out; with
///           invalid_argument for an empty list.
/// Misuse    a negative delay or timeout ends the program with a sentence.
/// Cost      that of a connect() for each attempt, and a scope.
/// Source    RFC 8305, sections 4 and 5.
WEFT_COROUTINE_TAKES_OVER task<stream> connect(connect_options options, std::span<const endpoint> endpoints);
WEFT_COROUTINE_TAKES_OVER inline task<stream> connect(std::span<const endpoint> endpoints) {
  return connect({}, endpoints);
}

/// Looks up the endpoints of a host's service, as resolve(), and connects to one of them.
WEFT_COROUTINE_TAKES_OVER task<stream> connect(connect_options options, std::string_view host,
                                               std::string_view service);
WEFT_COROUTINE_TAKES_OVER inline task<stream> connect(std::string_view host, std::string_view service) {
  return connect({}, host, service);
}

}  // namespace weft::net
