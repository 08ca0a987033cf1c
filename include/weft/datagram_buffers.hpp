// What is received and sent as datagrams, one or many by one system call, and buffers for those that come. Part of
// datagram.hpp.
//
//     w::net::incoming_buffers buffers{16, 2048};
//     for (;;) {
//       const std::size_t count = co_await socket.receive_batch(buffers);
//       for (std::size_t i = 0; i != count; ++i) use(buffers[i].bytes(), buffers[i].from);
//     }
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <weft/detail/base/config.hpp>
#include <weft/endpoint.hpp>

namespace weft::net {

/// What one receive has put into its buffer.
struct received {
  std::size_t size = 0;       ///< bytes in the buffer; 0 for an empty datagram
  std::size_t full_size = 0;  ///< bytes that were sent; those that did not fit into the buffer are lost
  /// Where set_merges_received() is on: the buffer has several datagrams of one sender, one behind the other, of this many
  /// bytes each; the last may have fewer. 0: it has one datagram.
  std::size_t segment = 0;

  bool is_truncated() const noexcept { return full_size > size; }  ///< whether the buffer was too small
};
/// A datagram that was received, and who has sent it.
struct received_from : received {
  endpoint from;  ///< the sender; of a Unix socket without a name it has no path, and can't be answered
};

/// A buffer for receive_batch(), and the datagram that was received into it.
struct incoming : received_from {
  std::span<std::byte> into;

  std::span<std::byte> bytes() const noexcept { return into.first(size); }  ///< what was received
};

/// A datagram for send_batch().
struct outgoing {
  std::span<const std::byte> data;
  endpoint to{};  ///< 0.0.0.0:0: the socket's peer
};

/// Buffers of one size for receive_batch(), in one piece of memory.
class incoming_buffers {
 public:
  /// `count` buffers of `size` bytes each, neither 0. Throws std::bad_alloc.
  incoming_buffers(std::size_t count, std::size_t size)
      : bytes_{new std::byte[all_bytes(count, size)]}, all_{new incoming[count]}, count_{count} {
    for (std::size_t i = 0; i != count; ++i) all_[i].into = {bytes_.get() + i * size, size};
  }

  std::size_t size() const noexcept { return count_; }
  incoming& operator[](std::size_t index) const noexcept { return all_[index]; }
  incoming* begin() const noexcept { return all_.get(); }
  incoming* end() const noexcept { return all_.get() + count_; }
  operator std::span<incoming>() const noexcept { return {all_.get(), count_}; }  // NOLINT: stands for them

 private:
  static std::size_t all_bytes(std::size_t count, std::size_t size) {
    WEFT_EXPECTS(count != 0 && size != 0, "buffers for no datagrams, or of no bytes, were asked for");
    if (count > static_cast<std::size_t>(-1) / size) throw std::bad_array_new_length{};
    return count * size;
  }

  std::unique_ptr<std::byte[]> bytes_;
  std::unique_ptr<incoming[]> all_;
  std::size_t count_;
};

}  // namespace weft::net
