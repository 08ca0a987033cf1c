#include "tls/ticket_keys.hpp"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <algorithm>
#include <new>

namespace weft::detail {

ticket_keys::~ticket_keys() {
  for (key& one : all_) OPENSSL_cleanse(&one, sizeof one);
}

// Also erases keys that were made after `now`, which happens if the clock was set back: such a key would be used for too long.
void ticket_keys::forget_old(std::time_t now) noexcept {
  const auto is_over = [now](const key& one) {
    return now < one.begun_at || now - one.begun_at >= encrypts_for + ticket_lasts;
  };
  const auto end = std::remove_if(all_.begin(), all_.end(), is_over);
  for (auto one = end; one != all_.end(); ++one) OPENSSL_cleanse(&*one, sizeof *one);
  all_.erase(end, all_.end());
}

// The key that encrypts now; makes a new one each hour. Null: there is no memory, or no random bytes.
const ticket_keys::key* ticket_keys::newest(std::time_t now) noexcept {
  if (!all_.empty() && now - all_.back().begun_at < encrypts_for) return &all_.back();
  key fresh{};
  fresh.begun_at = now;
  if (RAND_bytes(fresh.name.data(), static_cast<int>(fresh.name.size())) != 1 ||
      RAND_priv_bytes(fresh.encrypts.data(), static_cast<int>(fresh.encrypts.size())) != 1 ||
      RAND_priv_bytes(fresh.signs.data(), static_cast<int>(fresh.signs.size())) != 1)
    return nullptr;
  try {
    if (all_.capacity() == 0) all_.reserve(most);
    all_.push_back(fresh);
  } catch (const std::bad_alloc&) {
    OPENSSL_cleanse(&fresh, sizeof fresh);
    return nullptr;
  }
  OPENSSL_cleanse(&fresh, sizeof fresh);
  return &all_.back();
}

int ticket_keys::set_key(unsigned char* name, unsigned char* vector, EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* digest,
                         bool encrypts) noexcept {
  const std::lock_guard guard{lock_};
  const std::time_t now = std::time(nullptr);
  forget_old(now);
  const key* by = nullptr;
  if (encrypts) {
    by = newest(now);
    if (by == nullptr || RAND_bytes(vector, EVP_CIPHER_get_iv_length(EVP_aes_256_cbc())) != 1) return 0;
    std::copy(by->name.begin(), by->name.end(), name);
  } else {
    const auto is_it = [name](const key& one) { return std::equal(one.name.begin(), one.name.end(), name); };
    const auto found = std::find_if(all_.begin(), all_.end(), is_it);
    if (found == all_.end()) return 0;
    by = &*found;
  }
  char sha256[] = "SHA256";
  const OSSL_PARAM how[] = {OSSL_PARAM_construct_octet_string(
                                OSSL_MAC_PARAM_KEY, const_cast<unsigned char*>(by->signs.data()),  // NOLINT: read
                                by->signs.size()),
                            OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, sha256, 0),
                            OSSL_PARAM_construct_end()};
  if (EVP_MAC_CTX_set_params(digest, how) != 1 ||
      EVP_CipherInit_ex(cipher, EVP_aes_256_cbc(), nullptr, by->encrypts.data(), vector, encrypts ? 1 : 0) != 1)
    return -1;
  return encrypts || by == &all_.back() ? 1 : 2;
}

}  // namespace weft::detail
