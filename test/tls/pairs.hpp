// Clients and servers for tests of TLS, and what they say to each other.
#pragma once

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <weft/combine.hpp>
#include <weft/io.hpp>
#include <weft/tls.hpp>

#include "net/sockets.hpp"
#include "tls/certificates.hpp"

namespace test {

inline const authority& root() {
  static const authority one;
  return one;
}
inline weft::tls::client_context client_of(const authority& trusted) {
  return weft::tls::client_context{{.trust = trusted.trusted()}};
}
inline weft::tls::server_context server_of(const authority& by) {
  const credentials own = by.issue();
  return weft::tls::server_context{{.certificate = own.shown()}};
}

inline std::string letters(std::size_t count) {
  std::string text(count, '\0');
  for (std::size_t i = 0; i != count; ++i) text[i] = static_cast<char>('a' + i % 26 + i / 1000 % 2);
  return text;
}

template <class Transport>
struct pair_of {
  weft::tls::stream<Transport> here, there;
};

template <class Transport>
task<pair_of<Transport>> handshake(weft::tls::client_context client, weft::tls::server_context server, Transport here,
                                   Transport there, std::string host = "here.test") {
  auto both =
      weft::when_all(weft::tls::connect(client, std::move(here), host), weft::tls::accept(server, std::move(there)));
  auto [one, other] = co_await std::move(both);
  co_return pair_of<Transport>{std::move(one), std::move(other)};
}
inline task<pair_of<weft::net::stream>> handshake(weft::tls::client_context client, weft::tls::server_context server,
                                                  std::string host = "here.test") {
  connection raw = co_await connected_by_tcp();
  co_return co_await handshake(std::move(client), std::move(server), std::move(raw.here), std::move(raw.there),
                               std::move(host));
}

// How each side's handshake has ended; and, where the client's was well, its first read behind it.
struct outcome {
  std::error_code here, there, here_later;
  std::string subject_there;
};
inline task<outcome> try_handshake(weft::tls::client_context client, weft::tls::server_context server,
                                   std::string host = "here.test") {
  connection raw = co_await connected_by_tcp();
  outcome how;
  const auto connects = [&]() -> task<> {
    auto connecting = as_result(weft::tls::connect(client, std::move(raw.here), host));
    auto got = co_await std::move(connecting);
    how.here = got.error();
    if (!got.has_value()) {
      how.here_later = how.here;
      co_return;
    }
    std::array<std::byte, 4> buffer;
    how.here_later = (co_await as_result(got->read(buffer))).error();
  };
  const auto accepts = [&]() -> task<> {
    auto accepting = as_result(weft::tls::accept(server, std::move(raw.there)));
    auto got = co_await std::move(accepting);
    how.there = got.error();
    if (!got.has_value()) co_return;
    if (const auto its = got->peer_certificate()) how.subject_there = its->subject;
    static_cast<void>(co_await as_result(got->shutdown()));
  };
  co_await weft::when_all(connects(), accepts());
  co_return how;
}

template <class Stream>
task<std::string> read_to_end(const Stream& from) {
  std::string text;
  std::array<std::byte, 4096> buffer;
  while (const std::size_t got = co_await from.read(buffer))
    text.append(reinterpret_cast<const char*>(buffer.data()), got);
  co_return text;
}
template <class Stream>
task<std::string> read_some(const Stream& from, std::size_t most) {
  std::string text(most, '\0');
  text.resize(co_await from.read(std::as_writable_bytes(std::span{text})));
  co_return text;
}
template <class Stream>
task<> say(const Stream& to, std::string text) {
  co_await to.write(text);
  co_await to.shutdown();
}

// ---- pipes ----------------------------------------------------------------------------------------------------------------

struct duplex {
  weft::io::pipe_reader in;
  weft::io::pipe_writer out;
  auto read(std::span<std::byte> into) const { return in.read(into); }
  auto write_some(std::span<const std::byte> data) const { return out.write_some(data); }
  auto write(std::span<const std::byte> data) const { return out.write(data); }
  void close() noexcept {
    in.close();
    out.close();
  }
};
struct duplexes {
  duplex here, there;
};
inline duplexes pipes(std::size_t capacity) {
  weft::io::pipe_ends one = weft::io::pipe(capacity), other = weft::io::pipe(capacity);
  return {{std::move(one.from), std::move(other.to)}, {std::move(other.from), std::move(one.to)}};
}

// ---- OpenSSL by hand ------------------------------------------------------------------------------------------------------

// One side of a session by OpenSSL itself, which blocks its thread: it does what weft would refuse to.
class openssl_peer {
 public:
  // A server, if it has credentials of its own.
  explicit openssl_peer(int number, const credentials* own = nullptr, int most = TLS1_3_VERSION)
      : number_{number},
        context_{SSL_CTX_new(own != nullptr ? TLS_server_method() : TLS_client_method()), SSL_CTX_free},
        ssl_{nullptr, SSL_free} {
    sigset_t pipe;  // on this thread
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    SSL_CTX_set_security_level(context_.get(), 0);
    if (most < TLS1_2_VERSION) SSL_CTX_set_min_proto_version(context_.get(), most);
    SSL_CTX_set_max_proto_version(context_.get(), most);
    if (own != nullptr) use(*own);
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), number_);
    if (own != nullptr)
      SSL_set_accept_state(ssl_.get());
    else
      SSL_set_connect_state(ssl_.get());
  }
  openssl_peer(const openssl_peer&) = delete;
  ~openssl_peer() {
    ssl_.reset();
    ::close(number_);
    ERR_clear_error();
  }

  SSL* get() const noexcept { return ssl_.get(); }
  SSL_CTX* context() const noexcept { return context_.get(); }
  bool handshake() const { return SSL_do_handshake(get()) == 1; }
  std::string read(std::size_t most = 4096) const {
    std::string text(most, '\0');
    const int got = SSL_read(get(), text.data(), static_cast<int>(most));
    text.resize(static_cast<std::size_t>(std::max(got, 0)));
    return text;
  }
  bool write(std::string_view text) const {
    return SSL_write(get(), text.data(), static_cast<int>(text.size())) == static_cast<int>(text.size());
  }

 private:
  void use(const credentials& own) const {
    openssl_object<BIO> text{BIO_new_mem_buf(own.chain.data(), -1), BIO_free_all};
    openssl_object<BIO> key{BIO_new_mem_buf(own.key.data(), -1), BIO_free_all};
    bool is_first = true;
    while (X509* const one = PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr)) {
      if (std::exchange(is_first, false)) {
        done(SSL_CTX_use_certificate(context_.get(), one) == 1);
        X509_free(one);
      } else {
        done(SSL_CTX_add_extra_chain_cert(context_.get(), one) == 1);
      }
    }
    ERR_clear_error();
    openssl_object<EVP_PKEY> its{PEM_read_bio_PrivateKey(key.get(), nullptr, nullptr, nullptr), EVP_PKEY_free};
    done(SSL_CTX_use_PrivateKey(context_.get(), its.get()) == 1);
  }

  int number_;
  openssl_object<SSL_CTX> context_;
  openssl_object<SSL> ssl_;
};

