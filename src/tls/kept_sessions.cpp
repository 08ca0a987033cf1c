#include "tls/kept_sessions.hpp"

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <utility>

namespace weft::detail {

bool has_expired(const SSL_SESSION* one) noexcept {
  const X509* const its = SSL_SESSION_get0_peer(const_cast<SSL_SESSION*>(one));  // NOLINT: it is only read
  return its != nullptr && X509_cmp_time(X509_get0_notAfter(its), nullptr) <= 0;
}

std::uint64_t tls_sessions::age() noexcept {
  const std::lock_guard guard{lock_};
  return age_;
}

void tls_sessions::begin_age() noexcept {
  const std::lock_guard guard{lock_};
  ++age_;
  by_host_.clear();
  all_.clear();
}

void tls_sessions::put(const tls_asked& by, owned_session one) {
  const std::string& host = by.host;
  const std::lock_guard guard{lock_};
  if (by.age != age_) return;
  if (const auto there = by_host_.find(host); there != by_host_.end()) {
    there->second->session = std::move(one);
    all_.splice(all_.begin(), all_, there->second);
    return;
  }
  all_.push_front({host, std::move(one)});
  try {
    by_host_.emplace(all_.front().host, all_.begin());
  } catch (...) {
    all_.pop_front();
    throw;
  }
  if (all_.size() <= most) return;
  by_host_.erase(all_.back().host);
  all_.pop_back();
}

owned_session tls_sessions::take(const std::string& host) {
  const std::lock_guard guard{lock_};
  const auto there = by_host_.find(host);
  if (there == by_host_.end()) return {};
  SSL_SESSION* const its = there->second->session.get();
  const bool is_over = has_expired(its);
  if (!is_over && SSL_SESSION_get_protocol_version(its) < TLS1_3_VERSION) {
    SSL_SESSION_up_ref(its);
    return owned_session{its};
  }
  owned_session one = std::move(there->second->session);
  const auto at = there->second;
  by_host_.erase(there);
  all_.erase(at);
  if (is_over) return {};
  return one;
}

}  // namespace weft::detail
