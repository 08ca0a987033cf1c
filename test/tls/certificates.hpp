// Certificates that the tests make for themselves, by OpenSSL.
#pragma once

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <array>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <weft/tls.hpp>

namespace test {

inline void done(bool is) {
  if (!is) throw std::runtime_error{"OpenSSL has not made what a test needs"};
}

template <class T>
using openssl_object = std::unique_ptr<T, void (*)(T*)>;

/// A certificate and its key, in PEM.
struct credentials {
  std::string chain, key;

  weft::tls::certificate shown() const {
    return {.chain = weft::tls::pem::text(chain), .key = weft::tls::pem::text(key)};
  }
};

struct wanted {
  std::string names = "DNS:here.test";  // as subjectAltName
  long from = -3600, until = 3600;      // seconds from now
  int rsa_bits = 0;                     // 0: a P-256 key
  bool by_sha1 = false;
  bool is_authority = false;
  std::string name = "here.test";
};

/// Whoever issues certificates: of itself, or by another one.
class authority {
 public:
  explicit authority(const std::string& name = "authority", const authority* above = nullptr)
      : key_{make_key(0)}, own_{make(key_.get(), {.names = "", .is_authority = true, .name = name}, above)} {
    if (above != nullptr) chain_ = pem() + above->chain_;
  }

  std::string pem() const { return pem_of(own_.get()); }
  weft::tls::pem trusted() const { return weft::tls::pem::text(text_); }

  credentials issue(const wanted& what = {}) const {
    auto key = make_key(what.rsa_bits);
    const auto one = make(key.get(), what, this);
    return {pem_of(one.get()) + chain_, pem_of(key.get())};
  }
  static credentials self_signed(const wanted& what = {}) {
    auto key = make_key(what.rsa_bits);
    const auto one = make(key.get(), what, nullptr);
    return {pem_of(one.get()), pem_of(key.get())};
  }

  /// A list of what it has revoked.
  std::string revoke(const std::vector<credentials>& those) const {
    openssl_object<X509_CRL> list{X509_CRL_new(), X509_CRL_free};
    done(X509_CRL_set_version(list.get(), 1) == 1);
    done(X509_CRL_set_issuer_name(list.get(), X509_get_subject_name(own_.get())) == 1);
    openssl_object<ASN1_TIME> when{ASN1_TIME_new(), ASN1_TIME_free};
    X509_gmtime_adj(when.get(), -60);
    X509_CRL_set1_lastUpdate(list.get(), when.get());
    X509_gmtime_adj(when.get(), 3600);
    X509_CRL_set1_nextUpdate(list.get(), when.get());
    for (const credentials& one : those) {
      openssl_object<BIO> text{BIO_new_mem_buf(one.chain.data(), static_cast<int>(one.chain.size())), BIO_free_all};
      openssl_object<X509> its{PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr), X509_free};
      X509_REVOKED* const entry = X509_REVOKED_new();
      X509_gmtime_adj(when.get(), -60);
      X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(its.get()));
      X509_REVOKED_set_revocationDate(entry, when.get());
      done(X509_CRL_add0_revoked(list.get(), entry) == 1);
    }
    done(X509_CRL_sign(list.get(), key_.get(), EVP_sha256()) > 0);
    openssl_object<BIO> text{BIO_new(BIO_s_mem()), BIO_free_all};
    done(PEM_write_bio_X509_CRL(text.get(), list.get()) == 1);
    return all_of(text.get());
  }

 private:
  static void free_key(EVP_PKEY* one) { EVP_PKEY_free(one); }
  using owned_key = openssl_object<EVP_PKEY>;
  using owned_x509 = openssl_object<X509>;

  static owned_key make_key(int rsa_bits) {
    EVP_PKEY* const key = rsa_bits != 0 ? EVP_RSA_gen(static_cast<unsigned>(rsa_bits)) : EVP_EC_gen("P-256");
    done(key != nullptr);
    return {key, free_key};
  }
  static std::string all_of(BIO* text) {
    char* from = nullptr;
    const long size = BIO_get_mem_data(text, &from);
    return {from, static_cast<std::size_t>(size)};
  }
  static std::string pem_of(X509* one) {
    openssl_object<BIO> text{BIO_new(BIO_s_mem()), BIO_free_all};
    done(PEM_write_bio_X509(text.get(), one) == 1);
    return all_of(text.get());
  }
  static std::string pem_of(EVP_PKEY* one) {
    openssl_object<BIO> text{BIO_new(BIO_s_mem()), BIO_free_all};
    done(PEM_write_bio_PrivateKey(text.get(), one, nullptr, nullptr, 0, nullptr, nullptr) == 1);
    return all_of(text.get());
  }
  static void extend(X509* one, X509* issuer, int which, const std::string& value) {
    X509V3_CTX with{};
    X509V3_set_ctx(&with, issuer, one, nullptr, nullptr, 0);
    openssl_object<X509_EXTENSION> made{X509V3_EXT_conf_nid(nullptr, &with, which, value.c_str()), X509_EXTENSION_free};
    done(made != nullptr && X509_add_ext(one, made.get(), -1) == 1);
  }
  static owned_x509 make(EVP_PKEY* key, const wanted& what, const authority* by) {
    static std::atomic<long> serial{1};
    owned_x509 made{X509_new(), X509_free};
    X509* const one = made.get();
    X509_set_version(one, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(one), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(one), what.from);
    X509_gmtime_adj(X509_getm_notAfter(one), what.until);
    X509_set_pubkey(one, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(one), "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(what.name.c_str()), -1, -1, 0);
    X509* const issuer = by != nullptr ? by->own_.get() : one;
    X509_set_issuer_name(one, X509_get_subject_name(issuer));
    extend(one, issuer, NID_basic_constraints, what.is_authority ? "critical,CA:TRUE" : "CA:FALSE");
    if (what.is_authority) extend(one, issuer, NID_key_usage, "critical,keyCertSign,cRLSign");
    if (!what.names.empty()) extend(one, issuer, NID_subject_alt_name, what.names);
    extend(one, issuer, NID_subject_key_identifier, "hash");
    done(X509_sign(one, by != nullptr ? by->key_.get() : key, what.by_sha1 ? EVP_sha1() : EVP_sha256()) > 0);
    return made;
  }

  owned_key key_;
  owned_x509 own_;
  std::string chain_;  // what is between what it issues and the root
  std::string text_ = pem();
};

}  // namespace test
