// The interface between a TLS session and the transport that it runs over. Part of tls.hpp.
//
// OpenSSL reads from `tls_input`, and writes into a buffer of the session. So it never waits, and never sees a socket. The tasks
// that use the session fill the input and send the output through the transport, without holding the session's lock.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <weft/detail/net/operation.hpp>
#include <weft/detail/task/as_task.hpp>
#include <weft/io.hpp>
#include <weft/net.hpp>
#include <weft/task.hpp>

namespace weft::detail {

struct tls_access;
class tls_context;
class tls_session;

/// Received bytes that were not decrypted yet: at most one record with its header. Allocated only while it holds bytes, or while
/// a transport reads that needs its buffer in advance.
class tls_input {
 public:
  static constexpr std::size_t capacity = std::size_t{17} * 1024;

  bool empty() const noexcept { return begin_ == end_; }
  std::span<const std::byte> held() const noexcept { return {memory_.get() + begin_, end_ - begin_}; }
  void consume(std::size_t size) noexcept { begin_ += size; }

  /// The whole buffer, to be filled. Called only while nothing is held. An empty span: there is no memory.
  std::span<std::byte> room() noexcept {
    if (!memory_) memory_.reset(new (std::nothrow) std::byte[capacity]);
    begin_ = end_ = 0;
    return {memory_.get(), memory_ ? capacity : 0};
  }
  void filled(std::size_t size) noexcept {
    WEFT_EXPECTS(size <= capacity, "a reader has said that it gave more bytes than it was given room for");
    end_ = size;
  }
  void release() noexcept {
    memory_.reset();
    begin_ = end_ = 0;
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::size_t begin_ = 0, end_ = 0;
};

/// The transport of a session, with its type erased.
class tls_transport {
 public:
  tls_transport() = default;
  tls_transport(const tls_transport&) = delete;
  virtual ~tls_transport() = default;

  /// Reads into `into`, which is empty, and gives the number of bytes. 0: the end. If stopped or failed, it has read nothing.
  virtual task<std::size_t> fill(tls_input& into) = 0;
  /// Writes all of `data`.
  virtual task<> send(std::span<const std::byte> data) = 0;
  /// Writes what can be written without waiting, and gives its size, and why no more where it fails. Nothing where the transport
  /// has no call that never waits.
  virtual tried try_send(std::span<const std::byte> data) noexcept = 0;
  virtual void close() noexcept = 0;
};

task<std::size_t> tls_fill(net::stream& from, tls_input& into);
tried tls_try_send(net::stream& to, std::span<const std::byte> data) noexcept;

template <class Transport>
class tls_transport_over final : public tls_transport {
 public:
  explicit tls_transport_over(Transport&& on) noexcept : on_{std::move(on)} {}

  Transport& get() noexcept { return on_; }

  WEFT_COROUTINE_WRAPPER task<std::size_t> fill(tls_input& into) override {
    if constexpr (std::same_as<Transport, net::stream>) {
      return tls_fill(on_, into);
    } else {
      return fill_by_reads(into);
    }
  }
  WEFT_COROUTINE_WRAPPER task<> send(std::span<const std::byte> data) override { return as_task(on_.write(data)); }
  tried try_send([[maybe_unused]] std::span<const std::byte> data) noexcept override {
    if constexpr (std::same_as<Transport, net::stream>)
      return tls_try_send(on_, data);
    else
      return {};
  }
  void close() noexcept override {
    if constexpr (requires { on_.close(); }) on_.close();
  }

 private:
  task<std::size_t> fill_by_reads(tls_input& into) {
    const std::span<std::byte> room = into.room();
    if (room.empty()) throw std::bad_alloc{};
    const std::size_t got = co_await on_.read(room);
    into.filled(got);
    co_return got;
  }

  Transport on_;
};

/// The operations of `tls::stream`, for any transport. Null: the stream has no session.
using tls_session_of = std::shared_ptr<tls_session>;
/// Throws error where `host` can't be a host, and std::bad_alloc.
tls_session_of tls_begin(std::shared_ptr<tls_context> by, std::unique_ptr<tls_transport> over, const std::string& host);
task<> tls_handshake(tls_session_of of);
task<std::size_t> tls_read(tls_session_of of, std::span<std::byte> into);
task<std::size_t> tls_write_some(tls_session_of of, std::span<const std::byte> data);
task<> tls_write(tls_session_of of, std::span<const std::byte> data);
task<> tls_shutdown(tls_session_of of);
void tls_close(tls_session& of) noexcept;
bool tls_is_open(const tls_session& of) noexcept;

}  // namespace weft::detail
