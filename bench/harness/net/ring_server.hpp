// The limit of io_uring, for servers: each thread has a ring, one multishot accept for all of them, a multishot receive a connection
// into buffers of the ring, and sends that go to the system together with the next wait. The ring that accepts sends connections
// to the others in turn.
#pragma once

#include <liburing.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "lending_ring.hpp"
#include "server.hpp"

namespace bench {

/// What becomes of the buffer that a protocol was shown.
enum class after_receive : std::uint8_t {
  lend,   ///< it is the ring's again
  send,   ///< what has come goes back from it
  close,  ///< it is the ring's again, and the connection ends
};

/// `Protocol` is made for each thread, and has
///     after_receive received(ring_server& here, int socket, std::string_view bytes);
///     void closed(int socket);
template <class Protocol>
class ring_server {
 public:
  /// With a buffer for each connection, each of which has one message under way.
  explicit ring_server(std::size_t connections)
      : ring_{static_cast<unsigned>(std::bit_ceil(std::clamp<std::size_t>(connections, 2048, 32'768))), buffer_bytes} {}

  /// Serves as `options` say, for good.
  [[noreturn]] static void serve(const server_options& options) {
    std::vector<std::unique_ptr<ring_server>> all;
    for (std::size_t i = 0; i != options.threads; ++i)
      all.push_back(std::make_unique<ring_server>(options.connections));
    for (std::size_t i = 1; i != options.threads; ++i)
      std::thread{[&all, i] {
        all[i]->set_up();
        all[i]->run(all);
      }}.detach();
    for (std::size_t i = 1; i != options.threads; ++i) all[i]->is_ready_.wait(false, std::memory_order_acquire);
    all[0]->set_up();
    all[0]->accept();
    all[0]->run(all);
  }

  /// Of bytes that stay where they are.
  void send(int socket, std::string_view bytes) {
    io_uring_sqe* next = ring_.take();
    io_uring_prep_send(next, socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_WAITALL);
    next->user_data = tag(kind::ignored, socket);
  }

 private:
  static constexpr unsigned entries = 1024;
  static constexpr unsigned buffer_bytes = 512;

  enum class kind : std::uint8_t { accept, handed, receive, send, ignored };

  static std::uint64_t tag(kind what, int socket, unsigned buffer = 0) {
    return static_cast<std::uint64_t>(what) << 56 | static_cast<std::uint64_t>(buffer) << 32 |
           static_cast<unsigned>(socket);
  }

  // On the thread that runs it.
  void set_up() {
    ring_.set_up(entries);
    is_ready_.store(true, std::memory_order_release);
    is_ready_.notify_all();
  }

  void accept() {
    io_uring_sqe* next = ring_.take();
    io_uring_prep_multishot_accept(next, bench::listening_socket, nullptr, nullptr, SOCK_CLOEXEC);
    next->user_data = tag(kind::accept, 0);
  }

  [[noreturn]] void run(std::vector<std::unique_ptr<ring_server>>& all) {
    ring_.run([&](const io_uring_cqe& each) { handle(each, all); });
  }

  void receive(int socket) {
    io_uring_sqe* next = ring_.take();
    io_uring_prep_recv_multishot(next, socket, nullptr, 0, 0);
    lending_ring::borrow(next);
    next->user_data = tag(kind::receive, socket);
  }

  void handle(const io_uring_cqe& each, std::vector<std::unique_ptr<ring_server>>& all) {
    const int socket = static_cast<int>(each.user_data & 0x7fff'ffff);
    switch (static_cast<kind>(each.user_data >> 56)) {
      case kind::accept: return accepted(each, *all[accepted_++ % all.size()]);
      case kind::handed: return receive(socket);
      case kind::receive: return received(socket, each);
      case kind::send: return ring_.lend(static_cast<unsigned>(each.user_data >> 32 & 0xffff));
      case kind::ignored: return;
    }
  }

  void accepted(const io_uring_cqe& what, ring_server& whose) {
    if ((what.flags & IORING_CQE_F_MORE) == 0) accept();
    if (what.res < 0) return;
    if (&whose == this) return receive(what.res);
    io_uring_sqe* next = ring_.take();
    io_uring_prep_msg_ring(next, whose.ring_.descriptor(), 0, tag(kind::handed, what.res), 0);
    next->user_data = tag(kind::ignored, 0);
  }

  void received(int socket, const io_uring_cqe& what) {
    if (what.res == -ENOBUFS) return receive(socket);
    if (what.res <= 0) {
      protocol_.closed(socket);
      ::close(socket);
      return;
    }
    const unsigned buffer = what.flags >> IORING_CQE_BUFFER_SHIFT;
    const std::string_view bytes{ring_.at(buffer), static_cast<std::size_t>(what.res)};
    const after_receive next = protocol_.received(*this, socket, bytes);
    if (next == after_receive::send) {
      io_uring_sqe* const back = ring_.take();
      io_uring_prep_send(back, socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_WAITALL);
      back->user_data = tag(kind::send, socket, buffer);
    } else {
      ring_.lend(buffer);
    }
    if (next == after_receive::close) ::shutdown(socket, SHUT_RDWR);  // the receive ends, with 0
    if ((what.flags & IORING_CQE_F_MORE) == 0) receive(socket);
  }

  lending_ring ring_;
  std::size_t accepted_ = 0;
  Protocol protocol_;
  std::atomic<bool> is_ready_{false};  // release by its thread -> who sends to it
};

}  // namespace bench
