// The keys that encrypt a server's session tickets.
//
// A ticket is the state of a session, encrypted by the server and stored by the client. Whoever gets a ticket key can decrypt the
// TLS 1.2 sessions that were begun or resumed with its tickets, in spite of their ephemeral keys. So each context has keys of its
// own, which never leave it, and makes a new one each hour. Once the last ticket made with a key has expired, the next
// ticket that is made or received erases the key.
//
// The format is that of RFC 5077, section 4, with AES-256-CBC and HMAC-SHA-256, as OpenSSL makes it.
#pragma once

#include <array>
#include <cstddef>
#include <ctime>
#include <mutex>
#include <vector>

#include "tls/openssl.hpp"

namespace weft::detail {

class ticket_keys {
 public:
  static constexpr std::time_t encrypts_for = 3600, ticket_lasts = 2 * 3600;  // seconds

  ticket_keys() = default;
  ticket_keys(const ticket_keys&) = delete;
  ~ticket_keys();

  /// OpenSSL's ticket key callback, for a ticket that is to be made (`encrypts`) or was received. Gives 1: the key is set; 2: it
  /// is set, and the client is to be given a new ticket; 0: there is no such key, so no ticket is used; -1: failure.
  int set_key(unsigned char* name, unsigned char* vector, EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* digest,
              bool encrypts) noexcept;

 private:
  struct key {
    std::array<unsigned char, 16> name;
    std::array<unsigned char, 32> encrypts, signs;
    std::time_t begun_at;
  };
  // The most keys that are kept at a time. The vector reserves so many, and never reallocates: no copy of a key is left in freed
  // memory.
  static constexpr std::size_t most = (encrypts_for + ticket_lasts) / encrypts_for + 1;

  const key* newest(std::time_t now) noexcept;
  void forget_old(std::time_t now) noexcept;

  std::mutex lock_;
  std::vector<key> all_;  // the oldest first
};

}  // namespace weft::detail
