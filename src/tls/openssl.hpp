// Owners (unique_ptr) for OpenSSL's objects, and the translation of its errors.
#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <new>
#include <system_error>

namespace weft::detail {

template <auto Free>
struct frees {
  template <class T>
  void operator()(T* one) const noexcept {
    Free(one);
  }
};
struct frees_certificates {
  void operator()(STACK_OF(X509) * all) const noexcept { sk_X509_pop_free(all, X509_free); }
};
struct frees_names {
  void operator()(STACK_OF(X509_NAME) * all) const noexcept { sk_X509_NAME_pop_free(all, X509_NAME_free); }
};
using owned_bio = std::unique_ptr<BIO, frees<BIO_free_all>>;
using owned_context = std::unique_ptr<SSL_CTX, frees<SSL_CTX_free>>;
using owned_ssl = std::unique_ptr<SSL, frees<SSL_free>>;
using owned_session = std::unique_ptr<SSL_SESSION, frees<SSL_SESSION_free>>;
using owned_certificate = std::unique_ptr<X509, frees<X509_free>>;
using owned_certificates = std::unique_ptr<STACK_OF(X509), frees_certificates>;
using owned_crl = std::unique_ptr<X509_CRL, frees<X509_CRL_free>>;
using owned_store = std::unique_ptr<X509_STORE, frees<X509_STORE_free>>;
using owned_name = std::unique_ptr<X509_NAME, frees<X509_NAME_free>>;
using owned_names = std::unique_ptr<STACK_OF(X509_NAME), frees_names>;
using owned_key = std::unique_ptr<EVP_PKEY, frees<EVP_PKEY_free>>;
using owned_octets = std::unique_ptr<ASN1_OCTET_STRING, frees<ASN1_OCTET_STRING_free>>;

/// Takes ownership of what a function of OpenSSL's has made. Throws std::bad_alloc if that is null.
template <class Owner>
Owner made(typename Owner::pointer one) {
  if (one == nullptr) throw std::bad_alloc{};
  return Owner{one};
}

/// Takes the first error of OpenSSL's error queue, and clears the queue.
std::error_code take_tls_error() noexcept;
/// The error code for an X509_V_ERR_... value.
std::error_code verification_error(long found) noexcept;

}  // namespace weft::detail
