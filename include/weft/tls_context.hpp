// What the two sides of a TLS session are told before it begins: certificates, whom to trust, protocols; and why one fails. Part of
// tls.hpp, of the library weft::tls.
//
//     const w::tls::client_context trusting_the_system;
//     const w::tls::server_context mine{{.certificate = {w::tls::pem::file("chain.pem"), w::tls::pem::file("key.pem")}}};
//
// A context is made once, and serves any number of sessions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace weft::detail {
struct tls_access;
class tls_context;
}  // namespace weft::detail

namespace weft::tls {

// ---- errors ---------------------------------------------------------------------------------------------------------------

/// Why a handshake, or a session, has failed. What has no name here has OpenSSL's own number and sentence, in the same category.
enum class errc {
  truncated = 1,              ///< the stream has ended without close_notify: something may be missing
  not_tls,                    ///< what came is no TLS, as plain HTTP
  protocol_version,           ///< no version that both sides allow
  no_common_cipher,           ///< none that both sides allow, or none for the certificates
  no_common_protocol,         ///< of those for ALPN
  certificate_expired,        ///< the peer's, or one in its chain; likewise the following
  certificate_not_yet_valid,  ///< or this machine's clock is wrong
  wrong_host,                 ///< it is for others than the host that was asked for
  self_signed,                ///< and not trusted
  unknown_issuer,             ///< no chain to what is trusted
  weak_certificate,           ///< a short key, or a digest such as SHA-1; also of one's own
  certificate_revoked,
  revocation_unknown,    ///< revocation lists were given, and there is no valid one of an issuer in its chain
  certificate_required,  ///< the server wants one of the client
  certificate_refused,   ///< the peer does not take this side's
  flooded,               ///< the peer asks for more answers than it reads
};

/// Of `errc`, of OpenSSL's errors, and of its reasons against a certificate. All of them are std::errc::protocol_error as
/// conditions.
const std::error_category& category() noexcept;
inline std::error_code make_error_code(errc code) noexcept { return {static_cast<int>(code), category()}; }

// ---- contexts -------------------------------------------------------------------------------------------------------------

/// Certificates, keys or revocation lists in PEM, one or more: a file's, or a text. Refers to what it is given, which is read where
/// a context is made.
class pem {
 public:
  constexpr pem() noexcept = default;  ///< none
  static constexpr pem file(std::string_view path) noexcept { return {kind::file, path}; }
  static constexpr pem text(std::string_view all) noexcept { return {kind::text, all}; }

  constexpr bool is_given() const noexcept { return which_ != kind::none; }
  constexpr bool is_file() const noexcept { return which_ == kind::file; }
  constexpr std::string_view what() const noexcept { return what_; }  ///< the path, or the text

 private:
  enum class kind : std::uint8_t { none, file, text };
  constexpr pem(kind which, std::string_view what) noexcept : which_{which}, what_{what} {}
  kind which_ = kind::none;
  std::string_view what_{};
};

/// What one side shows the other.
struct certificate {
  pem chain{};                  ///< its own first, then those between it and what the peer trusts
  pem key{};                    ///< of the first
  std::string_view password{};  ///< of the key, where it is encrypted
};

/// Versions of the protocol; older ones are not spoken.
enum class version : std::uint8_t { tls12, tls13 };

/// What a client verifies.
enum class verify : std::uint8_t {
  peer,     ///< the chain, and that the certificate is for the host
  chain,    ///< whoever has a certificate of a trusted issuer may be the server
  nothing,  ///< anybody may be: good for tests alone
};

/// Is read where a context is made; likewise server_options.
struct client_options {
  pem trust{};  ///< the issuers that are trusted, instead of the system's
  /// Lists of what issuers have revoked (CRL); none: not asked. All of a chain is asked for: there must be a list of each issuer in it,
  /// the trusted one's, too.
  pem revoked{};
  verify peer = verify::peer;
  certificate own{};                         ///< for a server that asks for one
  std::span<const std::string_view> alpn{};  ///< protocols, the best first: "h2", "http/1.1"
  version least = version::tls12;
  /// Keeps sessions, one for each host, of up to 256, so that later handshakes are shorter. None is resumed once the server's
  /// certificate has expired.
  bool resumes = true;
};

/// What a server does about a client's certificate.
enum class client_certificates : std::uint8_t {
  none,
  asked,  ///< may be given: one that is must be good
  required,
};

struct server_options {
  tls::certificate certificate{};
  /// Others, for other names. A client gets the first that is for the name which it asks for (SNI), by the names in the
  /// certificates; else `.certificate`. Of several kinds of key for a name it gets that which it can verify.
  std::span<const tls::certificate> others{};
  client_certificates clients = client_certificates::none;
  pem client_trust{};  ///< the issuers of clients' certificates; without a default
  pem revoked{};       ///< as of client_options, of clients' certificates
  std::span<const std::string_view>
      alpn{};  ///< protocols, the best first. A client that offers others alone is refused; one that offers none is taken
  version least = version::tls12;
  /// Gives clients tickets, by which later handshakes are shorter; a client's certificate is not asked for then, but none is taken
  /// that has expired. Their key is as old as the context: who wants a new one makes a new context.
  bool resumes = true;
};

/// What clients of one kind have in common: whom they trust, and the sessions that can be resumed. Copies are the same context.
///
/// Fails    the constructor throws error: what the system says of a file, errc::weak_certificate, what OpenSSL says of what was
///          read, or invalid_argument for a certificate without a key and the like. Likewise the following.
/// Threads  any.
/// Cost     to make one reads files, on this thread, those of the system's issuers, too (some 10 ms): a program makes it once.
class client_context {
 public:
  client_context() : client_context(client_options{}) {}
  explicit client_context(const client_options& options);

  /// From now on handshakes show this one: kept sessions are dropped. Streams that are there go on.
  void reload(const certificate& own) const;

 private:
  friend detail::tls_access;
  std::shared_ptr<detail::tls_context> core_;
};

/// What connections to a server have in common. Copies are the same context.
class server_context {
 public:
  explicit server_context(const server_options& options);

  /// From now on handshakes show these; those that are there go on, as they have begun. Throws, as the constructor; then nothing
  /// has changed.
  void reload(const certificate& own, std::span<const certificate> others = {}) const;

 private:
  friend detail::tls_access;
  std::shared_ptr<detail::tls_context> core_;
};

}  // namespace weft::tls

template <>
struct std::is_error_code_enum<weft::tls::errc> : std::true_type {};
