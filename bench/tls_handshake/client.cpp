// tls_handshake: a client connects, does a handshake of TLS 1.3, sends a byte, gets it back, says that this was all, and comes anew.
// One item is such a connection, and its time the server's processor time for it. --size 1: a full handshake; 2: a session of before
// is resumed, by a ticket that is used once. The servers are those of tls_echo.
#include <string>
#include <vector>

#include "../harness/net/tls_client.hpp"
#include "../tls_echo/workload.hpp"

namespace {

using bench::must;

using session = std::unique_ptr<SSL_SESSION, void (*)(SSL_SESSION*)>;

class client {
 public:
  client(const bench::server_process& to, bool resumes) : to_{to}, resumes_{resumes} {
    if (resumes_) connect();  // for the first ticket
  }

  /// How many were as they should be.
  std::size_t play(std::size_t connections) {
    std::size_t right = 0;
    for (std::size_t i = 0; i != connections; ++i) right += connect() == resumes_ ? 1 : 0;
    return right;
  }

 private:
  // Whether it was resumed.
  bool connect() {
    const bench::tls_client one{to_, context_.get(), number_++, before_.get()};
    std::vector<char> byte{'x'};
    one.send(byte);
    one.receive(byte);  // and the tickets
    if (resumes_) before_.reset(SSL_get1_session(one.ssl()));
    const bool was_resumed = SSL_session_reused(one.ssl()) == 1;
    SSL_shutdown(one.ssl());
    return was_resumed;
  }

  const bench::server_process& to_;
  const bool resumes_;
  std::size_t number_ = 0;
  bench::tls_context context_ = bench::make_tls_context();
  session before_{nullptr, SSL_SESSION_free};
};

}  // namespace

void bench::run(state& state) {
  const credentials own;
  const server_process server{state, {"1", std::to_string(largest_message), "1", own.chain(), own.key()}};
  client one{server, state.size() == 2};
  constexpr std::size_t connections = 200;
  state.measure(static_cast<double>(connections), connections, [&] { return one.play(connections); });
}
