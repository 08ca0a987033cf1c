// The limit of io_uring, for datagrams: one multishot receive into buffers of the ring, and sends from these buffers, which go to
// the system together with the next wait.
#pragma once

#include <liburing.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstdint>

#include "../harness/net/lending_ring.hpp"
#include "../harness/net/server.hpp"
#include "workload.hpp"

namespace bench {

/// Sends each datagram back: to whoever has sent it, where an address has so many bytes; with 0, to the socket's one peer.
class ring_echo {
 public:
  explicit ring_echo(socklen_t address_bytes) {
    header_.msg_namelen = address_bytes;
    ring_.set_up(buffers);
  }

  [[noreturn]] void run() {
    receive();
    ring_.run([this](const io_uring_cqe& each) { handle(each); });
  }

 private:
  static constexpr unsigned buffers = 512;  // more than a socket has room for
  static constexpr unsigned buffer_bytes = 4096;
  static constexpr std::uint64_t of_receive = buffers;  // a send has its buffer's number
  static_assert(buffer_bytes > largest_datagram + sizeof(io_uring_recvmsg_out) + sizeof(sockaddr_storage));

  void receive() {
    io_uring_sqe* next = ring_.take();
    io_uring_prep_recvmsg_multishot(next, listening_socket, &header_, 0);
    lending_ring::borrow(next);
    next->user_data = of_receive;
  }

  void handle(const io_uring_cqe& each) {
    if (each.user_data != of_receive) return ring_.lend(static_cast<unsigned>(each.user_data));
    if (each.res >= 0) send_back(each.flags >> IORING_CQE_BUFFER_SHIFT, each.res);
    if (each.res < 0 && each.res != -ENOBUFS) lending_ring::check(each.res, "recvmsg");
    if ((each.flags & IORING_CQE_F_MORE) == 0) receive();
  }

  void send_back(unsigned buffer, int size) {
    io_uring_recvmsg_out* const got = io_uring_recvmsg_validate(ring_.at(buffer), size, &header_);
    if (got == nullptr) return ring_.lend(buffer);
    io_uring_sqe* next = ring_.take();
    io_uring_prep_send(next, listening_socket, io_uring_recvmsg_payload(got, &header_),
                       io_uring_recvmsg_payload_length(got, size, &header_), 0);
    if (header_.msg_namelen != 0)
      io_uring_prep_send_set_addr(next, static_cast<const sockaddr*>(io_uring_recvmsg_name(got)),
                                  static_cast<std::uint16_t>(got->namelen));
    next->user_data = buffer;
  }

  lending_ring ring_{buffers, buffer_bytes};
  msghdr header_{};  // how large the address before each datagram is
};

}  // namespace bench
