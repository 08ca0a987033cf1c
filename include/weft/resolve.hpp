// Names: from a host and a service to endpoints, and from there to a connection.
//
//     for (const w::net::endpoint& one : co_await w::net::resolve("db.example.com", "postgresql")) use(one);
//     w::net::stream server = co_await w::net::connect("db.example.com", "5432");
//
// Lookups go by c-ares, as the system is configured: /etc/resolv.conf with its search list, /etc/hosts, the order of both in
// /etc/nsswitch.conf. Its sockets are waited for as all others are, and it has no thread. All lookups of a runtime share one
// state of c-ares, a channel, behind a lock that is never held over a wait. A channel belongs to nobody: one of the lookups
// that are under way receives for all, and hands that to another one when it ends or is stopped. So nothing goes on when none
// is left, and a runtime can be destroyed behind its last lookup. A channel is made anew when its configuration has changed.
//
// What else /etc/nsswitch.conf names (LDAP, mDNS, the names of containers) is asked by getaddrinfo alone: `.by =
// resolver::system` calls that, on the pool for blocking calls. So does a weft that was built without c-ares, always.
//
// Rejected: (a) a task of its own for each channel, which would go on behind the last lookup. (b) A channel for each lookup: to
// read the configuration and to make its sockets costs more than the question. (c) getaddrinfo alone: it can't be stopped, and
// each lookup under way takes a thread.
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
  bad_name,         ///< that can't be a name
  unknown_service,  ///< neither a port nor a service that /etc/services knows
  no_answer,        ///< no name server has answered in time
  unreachable,      ///< no name server can be reached
  server_failed,    ///< the name server could not find out
  refused,          ///< the name server does not answer such questions
  not_understood,   ///< the name server did not understand the question
  malformed,        ///< the name server's answer makes no sense
  configuration,    ///< the configuration can't be read
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
enum class address_family : std::uint8_t { any, v4, v6 };

/// Who looks names up.
enum class resolver : std::uint8_t {
  automatic,  ///< weft itself, by c-ares; the system, where it was built without
  system,     ///< getaddrinfo, which blocks a thread of the process's blocking_pool meanwhile
};

/// `resolve({.family = address_family::v4}, host, service)`. All but the first two are for resolver::automatic.
struct resolve_options {
  address_family family = address_family::any;
  resolver by = resolver::automatic;
  /// The name servers to ask, each with its port, instead of those that are configured. They are copied by the call; a scope
  /// of theirs is left out.
  std::span<const endpoint> servers{};
  /// How long a server may take for its first answer; zero: as configured, or 5 s. It doubles with each further round.
  detail::time_span timeout = std::chrono::seconds{0};
  /// How often each server is asked; 0: as configured, or 4 times.
  unsigned tries = 0;
  /// Instead of /etc/resolv.conf; empty: that.
  std::string_view configuration{};
  /// Of the servers that are configured; 0: 53.
  std::uint16_t port = 0;
};

/// The endpoints of a host's service, the best first, in the order of RFC 6724; at least one, and none twice.
///
/// `host` is a name or an address in numbers, `service` a name of /etc/services or a port. A host in numbers is its own answer,
/// without a question to anybody. The old forms of an IPv4 address (127.1, 0x7f.1, 017700000001) are neither: where the last
/// label is a number, decimal or by 0x, and the whole is no address, it fails with bad_name, whoever is asked.
///
/// Suspends  until the answer is there. Several lookups of a runtime go on at once.
/// Cancel    ends it at once; by the system, when getaddrinfo has returned.
/// Fails     with a resolve_errc; with an error of the system's where there is no socket or no memory for it.
/// Threads   any. One of the lookups under way receives for all of its runtime: a task that holds up its worker, or an executor
///           that is pumped seldom, may delay others.
/// Misuse    a timeout below zero ends the program with a sentence.
/// Cost      some 25 system calls where no other lookup is under way, the socket's among them. /etc/hosts is read where it is
///           called, and once in a while what the system's configuration says. A service by name is asked of the system's own
///           databases (getservbyname_r), which read /etc/services and may block the worker; a port is not.
/// Source    RFC 1035, RFC 6724; c-ares.
WEFT_COROUTINE_TAKES_OVER task<std::vector<endpoint>> resolve(resolve_options options, std::string_view host,
                                                              std::string_view service);
WEFT_COROUTINE_TAKES_OVER inline task<std::vector<endpoint>> resolve(std::string_view host, std::string_view service) {
  return resolve({}, host, service);
}

/// `connect({.timeout = 1s}, host, service)`
struct connect_options {
  /// After which the next address is tried beside those that go on; sooner where one has failed.
  detail::time_span delay = std::chrono::milliseconds{250};
  /// For all of it, the lookup included.
  detail::time_span timeout = std::chrono::steady_clock::duration::max();
  /// Of the lookup, where there is one.
  resolve_options names{};
};

/// Connects to whichever of these is first, by "happy eyeballs": they are tried in their order, but IPv6 and IPv4 in turn, each
/// when the one before has failed or `.delay` is over. The others are stopped, and their descriptors closed, before it returns.
///
/// Cancel    closes all attempts.
/// Fails     where all have failed, with the code of the first, and a sentence that lists them all; errc::timed_out;
///           invalid_argument for an empty list.
/// Misuse    a delay or a timeout below zero ends the program with a sentence.
/// Cost      that of a connect() for each attempt, and a scope.
/// Source    RFC 8305, sections 4 and 5.
WEFT_COROUTINE_TAKES_OVER task<stream> connect(connect_options options, std::span<const endpoint> endpoints);
WEFT_COROUTINE_TAKES_OVER inline task<stream> connect(std::span<const endpoint> endpoints) {
  return connect({}, endpoints);
}

/// The same for all endpoints of a host's service. Otherwise as resolve().
WEFT_COROUTINE_TAKES_OVER task<stream> connect(connect_options options, std::string_view host,
                                               std::string_view service);
WEFT_COROUTINE_TAKES_OVER inline task<stream> connect(std::string_view host, std::string_view service) {
  return connect({}, host, service);
}

}  // namespace weft::net
