// In the clock: what the server's process does from a message's coming to its answer, the system's work in its calls included. Not
// in it: connecting, handshakes, the client.
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "../harness/net/client.hpp"
#include "../harness/net/server.hpp"
#include "workload.hpp"

namespace {

void must(bool holds, const char* what) {
  if (!holds) throw bench::wrong_result{what};
}

// A certificate and its key, in files of their own.
class credentials {
 public:
  credentials() {
    must(::mkdtemp(directory_.data()) != nullptr, "no directory");
    EVP_PKEY* const key = EVP_EC_gen("P-256");
    X509* const one = X509_new();
    X509_set_version(one, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(one), 1);
    X509_gmtime_adj(X509_getm_notBefore(one), -3600);
    X509_gmtime_adj(X509_getm_notAfter(one), 3600);
    X509_set_pubkey(one, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(one), "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>("here.test"), -1, -1, 0);
    X509_set_issuer_name(one, X509_get_subject_name(one));
    must(X509_sign(one, key, EVP_sha256()) > 0, "no certificate");
    std::FILE* file = std::fopen(chain().c_str(), "we");
    must(file != nullptr && PEM_write_X509(file, one) == 1, "no certificate");
    std::fclose(file);
    file = std::fopen(this->key().c_str(), "we");
    must(file != nullptr && PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr) == 1, "no key");
    std::fclose(file);
    X509_free(one);
    EVP_PKEY_free(key);
  }
  credentials(const credentials&) = delete;
  ~credentials() {
    ::unlink(chain().c_str());
    ::unlink(key().c_str());
    ::rmdir(directory_.c_str());
  }
  std::string chain() const { return directory_ + "/chain.pem"; }
  std::string key() const { return directory_ + "/key.pem"; }

 private:
  std::string directory_ = "/tmp/weft-bench-XXXXXX";
};

class client {
 public:
  client(const bench::server_process& to, SSL_CTX* by, std::size_t number)
      : at_{to, number}, ssl_{SSL_new(by), SSL_free} {
    SSL_set_fd(ssl_.get(), at_.socket());
    must(SSL_connect(ssl_.get()) == 1, "no handshake");
  }

  int socket() const noexcept { return at_.socket(); }
  void send(const std::vector<char>& message) const {
    must(SSL_write(ssl_.get(), message.data(), static_cast<int>(message.size())) == static_cast<int>(message.size()),
         "a message was not sent");
  }
  // Blocks until all of it has come.
  bool receive(std::vector<char>& into) const {
    for (std::size_t have = 0; have != into.size();) {
      const int got = SSL_read(ssl_.get(), into.data() + have, static_cast<int>(into.size() - have));
      must(got > 0, "the server has closed a connection");
      have += static_cast<std::size_t>(got);
    }
    return true;
  }

 private:
  bench::connection at_;
  std::unique_ptr<SSL, void (*)(SSL*)> ssl_;
};

class clients {
 public:
  clients(const bench::server_process& to, SSL_CTX* by, std::size_t bytes)
      : set_{::epoll_create1(EPOLL_CLOEXEC)}, message_(bytes), answer_(bytes) {
    for (std::size_t i = 0; i != bytes; ++i) message_[i] = static_cast<char>(i * 7);
    all_.reserve(bench::clients);
    for (std::size_t i = 0; i != bench::clients; ++i) {
      client& made = all_.emplace_back(to, by, i);
      epoll_event wanted{.events = EPOLLIN, .data = {.u64 = i}};
      must(::epoll_ctl(set_, EPOLL_CTL_ADD, made.socket(), &wanted) == 0, "epoll_ctl failed");
      made.send(message_);
      made.receive(answer_);
    }
  }
  clients(const clients&) = delete;
  ~clients() { ::close(set_); }

  // A closed loop. How many have come back right.
  std::size_t play(std::size_t messages) {
    std::size_t sent = 0, right = 0, answered = 0;
    for (const client& each : all_) {
      each.send(message_);
      ++sent;
    }
    std::array<epoll_event, bench::clients> events;
    while (answered != messages) {
      const int count = ::epoll_wait(set_, events.data(), static_cast<int>(events.size()), -1);
      for (int i = 0; i < count; ++i) {
        const client& each = all_[events[static_cast<std::size_t>(i)].data.u64];
        each.receive(answer_);
        ++answered;
        right += answer_ == message_ ? 1 : 0;
        if (sent == messages) continue;
        each.send(message_);
        ++sent;
      }
    }
    return right;
  }

 private:
  int set_;
  std::vector<char> message_, answer_;
  std::vector<client> all_;
};

}  // namespace

void bench::run(state& state) {
  constexpr std::size_t few = 2000, many = 10'000;  // in one call
  const credentials own;
  const server_process server{
      state, {"1", std::to_string(largest_message), std::to_string(bench::clients), own.chain(), own.key()}};
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context{SSL_CTX_new(TLS_client_method()), SSL_CTX_free};
  must(SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) == 1 &&
           SSL_CTX_set_ciphersuites(context.get(), "TLS_AES_128_GCM_SHA256") == 1,
       "no TLS 1.3");
  ::clients all{server, context.get(), state.size()};
  const std::size_t messages = state.size() > 1000 ? few : many;
  state.measure(static_cast<double>(messages), messages, [&] { return all.play(messages); });
}
