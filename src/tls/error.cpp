// TLS failures as std::error_code: weft's own errc where there is one, OpenSSL's numbers for all others.
#include <cstdio>
#include <string>
#include <weft/tls.hpp>

#include "tls/openssl.hpp"

namespace weft {
namespace {

// One category has three ranges of values: errc, from 1; certificate verification errors (X509_V_ERR_...), from
// first_verification; and OpenSSL's packed errors, which are above first_openssl since they have the library in their high bits.
constexpr int first_verification = 1000, first_openssl = 1 << 20;

class category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "weft tls"; }
  std::string message(int value) const override {
    using enum tls::errc;
    if (value >= first_openssl) {
      const char* const reason = ERR_reason_error_string(static_cast<unsigned long>(value));
      return reason != nullptr ? reason : "error " + std::to_string(value) + " of OpenSSL";
    }
    if (value >= first_verification) return X509_verify_cert_error_string(value - first_verification);
    switch (static_cast<tls::errc>(value)) {
      case truncated: return "the stream has ended without close_notify";
      case not_tls: return "what the peer has sent is no TLS";
      case protocol_version: return "no version of TLS that both sides allow";
      case no_common_cipher: return "no cipher that both sides allow";
      case no_common_protocol: return "no protocol that both sides know";
      case certificate_expired: return "the certificate has expired";
      case certificate_not_yet_valid: return "the certificate is not yet valid";
      case wrong_host: return "the certificate is for another host";
      case self_signed: return "the certificate is self-signed, and not trusted";
      case unknown_issuer: return "the certificate's issuer is not known";
      case weak_certificate: return "the certificate has a weak key or digest";
      case certificate_revoked: return "the certificate was revoked";
      case revocation_unknown: return "no valid list tells whether the certificate was revoked";
      case certificate_required: return "the server requires a certificate";
      case certificate_refused: return "the peer does not accept the certificate";
      case flooded: return "the peer asks for more answers than it reads";
    }
    return "unknown";
  }
  std::error_condition default_error_condition(int) const noexcept override {
    return std::make_error_condition(std::errc::protocol_error);
  }
};

std::error_code named(unsigned long error) noexcept {
  using enum tls::errc;
  if (ERR_GET_REASON(error) == ERR_R_MALLOC_FAILURE) return std::make_error_code(std::errc::not_enough_memory);
  if (ERR_GET_LIB(error) == ERR_LIB_SSL) switch (ERR_GET_REASON(error)) {
      case SSL_R_HTTP_REQUEST:
      case SSL_R_HTTPS_PROXY_REQUEST:
      case SSL_R_WRONG_VERSION_NUMBER: return not_tls;
      case SSL_R_UNSUPPORTED_PROTOCOL:
      case SSL_R_NO_PROTOCOLS_AVAILABLE:
      case SSL_R_VERSION_TOO_LOW:
      case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION: return protocol_version;
      case SSL_R_NO_SHARED_CIPHER: return no_common_cipher;
      case SSL_R_NO_APPLICATION_PROTOCOL:
      case SSL_AD_REASON_OFFSET + SSL_AD_NO_APPLICATION_PROTOCOL: return no_common_protocol;
      case SSL_R_EE_KEY_TOO_SMALL:
      case SSL_R_CA_KEY_TOO_SMALL:
      case SSL_R_CA_MD_TOO_WEAK: return weak_certificate;
      case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED: return certificate_required;
      case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
      case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
      case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
      case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
      case SSL_R_TLSV1_ALERT_UNKNOWN_CA: return certificate_refused;
      default: break;
    }
  return {static_cast<int>(error), tls::category()};
}

}  // namespace

const std::error_category& tls::category() noexcept {
  static const class category one;
  return one;
}

namespace detail {

std::error_code take_tls_error() noexcept {
  const unsigned long error = ERR_peek_error();
  ERR_clear_error();
  if (error == 0) return std::make_error_code(std::errc::protocol_error);
  // An errno value is no packed error of OpenSSL's, so it keeps its own category.
  if (ERR_SYSTEM_ERROR(error)) return {ERR_GET_REASON(error), std::generic_category()};
  return named(error);
}

std::error_code verification_error(long found) noexcept {
  using enum tls::errc;
  switch (found) {
    case X509_V_ERR_CERT_HAS_EXPIRED: return certificate_expired;
    case X509_V_ERR_CERT_NOT_YET_VALID: return certificate_not_yet_valid;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH: return wrong_host;
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT: return self_signed;
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE: return unknown_issuer;
    case X509_V_ERR_EE_KEY_TOO_SMALL:
    case X509_V_ERR_CA_KEY_TOO_SMALL:
    case X509_V_ERR_CA_MD_TOO_WEAK: return weak_certificate;
    case X509_V_ERR_CERT_REVOKED: return certificate_revoked;
    case X509_V_ERR_UNABLE_TO_GET_CRL:
    case X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER:
    case X509_V_ERR_CRL_NOT_YET_VALID:
    case X509_V_ERR_CRL_HAS_EXPIRED:
    case X509_V_ERR_CRL_SIGNATURE_FAILURE: return revocation_unknown;
    case X509_V_ERR_OUT_OF_MEM: return std::make_error_code(std::errc::not_enough_memory);
    default: return {first_verification + static_cast<int>(found), tls::category()};
  }
}

}  // namespace detail
}  // namespace weft