struct with_number {
  weft::net::stream here;
  int there;
};
inline with_number connected_to_number() {
  int both[2];
  done(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both) == 0);
  return {weft::net::stream::adopt(both[0]), both[1]};
}

// How a handshake with a server by OpenSSL ends, which has such credentials as weft would not take for itself.
inline task<std::error_code> against_openssl(weft::tls::client_context client, credentials own, std::string host) {
  with_number raw = connected_to_number();
  std::jthread server{[number = raw.there, own] {
    const openssl_peer peer{number, &own};
    if (peer.handshake()) static_cast<void>(peer.read());
  }};
  auto connecting = as_result(weft::tls::connect(client, std::move(raw.here), host));
  auto got = co_await std::move(connecting);
  const std::error_code how = got.error();
  if (got.has_value()) got->close();
  co_return how;
}

// ---- files ----------------------------------------------------------------------------------------------------------------

class own_directory {
 public:
  own_directory() {
    std::string name = (std::filesystem::temp_directory_path() / "weft-tls-XXXXXX").string();
    done(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  own_directory(const own_directory&) = delete;
  ~own_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string path(const char* name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline std::string encrypted(const std::string& key, std::string password) {
  openssl_object<BIO> text{BIO_new_mem_buf(key.data(), -1), BIO_free_all}, into{BIO_new(BIO_s_mem()), BIO_free_all};
  openssl_object<EVP_PKEY> its{PEM_read_bio_PrivateKey(text.get(), nullptr, nullptr, nullptr), EVP_PKEY_free};
  done(PEM_write_bio_PKCS8PrivateKey(into.get(), its.get(), EVP_aes_128_cbc(), password.data(),
                                     static_cast<int>(password.size()), nullptr, nullptr) == 1);
  char* from = nullptr;
  const long size = BIO_get_mem_data(into.get(), &from);
  return {from, static_cast<std::size_t>(size)};
}

}  // namespace test
