// The keys of a server's session tickets.
//
// A ticket is what a server would have to remember of a session, encrypted, and kept by the client. Whoever gets a key of tickets
// can read the sessions of TLS 1.2 that were begun or resumed by its tickets, whatever was agreed on in them. So each context has
// keys of its own, which never leave it, a new one encrypts each hour, and the last ticket of a key has expired when the key goes.
//
// What a ticket is made of: RFC 5077, section 4, with AES-256-CBC and HMAC-SHA-256, as OpenSSL makes them.
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

  /// As OpenSSL asks for a key: of a ticket that is to be made, or of one that has come. What it wants to hear: 1, well; 2, well,
  /// and the client gets a new one; 0, there is no such key, so there is no ticket; below that, a failure.
  int begin(unsigned char* name, unsigned char* vector, EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* digest,
            bool encrypts) noexcept;

 private:
  struct key {
    std::array<unsigned char, 16> name;
    std::array<unsigned char, 32> encrypts, signs;
    std::time_t begun_at;
  };
  // Of whole hours that are in sight, and of one that has begun: so that no key is left behind in memory that was given back.
  static constexpr std::size_t most = (encrypts_for + ticket_lasts) / encrypts_for + 1;

  const key* newest(std::time_t now) noexcept;
  void forget_old(std::time_t now) noexcept;

  std::mutex lock_;
  std::vector<key> all_;  // the newest last
};

}  // namespace weft::detail
