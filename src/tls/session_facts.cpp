// The accessors of a session: its protocol, cipher and names, and the peer's certificate.
#include <arpa/inet.h>

#include <cstddef>
#include <ctime>
#include <string>
#include <utility>
#include <vector>
#include <weft/tls.hpp>

#include "tls/session.hpp"

namespace weft::detail {
namespace {

using owned_names = std::unique_ptr<GENERAL_NAMES, frees<GENERAL_NAMES_free>>;

std::string text_of(const X509_NAME* name) {
  const auto into = made<owned_bio>(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(into.get(), name, 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB);
  char* text = nullptr;
  const long size = BIO_get_mem_data(into.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

std::string bytes_of(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

std::string serial_of(const X509* one) {
  const std::unique_ptr<BIGNUM, frees<BN_free>> number{ASN1_INTEGER_to_BN(X509_get0_serialNumber(one), nullptr)};
  char* const digits = number ? BN_bn2hex(number.get()) : nullptr;
  if (digits == nullptr) throw std::bad_alloc{};
  const std::string text = digits;
  OPENSSL_free(digits);
  return text;
}

std::string address_of(const ASN1_OCTET_STRING* address) {
  const std::string bytes = bytes_of(address);
  char text[INET6_ADDRSTRLEN]{};
  ::inet_ntop(bytes.size() == sizeof(in_addr) ? AF_INET : AF_INET6, bytes.data(), text, sizeof text);
  return text;
}

std::vector<std::string> names_of(const X509* one) {
  std::vector<std::string> all;
  const owned_names names{static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(one, NID_subject_alt_name, nullptr, nullptr))};
  for (int i = 0, count = names ? sk_GENERAL_NAME_num(names.get()) : 0; i != count; ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS) all.push_back(bytes_of(name->d.dNSName));
    const int size = name->type == GEN_IPADD ? ASN1_STRING_length(name->d.iPAddress) : 0;
    if (size == sizeof(in_addr) || size == sizeof(in6_addr)) all.push_back(address_of(name->d.iPAddress));
  }
  return all;
}

std::chrono::system_clock::time_point time_of(const ASN1_TIME* when) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(when, &parts) != 1) return {};
  using clock = std::chrono::system_clock;
  const std::time_t seconds = ::timegm(&parts);
  constexpr auto most =
      std::chrono::duration_cast<std::chrono::seconds>(clock::time_point::max().time_since_epoch()).count();
  if (seconds >= most) return clock::time_point::max();
  if (seconds <= -most) return clock::time_point::min();
  return clock::from_time_t(seconds);
}

}  // namespace

std::optional<tls::certificate_info> tls_session::peer_certificate() {
  const guard held{lock_};
  ERR_clear_error();
  X509* const its = SSL_get0_peer_certificate(openssl_.get());
  if (its == nullptr) return std::nullopt;
  tls::certificate_info one{.subject = text_of(X509_get_subject_name(its)),
                            .issuer = text_of(X509_get_issuer_name(its)),
                            .serial = serial_of(its),
                            .names = names_of(its),
                            .not_before = time_of(X509_get0_notBefore(its)),
                            .not_after = time_of(X509_get0_notAfter(its)),
                            .sha256 = {},
                            .der = {}};
  unsigned size = 0;
  X509_digest(its, EVP_sha256(), reinterpret_cast<unsigned char*>(one.sha256.data()), &size);
  one.der.resize(static_cast<std::size_t>(std::max(i2d_X509(its, nullptr), 0)));
  auto* into = reinterpret_cast<unsigned char*>(one.der.data());
  if (!one.der.empty()) i2d_X509(its, &into);
  return one;
}

std::string tls_session::fact(tls_fact which) {
  const guard held{lock_};
  const SSL* const its = openssl_.get();
  const auto text = [](const char* known) { return std::string{known != nullptr ? known : ""}; };
  switch (which) {
    case tls_fact::version: return text(SSL_get_version(its));
    case tls_fact::cipher: return text(SSL_CIPHER_get_name(SSL_get_current_cipher(its)));
    case tls_fact::server_name: return text(SSL_get_servername(its, TLSEXT_NAMETYPE_host_name));
    case tls_fact::alpn: break;
  }
  const unsigned char* protocol = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(its, &protocol, &size);
  return size == 0 ? std::string{} : std::string{reinterpret_cast<const char*>(protocol), size};
}

bool tls_session::is_resumed() noexcept {
  const guard held{lock_};
  return SSL_session_reused(openssl_.get()) != 0;
}

}  // namespace weft::detail
