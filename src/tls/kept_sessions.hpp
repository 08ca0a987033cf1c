// The sessions that a client keeps, to resume them. A server keeps none: its clients do, in tickets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tls/openssl.hpp"

namespace weft::detail {

// The host that a client connects to (a server: empty), and the age of the context when the session began. Each reload begins a
// new age.
struct tls_asked {
  std::string host;
  std::uint64_t age = 0;
};

// A client's sessions that can be resumed, one for each host. When there are too many, the least recently stored one goes. A
// session of TLS 1.3 is used once, so that an observer can't link two connections of a client. A session is not resumed after the
// server's certificate has expired, nor after a reload, since the server would still take the client for the one of its former
// certificate.
class tls_sessions {
 public:
  std::uint64_t age() noexcept;
  void put(const tls_asked& by, owned_session one);
  owned_session take(const std::string& host);
  void begin_age() noexcept;

 private:
  static constexpr std::size_t most = 256;
  struct entry {
    std::string host;
    owned_session session;
  };
  std::mutex lock_;
  std::uint64_t age_ = 0;
  std::list<entry> all_;  // the most recently stored first
  std::unordered_map<std::string_view, std::list<entry>::iterator> by_host_;
};

/// Whether the peer's certificate has expired. OpenSSL does not check: in a resumed handshake the peer shows no certificate.
bool has_expired(const SSL_SESSION* one) noexcept;

}  // namespace weft::detail
