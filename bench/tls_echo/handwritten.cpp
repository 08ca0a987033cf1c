// The limit of OpenSSL on epoll: level-triggered, so that a message takes one read, of all that has come, and no other one that finds
// nothing; one buffer a thread.
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>

#include "../harness/net/server.hpp"
#include "workload.hpp"

namespace {

void end(SSL* peer) {
  ::close(SSL_get_fd(peer));
  SSL_free(peer);
}

void echo(SSL* peer) {
  static std::array<char, bench::largest_message> buffer;
  do {
    const int size = SSL_read(peer, buffer.data(), static_cast<int>(buffer.size()));
    if (size <= 0) {
      if (SSL_get_error(peer, size) != SSL_ERROR_WANT_READ) end(peer);
      return;
    }
    if (SSL_write(peer, buffer.data(), size) != size) return end(peer);  // a peer that does not read
  } while (SSL_has_pending(peer) != 0);
}

}  // namespace

int main(int, char** words) {
  std::signal(SIGPIPE, SIG_IGN);
  SSL_CTX* const context = SSL_CTX_new(TLS_server_method());
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  if (SSL_CTX_use_certificate_chain_file(context, words[4]) != 1 ||
      SSL_CTX_use_PrivateKey_file(context, words[5], SSL_FILETYPE_PEM) != 1)
    return 1;
  const int set = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event wanted{.events = EPOLLIN, .data = {.ptr = nullptr}};
  ::epoll_ctl(set, EPOLL_CTL_ADD, bench::listening_socket, &wanted);
  for (std::array<epoll_event, 256> events;;) {
    const int count = ::epoll_wait(set, events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < count; ++i) {
      if (auto* const peer = static_cast<SSL*>(events[static_cast<std::size_t>(i)].data.ptr); peer != nullptr) {
        echo(peer);
        continue;
      }
      for (int socket;
           (socket = ::accept4(bench::listening_socket, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
        SSL* const made = SSL_new(context);
        SSL_set_fd(made, socket);
        SSL_set_accept_state(made);
        epoll_event its{.events = EPOLLIN, .data = {.ptr = made}};
        ::epoll_ctl(set, EPOLL_CTL_ADD, socket, &its);
      }
    }
  }
}
