// What clients of servers by TLS have in common: a certificate, made anew for each, and OpenSSL's side of a connection, whose calls
// block. TLS 1.3 with AES-128-GCM, and a key of P-256, for all.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "client.hpp"

namespace bench {

inline void must(bool holds, const char* what) {
  if (!holds) throw wrong_result{what};
}

// A certificate and its key, in files of their own.
class credentials {
 public:
  credentials() {
    must(::mkdtemp(directory_.data()) != nullptr, "no directory");
    EVP_PKEY* const key = EVP_EC_gen("P-256");
    X509* const one = X509_new();
    X509_set_version(one, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(one), 1);
    X509_gmtime_adj(X509_getm_notBefore(one), -3600);
    X509_gmtime_adj(X509_getm_notAfter(one), 3600);
    X509_set_pubkey(one, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(one), "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>("here.test"), -1, -1, 0);
    X509_set_issuer_name(one, X509_get_subject_name(one));
    must(X509_sign(one, key, EVP_sha256()) > 0, "no certificate");
    std::FILE* file = std::fopen(chain().c_str(), "we");
    must(file != nullptr && PEM_write_X509(file, one) == 1, "no certificate");
    std::fclose(file);
    file = std::fopen(this->key().c_str(), "we");
    must(file != nullptr && PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr) == 1, "no key");
    std::fclose(file);
    X509_free(one);
    EVP_PKEY_free(key);
  }
  credentials(const credentials&) = delete;
  ~credentials() {
    ::unlink(chain().c_str());
    ::unlink(key().c_str());
    ::rmdir(directory_.c_str());
  }
  std::string chain() const { return directory_ + "/chain.pem"; }
  std::string key() const { return directory_ + "/key.pem"; }

 private:
  std::string directory_ = "/tmp/weft-bench-XXXXXX";
};

using tls_context = std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)>;
inline tls_context make_tls_context() {
  tls_context made{SSL_CTX_new(TLS_client_method()), SSL_CTX_free};
  must(SSL_CTX_set_min_proto_version(made.get(), TLS1_3_VERSION) == 1 &&
           SSL_CTX_set_ciphersuites(made.get(), "TLS_AES_128_GCM_SHA256") == 1,
       "no TLS 1.3");
  return made;
}

class tls_client {
 public:
  /// `session`: of one before, or null.
  tls_client(const server_process& to, SSL_CTX* by, std::size_t number, SSL_SESSION* session = nullptr)
      : at_{to, number}, ssl_{SSL_new(by), SSL_free} {
    SSL_set_fd(ssl_.get(), at_.socket());
    if (session != nullptr) must(SSL_set_session(ssl_.get(), session) == 1, "no session");
    must(SSL_connect(ssl_.get()) == 1, "no handshake");
  }

  int socket() const noexcept { return at_.socket(); }
  const connection& at() const noexcept { return at_; }
  SSL* ssl() const noexcept { return ssl_.get(); }
  void send(const std::vector<char>& message) const {
    must(SSL_write(ssl_.get(), message.data(), static_cast<int>(message.size())) == static_cast<int>(message.size()),
         "a message was not sent");
  }
  // Blocks until all of it has come.
  bool receive(std::vector<char>& into) const {
    for (std::size_t have = 0; have != into.size();) {
      const int got = SSL_read(ssl_.get(), into.data() + have, static_cast<int>(into.size() - have));
      must(got > 0, "the server has closed a connection");
      have += static_cast<std::size_t>(got);
    }
    return true;
  }

 private:
  connection at_;
  std::unique_ptr<SSL, void (*)(SSL*)> ssl_;
};

}  // namespace bench
