// A TLS context: OpenSSL's SSL_CTX, the certificates to show, the sessions to resume, and the keys of session tickets.
//
// The SSL_CTX is never changed while sessions of it exist, since they read it without a lock. So the certificates, and whom the
// context trusts, are kept outside of it: each handshake takes the current ones, and a reload replaces one pointer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>
#include <weft/tls.hpp>

#include "tls/kept_sessions.hpp"
#include "tls/openssl.hpp"
#include "tls/ticket_keys.hpp"

namespace weft::detail {

// A certificate to show, with its chain and private key.
struct tls_identity {
  owned_certificate own;
  owned_certificates chain;
  owned_key key;
};
using tls_identities = std::vector<tls_identity>;

// Whom a context trusts: the issuers, with what they have revoked, and the names of those that a server tells its clients.
struct tls_trust {
  owned_store store;
  owned_names names;
};

class tls_context {
 public:
  explicit tls_context(const tls::client_options& options);
  explicit tls_context(const tls::server_options& options);
  tls_context(const tls_context&) = delete;
  ~tls_context() = default;

  void reload(const tls::certificate& own, std::span<const tls::certificate> others);
  void reload_trust(const tls::pem& issuers, const tls::pem& revoked);

  /// Makes an SSL object for a new session, with a kept session to resume if there is one. Throws error, std::bad_alloc.
  owned_ssl begin(const std::string& host);
  bool is_server() const noexcept { return is_server_; }
  bool resumes() const noexcept { return resumes_; }
  tls_sessions& sessions() noexcept { return sessions_; }

 private:
  void begin_context(const SSL_METHOD* by, tls::version least, std::span<const std::string_view> alpn);
  void use_trust(SSL* its) const;
  tls_identities read(const tls::certificate& own, std::span<const tls::certificate> others) const;
  std::shared_ptr<const tls_identities> identities() const;

  static int choose_certificate(SSL* by, void* self) noexcept;
  static int choose_protocol(SSL* by, const unsigned char** chosen, unsigned char* size, const unsigned char* offered,
                             unsigned int offered_size, void* self) noexcept;
  static int keep_session(SSL* of, SSL_SESSION* one) noexcept;
  static int choose_ticket_key(SSL* by, unsigned char* name, unsigned char* vector, EVP_CIPHER_CTX* cipher,
                               EVP_MAC_CTX* digest, int encrypts) noexcept;
  static int date_ticket(SSL* by, void* self) noexcept;
  static SSL_TICKET_RETURN check_ticket(SSL* by, SSL_SESSION* of, const unsigned char* name, std::size_t name_size,
                                        SSL_TICKET_STATUS status, void* self) noexcept;

  owned_context openssl_;
  std::string protocols_;  // in ALPN's wire format
  const bool is_server_, resumes_;
  tls::verify verifies_ = tls::verify::peer;
  tls_sessions sessions_;
  ticket_keys keys_;  // used by a server
  mutable std::mutex lock_;
  std::shared_ptr<const tls_identities> identities_;
  std::shared_ptr<const tls_trust> trust_;  // null: it asks no peer for a certificate
};

}  // namespace weft::detail
