#include "tls/context.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>
#include <weft/error.hpp>

namespace weft {
namespace detail {
namespace {

[[noreturn]] void refuse(std::error_code why, std::string_view operation, std::string_view subject = {}) {
  if (why == std::errc::not_enough_memory) throw std::bad_alloc{};
  throw weft::error{why, operation, subject};
}
[[noreturn]] void refuse(std::errc why, std::string_view operation, std::string_view subject = {}) {
  refuse(std::make_error_code(why), operation, subject);
}
void expect(bool done, std::string_view operation, std::string_view subject = {}) {
  if (!done) refuse(take_tls_error(), operation, subject);
}

// ---- reading PEM ----------------------------------------------------------------------------------------------------------

std::string_view name_of(const tls::pem& one) noexcept { return one.is_file() ? one.what() : "a text"; }

std::string text_of(const tls::pem& one) {
  if (!one.is_file()) return std::string{one.what()};
  const std::string path{one.what()};
  const std::unique_ptr<std::FILE, frees<std::fclose>> file{std::fopen(path.c_str(), "rbe")};
  std::string text;
  char piece[4096];
  std::size_t got = 0;
  if (file)
    while ((got = std::fread(piece, 1, sizeof piece, file.get())) != 0) text.append(piece, got);
  if (!file || std::ferror(file.get()) != 0) refuse(std::error_code{errno, std::generic_category()}, "read", path);
  return text;
}

// OpenSSL's password callback. It always answers, so that OpenSSL never asks at the terminal.
int give_password(char* into, int size, int, void* given) noexcept {
  const auto& password = *static_cast<const std::string_view*>(given);
  if (password.size() > static_cast<std::size_t>(size)) return -1;
  if (!password.empty()) std::memcpy(into, password.data(), password.size());
  return static_cast<int>(password.size());
}

// Calls `take` with each object that `next` reads. Throws if there is none, or if what follows the last one is broken PEM.
template <class Owner, class Next, class Take>
void read_all(const tls::pem& from, const char* what, Next next, Take take) {
  const std::string text = text_of(from);
  const auto bio = made<owned_bio>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  bool is_any = false;
  for (;;) {
    ERR_clear_error();
    Owner one{next(bio.get())};
    if (!one) break;
    is_any = true;
    take(std::move(one));
  }
  const unsigned long end = ERR_peek_last_error();
  if (is_any && ERR_GET_LIB(end) == ERR_LIB_PEM && ERR_GET_REASON(end) == PEM_R_NO_START_LINE) {
    ERR_clear_error();
    return;
  }
  refuse(take_tls_error(), what, name_of(from));
}

X509* next_certificate(BIO* from) { return PEM_read_bio_X509_AUX(from, nullptr, nullptr, nullptr); }
X509_CRL* next_list(BIO* from) { return PEM_read_bio_X509_CRL(from, nullptr, nullptr, nullptr); }

tls_identity read_identity(const tls::certificate& from) {
  if (!from.chain.is_given() || !from.key.is_given())
    refuse(std::errc::invalid_argument, "use a certificate that lacks its chain or its key");
  tls_identity one;
  one.chain = made<owned_certificates>(sk_X509_new_null());
  read_all<owned_certificate>(from.chain, "read certificates from", next_certificate, [&](owned_certificate next) {
    if (!one.own) {
      one.own = std::move(next);
    } else {
      if (sk_X509_push(one.chain.get(), next.get()) == 0) throw std::bad_alloc{};
      static_cast<void>(next.release());
    }
  });
  const std::string text = text_of(from.key);
  const auto bio = made<owned_bio>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  std::string_view password = from.password;
  ERR_clear_error();
  one.key.reset(PEM_read_bio_PrivateKey(bio.get(), nullptr, give_password, &password));
  expect(one.key != nullptr, "read a key from", name_of(from.key));
  expect(X509_check_private_key(one.own.get(), one.key.get()) == 1, "use a key with the certificate of",
         name_of(from.chain));
  return one;
}

// Has the handshake show this certificate. Gives 1, or 0 with an error in OpenSSL's queue.
int use_certificate(SSL* by, const tls_identity& one) noexcept {
  return SSL_use_cert_and_key(by, one.own.get(), one.key.get(), one.chain.get(), 1);
}

bool is_for(const tls_identity& one, std::string_view name) noexcept {
  return X509_check_host(one.own.get(), name.data(), name.size(), X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, nullptr) == 1;
}

std::string to_alpn_wire_format(std::span<const std::string_view> protocols) {
  std::string all;
  for (const std::string_view one : protocols) {
    if (one.empty() || one.size() > 255) refuse(std::errc::invalid_argument, "offer a protocol", one);
    all += static_cast<char>(one.size());
    all += one;
  }
  return all;
}

tls_trust read_trust(const tls::pem& issuers, const tls::pem& revoked) {
  tls_trust all{made<owned_store>(X509_STORE_new()), made<owned_names>(sk_X509_NAME_new_null())};
  X509_STORE* const store = all.store.get();
  if (issuers.is_given()) {
    read_all<owned_certificate>(
        issuers, "read trusted certificates from", next_certificate, [&](owned_certificate one) {
          expect(X509_STORE_add_cert(store, one.get()) == 1, "trust a certificate of", name_of(issuers));
          auto name = made<owned_name>(X509_NAME_dup(X509_get_subject_name(one.get())));
          if (sk_X509_NAME_push(all.names.get(), name.get()) == 0) throw std::bad_alloc{};
          static_cast<void>(name.release());
        });
  } else {
    expect(X509_STORE_set_default_paths(store) == 1, "trust what the system trusts");
  }
  if (!revoked.is_given()) return all;
  read_all<owned_crl>(revoked, "read revocation lists from", next_list, [&](owned_crl one) {
    expect(X509_STORE_add_crl(store, one.get()) == 1, "use a revocation list of", name_of(revoked));
  });
  // CRL_CHECK alone checks only the leaf certificate.
  X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
  return all;
}

const unsigned char* raw(const std::string& text) noexcept {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

// ---- contexts -------------------------------------------------------------------------------------------------------------

void tls_context::begin_context(const SSL_METHOD* by, tls::version least, std::span<const std::string_view> alpn) {
  ERR_clear_error();
  openssl_ = made<owned_context>(SSL_CTX_new(by));
  SSL_CTX* const its = openssl_.get();
  SSL_CTX_set_app_data(its, this);
  constexpr int level = 2;  // at least 112 bits of security: no RSA below 2048 bits, no SHA-1
  SSL_CTX_set_security_level(its, level);
  expect(SSL_CTX_set_min_proto_version(its, least == tls::version::tls13 ? TLS1_3_VERSION : TLS1_2_VERSION) == 1,
         "use TLS");
  SSL_CTX_set_options(its, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(its, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_cert_cb(its, choose_certificate, this);
  protocols_ = to_alpn_wire_format(alpn);
}

tls_context::tls_context(const tls::client_options& options)
    : is_server_{false}, resumes_{options.resumes}, verifies_{options.peer} {
  begin_context(TLS_client_method(), options.least, options.alpn);
  SSL_CTX* const its = openssl_.get();
  if (!protocols_.empty() &&
      SSL_CTX_set_alpn_protos(its, raw(protocols_), static_cast<unsigned>(protocols_.size())) != 0)
    throw std::bad_alloc{};
  if (verifies_ != tls::verify::nothing) {
    trust_ = std::make_shared<const tls_trust>(read_trust(options.trust, options.revoked));
    SSL_CTX_set_verify(its, SSL_VERIFY_PEER, nullptr);
  }
  if (options.own.chain.is_given() || options.own.key.is_given()) reload(options.own, {});
  SSL_CTX_set_session_cache_mode(its,
                                 resumes_ ? SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL : SSL_SESS_CACHE_OFF);
  if (resumes_) SSL_CTX_sess_set_new_cb(its, keep_session);
}

tls_context::tls_context(const tls::server_options& options) : is_server_{true}, resumes_{options.resumes} {
  begin_context(TLS_server_method(), options.least, options.alpn);
  SSL_CTX* const its = openssl_.get();
  if (!protocols_.empty()) SSL_CTX_set_alpn_select_cb(its, choose_protocol, this);
  if (options.clients != tls::client_certificates::none) {
    if (!options.client_trust.is_given())
      refuse(std::errc::invalid_argument, "ask for certificates of clients without .client_trust");
    trust_ = std::make_shared<const tls_trust>(read_trust(options.client_trust, options.revoked));
    SSL_CTX_set_verify(
        its,
        SSL_VERIFY_PEER | (options.clients == tls::client_certificates::required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
        nullptr);
  }
  constexpr unsigned char id[] = "weft";  // OpenSSL resumes no session with client certificates unless an id is set
  SSL_CTX_set_session_ticket_cb(its, date_ticket, check_ticket, this);
  SSL_CTX_set_timeout(its, ticket_keys::ticket_lasts);
  expect(SSL_CTX_set_tlsext_ticket_key_evp_cb(its, choose_ticket_key) == 1, "make tickets");
  SSL_CTX_set_session_id_context(its, id, sizeof id);
  SSL_CTX_set_session_cache_mode(its, SSL_SESS_CACHE_OFF);  // not needed: tickets store sessions at the client
  if (!resumes_) {
    SSL_CTX_set_options(its, SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(its, 0);
  }
  reload(options.certificate, options.others);
}

// Reads the certificates, and tries each with a fresh SSL object: otherwise OpenSSL would refuse a weak one only in handshakes.
tls_identities tls_context::read(const tls::certificate& own, std::span<const tls::certificate> others) const {
  tls_identities all;
  all.reserve(1 + others.size());
  all.push_back(read_identity(own));
  for (const tls::certificate& one : others) all.push_back(read_identity(one));
  for (std::size_t i = 0; i != all.size(); ++i) {
    const auto trial = made<owned_ssl>(SSL_new(openssl_.get()));
    ERR_clear_error();
    expect(use_certificate(trial.get(), all[i]) == 1, "use the certificate of",
           name_of(i == 0 ? own.chain : others[i - 1].chain));
  }
  return all;
}

void tls_context::reload(const tls::certificate& own, std::span<const tls::certificate> others) {
  auto fresh = std::make_shared<const tls_identities>(read(own, others));
  {
    const std::lock_guard guard{lock_};
    identities_.swap(fresh);
  }
  if (!is_server_) sessions_.begin_age();
}

// A session that began before is of an older age, so its ticket is not taken, and a client does not keep it.
void tls_context::reload_trust(const tls::pem& issuers, const tls::pem& revoked) {
  if (!trust_) refuse(std::errc::invalid_argument, "replace trusted issuers of a context that verifies no peer");
  if (is_server_ && !issuers.is_given())
    refuse(std::errc::invalid_argument, "trust no issuers of clients' certificates");
  auto fresh = std::make_shared<const tls_trust>(read_trust(issuers, revoked));
  {
    const std::lock_guard guard{lock_};
    trust_.swap(fresh);
  }
  sessions_.begin_age();
}
void tls_context::use_trust(SSL* its) const {
  std::shared_ptr<const tls_trust> now;
  {
    const std::lock_guard guard{lock_};
    now = trust_;
  }
  if (!now) return;
  if (SSL_set1_verify_cert_store(its, now->store.get()) != 1 || SSL_set1_chain_cert_store(its, now->store.get()) != 1)
    throw std::bad_alloc{};
  if (is_server_) SSL_set_client_CA_list(its, made<owned_names>(SSL_dup_CA_list(now->names.get())).release());
}

std::shared_ptr<const tls_identities> tls_context::identities() const {
  const std::lock_guard guard{lock_};
  return identities_;
}

// OpenSSL's certificate callback: at a server once the client's SNI is known, at a client if the server asks. 1 means success.
int tls_context::choose_certificate(SSL* by, void* self) noexcept {
  const std::shared_ptr<const tls_identities> all = static_cast<tls_context*>(self)->identities();
  if (!all) return 1;
  const char* const given = SSL_get_servername(by, TLSEXT_NAMETYPE_host_name);
  bool has_one = false;
  if (given != nullptr && SSL_is_server(by) != 0 && all->size() > 1)
    // Backwards: of two with the same kind of key OpenSSL uses the one that was set last, which must be the first.
    for (std::size_t i = all->size(); i-- != 0;)
      if (is_for((*all)[i], given)) {
        if (use_certificate(by, (*all)[i]) != 1) return 0;
        has_one = true;
      }
  return has_one ? 1 : use_certificate(by, all->front());
}

int tls_context::choose_protocol(SSL*, const unsigned char** chosen, unsigned char* size, const unsigned char* offered,
                                 unsigned int offered_size, void* self) noexcept {
  const std::string& ours = static_cast<tls_context*>(self)->protocols_;
  unsigned char* found = nullptr;
  const int how =
      SSL_select_next_proto(&found, size, raw(ours), static_cast<unsigned>(ours.size()), offered, offered_size);
  *chosen = found;
  return how == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

// OpenSSL's callback for a new session; mostly during a read. Gives 1 if it takes ownership of the session.
int tls_context::keep_session(SSL* of, SSL_SESSION* one) noexcept {
  const auto* const asked = static_cast<const tls_asked*>(SSL_get_app_data(of));
  if (asked == nullptr || asked->host.empty() || SSL_SESSION_is_resumable(one) == 0) return 0;
  auto* const self = static_cast<tls_context*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(of)));
  owned_session kept{one};
  try {
    self->sessions_.put(*asked, std::move(kept));
  } catch (...) {  // no memory: the next handshake is a full one
  }
  return 1;
}

int tls_context::choose_ticket_key(SSL* by, unsigned char* name, unsigned char* vector, EVP_CIPHER_CTX* cipher,
                                   EVP_MAC_CTX* digest, int encrypts) noexcept {
  auto* const self = static_cast<tls_context*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(by)));
  const int how = self->keys_.set_key(name, vector, cipher, digest, encrypts != 0);
  // A client uses a ticket of TLS 1.3 once, so it is given a new one (2).
  return how == 1 && encrypts == 0 && SSL_version(by) >= TLS1_3_VERSION ? 2 : how;
}

// A ticket has the context's age, as it was when the session began: a client that resumes it is not verified again.
int tls_context::date_ticket(SSL* by, void*) noexcept {
  const std::uint64_t age = static_cast<const tls_asked*>(SSL_get_app_data(by))->age;
  return SSL_SESSION_set1_ticket_appdata(SSL_get_session(by), &age, sizeof age);
}
SSL_TICKET_RETURN tls_context::check_ticket(SSL*, SSL_SESSION* of, const unsigned char*, std::size_t,
                                            SSL_TICKET_STATUS status, void* self) noexcept {
  const bool is_new = status == SSL_TICKET_SUCCESS;
  if (!is_new && status != SSL_TICKET_SUCCESS_RENEW) return SSL_TICKET_RETURN_IGNORE_RENEW;
  void* data = nullptr;
  std::size_t size = 0;
  std::uint64_t age = 0;
  if (SSL_SESSION_get0_ticket_appdata(of, &data, &size) != 1 || size != sizeof age)
    return SSL_TICKET_RETURN_IGNORE_RENEW;
  std::memcpy(&age, data, size);
  if (age != static_cast<tls_context*>(self)->sessions_.age() || has_expired(of)) return SSL_TICKET_RETURN_IGNORE_RENEW;
  return is_new ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

owned_ssl tls_context::begin(const std::string& host) {
  constexpr const char* operation = "begin TLS with";
  ERR_clear_error();
  auto made_ssl = made<owned_ssl>(SSL_new(openssl_.get()));
  SSL* const its = made_ssl.get();
  use_trust(its);
  if (is_server_) {
    SSL_set_accept_state(its);
    return made_ssl;
  }
  SSL_set_connect_state(its);
  const bool is_verified = verifies_ == tls::verify::peer;
  if (host.find('\0') != host.npos || (is_verified && host.empty()))
    refuse(std::errc::invalid_argument, operation, host);
  if (host.empty()) return made_ssl;
  X509_VERIFY_PARAM* const how = SSL_get0_param(its);
  const owned_octets address{a2i_IPADDRESS(host.c_str())};
  ERR_clear_error();
  if (address) {
    if (is_verified) expect(X509_VERIFY_PARAM_set1_ip_asc(how, host.c_str()) == 1, operation, host);
  } else {
    // OpenSSL takes a leading dot to mean any subdomain of the name.
    if (host.starts_with('.') || host.find("..") != host.npos) refuse(std::errc::invalid_argument, operation, host);
    // Names in certificates have no trailing dot.
    const std::string name = host.ends_with('.') ? host.substr(0, host.size() - 1) : host;
    expect(SSL_set_tlsext_host_name(its, name.c_str()) == 1, operation, host);
    X509_VERIFY_PARAM_set_hostflags(how, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    if (is_verified) expect(SSL_set1_host(its, name.c_str()) == 1, operation, host);
  }
  if (resumes_)
    if (const owned_session before = sessions_.take(host)) SSL_set_session(its, before.get());
  return made_ssl;
}

}  // namespace detail

namespace tls {

client_context::client_context(const client_options& options) : core_{std::make_shared<detail::tls_context>(options)} {}
void client_context::reload(const certificate& own) const { core_->reload(own, {}); }
void client_context::reload_trust(const pem& trust, const pem& revoked) const { core_->reload_trust(trust, revoked); }

server_context::server_context(const server_options& options) : core_{std::make_shared<detail::tls_context>(options)} {}
void server_context::reload(const certificate& own, std::span<const certificate> others) const {
  core_->reload(own, others);
}
void server_context::reload_trust(const pem& client_trust, const pem& revoked) const {
  core_->reload_trust(client_trust, revoked);
}

}  // namespace tls
}  // namespace weft
