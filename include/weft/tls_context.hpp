// TLS contexts: the certificates, trusted issuers and protocols of a client or a server; and the errors of TLS. Part of tls.hpp,
// of the library weft::tls.
//
//     const w::tls::client_context trusting_the_system;
//     const w::tls::server_context mine{{.certificate = {w::tls::pem::file("chain.pem"), w::tls::pem::file("key.pem")}}};
//
// A program makes a context once and uses it for any number of sessions.
#pragma once

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

/// Why a handshake or a session has failed. Other failures have OpenSSL's own number and sentence, in the same category.
enum class errc {
  truncated = 1,              ///< the stream has ended without close_notify: data may be missing
  not_tls,                    ///< what the peer has sent is not TLS, but for instance plain HTTP
  protocol_version,           ///< no version of TLS is allowed by both sides
  no_common_cipher,           ///< no cipher is allowed by both sides, or none fits the certificates
  no_common_protocol,         ///< no protocol is offered by both sides (ALPN)
  certificate_expired,        ///< the peer's certificate, or one in its chain
  certificate_not_yet_valid,  ///< or this machine's clock is wrong
  wrong_host,                 ///< it is not for the host that was asked for
  self_signed,                ///< it is self-signed, and not trusted
  unknown_issuer,             ///< its chain does not lead to a trusted issuer
  weak_certificate,           ///< it has a short key or a digest such as SHA-1; also for one's own
  certificate_revoked,
  revocation_unknown,    ///< revocation lists were given, but no valid one of an issuer in the chain
  certificate_required,  ///< the server requires a certificate of the client
  certificate_refused,   ///< the peer does not accept this side's certificate
  flooded,               ///< the peer asks for answers, such as key updates, and does not read them
};

/// The category of `errc`, of OpenSSL's errors, and of its certificate verification errors. All of them compare equal to
/// std::errc::protocol_error.
const std::error_category& category() noexcept;
inline std::error_code make_error_code(errc code) noexcept { return {static_cast<int>(code), category()}; }

// ---- contexts -------------------------------------------------------------------------------------------------------------

/// One or more certificates, keys or revocation lists in PEM, from a file or from a text. Refers to its argument, which is read
/// when a context is made.
class pem {
 public:
  constexpr pem() noexcept = default;                                                       ///< none
  static constexpr pem file(std::string_view path) noexcept { return {kind::file, path}; }  ///< the file that has them
  /// "-----BEGIN CERTIFICATE-----…"
  static constexpr pem text(std::string_view all) noexcept { return {kind::text, all}; }

  constexpr bool is_given() const noexcept { return which_ != kind::none; }  ///< false of none
  constexpr bool is_file() const noexcept { return which_ == kind::file; }   ///< what() is a path
  constexpr std::string_view what() const noexcept { return what_; }         ///< the path, or the text

 private:
  enum class kind { none, file, text };
  constexpr pem(kind which, std::string_view what) noexcept : which_{which}, what_{what} {}
  kind which_ = kind::none;
  std::string_view what_{};
};

/// What one side shows the other.
struct certificate {
  pem chain{};                  ///< its own certificate first, then the intermediate ones
  pem key{};                    ///< the private key of the first certificate
  std::string_view password{};  ///< the key's password, where it is encrypted
};

/// Versions of the protocol. Older ones are not supported.
enum class version { tls12, tls13 };

/// What a client verifies.
enum class verify {
  peer,     ///< the chain, and that the certificate is for the host
  chain,    ///< the chain alone: any server with a certificate of a trusted issuer is accepted
  nothing,  ///< nothing: any server is accepted. For tests only
};

/// What a client context is made of. It, and what it refers to, is read only then.
struct client_options {
  pem trust{};  ///< the trusted issuers; default: the system's
  /// Certificate revocation lists (CRL); none: revocation is not checked. The whole chain is checked: there must be a list of
  /// each issuer in it, also of the trusted one.
  pem revoked{};
  verify peer = verify::peer;
  certificate own{};                         ///< the client's, for a server that asks for one
  std::span<const std::string_view> alpn{};  ///< protocols to offer, the preferred first: "h2", "http/1.1"
  version least = version::tls12;
  /// Whether sessions are kept and resumed, so that later handshakes are shorter: one for each host, for at most 256 hosts. A
  /// session is not resumed once the server's certificate has expired.
  bool resumes = true;
};

/// What a server does about a client's certificate.
enum class client_certificates {
  none,
  asked,  ///< optional: a certificate that a client shows must verify
  required,
};

/// What a server context is made of. It, and what it refers to, is read only then.
struct server_options {
  tls::certificate certificate{};
  /// Certificates for other names. A client is shown the first one whose subjectAltName has the name that the client asks for
  /// (SNI), or `.certificate` if there is none. Where certificates for that name differ in the kind of key (RSA, ECDSA), it is
  /// shown one that it can verify.
  std::span<const tls::certificate> others{};
  client_certificates clients = client_certificates::none;
  pem client_trust{};  ///< the trusted issuers of clients' certificates; no default
  pem revoked{};       ///< as client_options::revoked, for clients' certificates
  /// Protocols, the preferred first. A client that offers only others is refused. A client that offers none is accepted.
  std::span<const std::string_view> alpn{};
  version least = version::tls12;
  /// Whether clients are given session tickets, by which later handshakes are shorter. A client that resumes a session is not
  /// asked for its certificate again, but is refused resumption once that has expired. The tickets' keys belong to the context
  /// alone, and a new one is used each hour.
  bool resumes = true;
};

/// What a program's client connections share: the options, and the sessions that can be resumed. Copies share one context.
///
/// Fails    the constructor, reload() and reload_trust() throw error: the system's code for a file, errc::weak_certificate,
///          OpenSSL's error for malformed PEM, or invalid_argument for options that make no sense, such as a certificate without
///          a key.
/// Threads  any.
/// Cost     all three read files on this thread; the constructor also those of the system's issuers (some 10 ms): make a context
///          once.
class client_context {
 public:
  client_context() : client_context(client_options{}) {}
  explicit client_context(const client_options& options);  ///< reads the files that these name

  /// Replaces the certificate for later handshakes, and drops the kept sessions. Streams that exist go on unchanged.
  void reload(const certificate& own) const;
  /// Replaces the trusted issuers and the revocation lists for later handshakes, as `.trust` and `.revoked` of the options, and
  /// drops the kept sessions. Throws invalid_argument for a context that verifies nothing.
  void reload_trust(const pem& trust, const pem& revoked = {}) const;

 private:
  friend detail::tls_access;
  std::shared_ptr<detail::tls_context> core_;
};

/// What a server's connections share. Copies share one context. Fails, Threads and Cost are those of client_context.
class server_context {
 public:
  explicit server_context(const server_options& options);  ///< reads the files that these name

  /// Replaces the certificates for later handshakes; connections that exist go on unchanged. Throws as the constructor does;
  /// then nothing has changed.
  void reload(const certificate& own, std::span<const certificate> others = {}) const;
  /// Replaces the trusted issuers of clients' certificates and the revocation lists for later handshakes, as `.client_trust` and
  /// `.revoked` of the options. No ticket of a session that began before is taken any more, so each client is verified again.
  /// Throws as reload() does, and invalid_argument for a context that asks no client for a certificate.
  void reload_trust(const pem& client_trust, const pem& revoked = {}) const;

 private:
  friend detail::tls_access;
  std::shared_ptr<detail::tls_context> core_;
};

}  // namespace weft::tls

template <>
struct std::is_error_code_enum<weft::tls::errc> : std::true_type {};
