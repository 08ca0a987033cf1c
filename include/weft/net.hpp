// Streams, by TCP and by Unix sockets: listeners and connections.
//
//     w::task<> echo(w::net::stream peer) {
//       std::array<std::byte, 4096> buffer;
//       while (const std::size_t size = co_await peer.read(buffer)) co_await peer.write(std::span{buffer}.first(size));
//     }
//
// All of it works in tasks, in fibers (weft::await) and on plain threads (sync_wait). A socket that is made inside a runtime is
// waited for by that runtime's workers; any other, by a thread of the process.
//
// Each operation is tried at once. Where it would block, it waits until the socket is ready and is tried again. Except in
// write_zero_copy(), the kernel never holds a caller's buffer: an operation that is stopped while it waits has had no effect,
// and its buffer is free.
//
// Every descriptor is non-blocking and close-on-exec. No operation raises SIGPIPE.
//
// Endpoints are in endpoint.hpp; datagrams, in datagram.hpp; credentials and descriptors that pass through Unix sockets, in
// unix.hpp; waits for descriptors of other libraries, in readiness.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/detail/io/descriptor.hpp>
#include <weft/detail/net/operation.hpp>
#include <weft/detail/net/stream_operation.hpp>
#include <weft/endpoint.hpp>
#include <weft/error.hpp>
#include <weft/readiness.hpp>
#include <weft/task.hpp>

namespace weft::detail {
struct accepting;
class server;
struct receiving;
struct socket_access;
class socket_file;
}  // namespace weft::detail

namespace weft::net {

// ---- streams --------------------------------------------------------------------------------------------------------------

/// What stream::receive() gives: bytes in a buffer that its destructor frees. Any thread may destroy it.
class lent_buffer {
 public:
  lent_buffer() noexcept = default;  ///< makes an empty one, as receive() gives at the end of a stream
  lent_buffer(lent_buffer&& other) noexcept : memory_{std::move(other.memory_)}, size_{std::exchange(other.size_, 0)} {}
  lent_buffer& operator=(lent_buffer&& other) noexcept {
    memory_ = std::move(other.memory_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }
  ~lent_buffer() = default;

  std::span<const std::byte> bytes() const noexcept { return {memory_.get(), size_}; }  ///< as long as the buffer lives
  operator std::span<const std::byte>() const noexcept { return bytes(); }              // NOLINT: stands for it
  /// The same as text: the bytes as they came.
  std::string_view text() const noexcept { return {reinterpret_cast<const char*>(memory_.get()), size_}; }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }

 private:
  friend detail::receiving;
  lent_buffer(std::unique_ptr<std::byte[]> memory, std::size_t size) noexcept
      : memory_{std::move(memory)}, size_{size} {}

  std::unique_ptr<std::byte[]> memory_;
  std::size_t size_ = 0;
};

}  // namespace weft::net

namespace weft::detail {

struct receiving {
  using value_type = net::lent_buffer;
  static constexpr const char* name = "receive";
  static constexpr const char* if_taken = reading::if_taken;
  static constexpr std::size_t size = std::size_t{16} * 1024;
  static constexpr direction which() noexcept { return direction::in; }
  bool may_try() const noexcept { return at->may_try(which()); }
  // Only now a buffer is needed.
  tried attempt() noexcept {
    memory.reset(new (std::nothrow) std::byte[size]);
    if (!memory) return {.refused = std::make_error_code(std::errc::not_enough_memory)};
    const tried got = try_receive(*at, {memory.get(), size});
    if (got.must_wait) memory.reset();
    return got;
  }
  net::lent_buffer give(const tried& got) noexcept { return {std::move(memory), got.size}; }

  descriptor* at;
  std::unique_ptr<std::byte[]> memory{};
};

}  // namespace weft::detail

namespace weft::net {

/// A connection, by TCP or by a Unix socket. At a time one task may read and one may write.
///
/// Threads   any thread may call it, but move, destroy or release it only while no other thread uses it. close() may be called
///           while a read or a write waits, which then fails with errc::closed.
/// Lifetime  a read or a write that waits when the stream is destroyed fails with errc::closed; it does not touch the stream.
///           The runtime in which the stream was made outlives it.
class stream {
 public:
  /// Makes a stream without a connection: every operation fails with errc::closed.
  stream() noexcept = default;
  stream(stream&& other) noexcept : at_{std::exchange(other.at_, nullptr)} {}
  stream& operator=(stream&& other) noexcept {
    stream old{std::move(*this)};
    at_ = std::exchange(other.at_, nullptr);
    return *this;
  }
  ~stream() {
    if (at_ != nullptr) at_->drop();
  }

  /// Takes over a connected socket, which becomes non-blocking and close-on-exec. Throws error; the socket is then still the
  /// caller's.
  static stream adopt(int number);

  /// Reads the bytes that have arrived, at most as many as `into` holds, and gives how many. 0: the peer has ended what it
  /// sends, or `into` is empty.
  ///
  /// Suspends  where no bytes have arrived, and after 128 operations in a row that did not suspend.
  /// Cancel    a stopped read has taken nothing.
  /// Fails     with the system's error, such as connection_reset; with errc::closed after close() of this stream.
  /// Misuse    two tasks that read at once end the program with a sentence.
  /// Cost      one system call where bytes have arrived; only the first read of a stream makes one in vain. 112 bytes in the
  ///           caller's frame.
  detail::operation<detail::reading> read(std::span<std::byte> into) const noexcept { return {{at_, into}}; }
  /// The same into several parts, by one system call. Each part is filled before the next one, and of more than 64 parts only
  /// the first 64 may be. Gives how many bytes it has read into all of them.
  ///
  /// Lifetime  the array of parts must not change until the read has ended.
  ///
  ///     const std::array<std::span<std::byte>, 2> parts{header, body};
  ///     const std::size_t size = co_await peer.read(parts);
  template <class = void>  // so that read({}) is the one above
  detail::operation<detail::reading_parts> read(std::span<const std::span<std::byte>> parts) const noexcept {
    return detail::reading_parts{at_, parts};
  }

  /// Reads the bytes that have arrived, up to 16 KiB, into a new buffer, which is allocated only when there is something to
  /// read: an idle connection needs none. Gives an empty one where the peer has ended what it sends. Otherwise as read().
  ///
  /// Fails     also with not_enough_memory, before it has read anything.
  /// Cost      that of read(), and an allocation of 16 KiB.
  ///
  ///     while (const w::net::lent_buffer got = co_await peer.receive(); !got.empty()) co_await peer.write(got);
  detail::operation<detail::receiving> receive() const noexcept { return detail::receiving{at_}; }

  /// Writes a first part of `data`, at least one byte unless it is empty, and gives its size.
  ///
  /// Suspends  where the socket's buffer is full, and after 128 operations in a row that did not suspend.
  /// Cancel    a stopped call has written nothing.
  /// Fails     with the system's error, such as connection_reset; with errc::closed where the peer takes nothing more, and after
  ///           shutdown() or close().
  /// Misuse    two tasks that write at once end the program with a sentence.
  detail::operation<detail::writing_some> write_some(std::span<const std::byte> data) const noexcept {
    return {{at_, data}};
  }
  /// The same from several parts, one after the other, by one system call, which takes at most 64 of them. Gives how many bytes
  /// it has written from all of them. The array of parts must not change until the call has ended.
  template <class = void>  // so that write_some({}) is the one above
  detail::operation<detail::writing_some_parts> write_some(
      std::span<const std::span<const std::byte>> parts) const noexcept {
    return detail::writing_some_parts{at_, parts};
  }

  /// Writes all of `data`. Otherwise as write_some().
  ///
  /// Cancel    a write that is stopped, or fails, before its first byte has no effect. After that the peer has got an
  ///           incomplete message, so the write side is closed, and later writes fail with errc::closed.
  detail::writing write(std::span<const std::byte> data) const noexcept { return detail::writing{at_, data}; }
  detail::writing write(std::string_view text) const noexcept { return write(std::as_bytes(std::span{text})); }
  /// The same from several parts, one after the other, by as few system calls as possible. The write changes the array of
  /// parts, which outlives it.
  detail::writing write(std::span<std::span<const std::byte>> parts) const noexcept {
    return detail::writing{at_, parts};
  }

  /// Writes all of `data` without copying it: the kernel sends from the caller's memory (MSG_ZEROCOPY, Linux 4.14). For large
  /// pieces over a network. Fewer than zero_copy_least bytes, and writes to a Unix socket, are copied, as by write(). Once the
  /// kernel reports that it has copied nevertheless, as over loopback, or refuses, as with kTLS, all later writes of the stream
  /// are, too.
  ///
  /// Suspends  until the kernel no longer needs `data`: if it has made no copy, until the peer's kernel has acknowledged all of
  ///           it, which does not mean that the peer has read it.
  /// Cancel    a write that is stopped before its first byte has no effect. After that the connection is reset, since the
  ///           kernel would hold `data` until the peer acknowledges it; the stream's reads then fail, too. `data` is free in
  ///           either case.
  /// Fails     as write(), with the same effect as a stop; also where the connection ends before the acknowledgement.
  /// Lifetime  `data` must not change until the write has ended.
  /// Misuse    it counts as a write. Of a socket that was adopted, no other code may have zero-copy writes under way.
  /// Cost      that of a write without the copy, and 6 us for the kernel's report; the pages count against RLIMIT_MEMLOCK.
  WEFT_COROUTINE_WRAPPER task<> write_zero_copy(std::span<const std::byte> data) const {
    return detail::write_zero_copy(at_, data);
  }
  /// From this many bytes on the report costs less than the copy: 6 us against some 100 us a MiB, measured over loopback.
  static constexpr std::size_t zero_copy_least = std::size_t{64} * 1024;

  /// Sends `size` bytes of a file from `offset` on, without copying them through the program (sendfile). Gives how many bytes
  /// it has sent: fewer where the file ends before. A caller that has announced more to its peer then closes the stream.
  ///
  /// Suspends  where the socket's buffer is full, and after 128 pieces of up to 128 KiB in a row.
  /// Cancel    as write(): after its first byte it closes the write side.
  /// Fails     as write(), with the same effect; with the file's error, such as io_error, or resource_unavailable_try_again
  ///           where there is nothing to read yet. With invalid_seek for a pipe or a socket, which have no positions: use
  ///           io::copy().
  /// Lifetime  the caller keeps the descriptor `file` open until the call has ended. Its position does not change.
  /// Misuse    it counts as a write.
  /// Cost      for each piece one system call and five short ones (which keep SIGPIPE blocked). The worker waits for the disk
  ///           where the bytes are not in the page cache: read a large cold file ahead by `blocking(readahead, ...)`.
  WEFT_COROUTINE_WRAPPER task<std::uint64_t> send_file(int file, std::uint64_t offset = 0,
                                                       std::uint64_t size = static_cast<std::uint64_t>(-1)) const {
    return detail::send_file(at_, {file, offset, size});
  }

  /// Ends what this side sends: the peer reads all of it, then 0. What the peer sends can still be read. Does not suspend.
  /// Throws error.
  void shutdown() const;
  /// Closes the connection in both directions. A read or a write that waits fails with errc::closed. Does not suspend; may be
  /// called again.
  void close() noexcept {
    if (at_ != nullptr) at_->close();
  }
  bool is_open() const noexcept { return at_ != nullptr && !at_->is_closed(); }

  /// Gives its descriptor to the caller, who closes it. Only while no read and no write is under way.
  [[nodiscard("the descriptor is nobody's then")]] int release() noexcept;
  /// Its descriptor, which still belongs to the stream; -1: none. The caller may have duplicated it, so from this call on the
  /// destructor does not end the connection: shutdown() does, and close() while a read or a write waits.
  int native_handle() const noexcept { return at_ != nullptr ? at_->shown_number() : -1; }

  endpoint local() const;  ///< this side's address; throws error
  endpoint peer() const;   ///< the other side's address; throws error

  // ---- options; none suspends, and all throw error

  /// Whether small writes are sent at once (TCP_NODELAY). They are by default: otherwise the system holds back the second of
  /// two small writes until the first is acknowledged, up to 40 ms.
  void set_no_delay(bool on) const;
  /// Whether the system probes an idle connection (SO_KEEPALIVE): if the peer is gone, reads fail with timed_out.
  void set_keep_alive(bool on) const;
  /// Sets the size of the system's buffer, in bytes, of which Linux makes twice as many.
  void set_receive_buffer(int bytes) const;
  /// The same for what is sent.
  void set_send_buffer(int bytes) const;

 private:
  friend detail::accepting;
  friend detail::server;
  friend detail::socket_access;
  friend task<stream> connect(endpoint to);
  explicit stream(detail::descriptor& at) noexcept : at_{&at} {}
  static stream take_over(int number, bool is_unix);

  detail::descriptor* at_ = nullptr;
};

/// Connects to an address. For the name of a host, see resolve.hpp.
///
/// Suspends  until the peer's system answers. To a Unix socket, only while the listener's queue is full: the system does not
///           tell when there is room, so it is tried again after 1 ms, and then after up to 64 ms.
/// Cancel    gives the attempt up, and closes its socket.
/// Fails     with the system's error: connection_refused, network_unreachable, no_such_file_or_directory, ...
task<stream> connect(endpoint to);

// ---- listeners ------------------------------------------------------------------------------------------------------------

}  // namespace weft::net

namespace weft::detail {

struct accepting {
  using value_type = net::stream;
  static constexpr const char* name = "accept";
  static constexpr const char* if_taken = nullptr;
  static constexpr direction which() noexcept { return direction::in; }
  bool may_try() const noexcept { return at->may_try(which()); }
  tried attempt() const noexcept { return try_accept(*at); }
  net::stream give(const tried& got) const { return net::stream::take_over(static_cast<int>(got.size), at->is_unix()); }

  descriptor* at;
};

}  // namespace weft::detail

namespace weft::net {

/// How a listener is made.
struct listen_options {
  int backlog = 1024;  ///< how many connections may wait to be accepted; the system may allow fewer
  /// A server can restart while the system still remembers its old connections (SO_REUSEADDR).
  bool reuse_address = true;
  bool reuse_port = false;     ///< several listeners share the port, and the system spreads connections (SO_REUSEPORT)
  bool only_v6 = false;        ///< of an IPv6 address: takes no IPv4 connections
  bool replace_stale = false;  ///< of a Unix path: removes a socket there that nobody listens on, as a crash leaves it
};

/// A socket that accepts connections. Several tasks may accept at once. Threads and lifetime are those of a stream.
///
/// The socket file that listen() has made for a Unix path is removed when the listener is closed, unless another file is there
/// by then. A copy of the listener in a child of fork() removes nothing.
class listener {
 public:
  listener() noexcept = default;
  listener(listener&& other) noexcept
      : at_{std::exchange(other.at_, nullptr)}, file_{std::exchange(other.file_, nullptr)} {}
  listener& operator=(listener&& other) noexcept {
    listener old{std::move(*this)};
    at_ = std::exchange(other.at_, nullptr);
    file_ = std::exchange(other.file_, nullptr);
    return *this;
  }
  ~listener() {
    if (at_ == nullptr) return;
    remove_file(true);
    at_->drop();
  }

  /// Takes over a listening socket, as stream::adopt().
  static listener adopt(int number);

  /// Gives the next connection. Skips connections that their peers have given up.
  ///
  /// Suspends  where no connection waits, and after 128 operations in a row that did not suspend.
  /// Cancel    a stopped call has accepted nothing: the connection goes to the next call.
  /// Fails     with the system's error, such as too_many_files_open, after which it may be called again; with errc::closed.
  /// Cost      one system call for each connection.
  detail::operation<detail::accepting> accept() const noexcept { return {{at_}}; }

  /// The address that it listens on, with the port that the system has chosen if 0 was asked for. Throws error.
  endpoint local() const;
  void close() noexcept {
    if (at_ == nullptr) return;
    remove_file(false);
    at_->close();
  }
  bool is_open() const noexcept { return at_ != nullptr && !at_->is_closed(); }
  int native_handle() const noexcept { return at_ != nullptr ? at_->shown_number() : -1; }

 private:
  friend detail::server;
  friend task<listener> listen(listen_options options, endpoint where);
  explicit listener(detail::descriptor& at, detail::socket_file* file = nullptr) noexcept : at_{&at}, file_{file} {}
  void remove_file(bool is_last) noexcept;

  detail::descriptor* at_ = nullptr;
  detail::socket_file* file_ = nullptr;  // of a Unix path
};

/// Listens on the address `where`; for port 0 the system chooses one. Does not suspend.
///
/// Fails   with the system's error: address_in_use, permission_denied, ...
/// Misuse  with .replace_stale, two programs that start at the same moment may take each other's path: lock a file beside it
///         first if that can happen. A program that listens there already sees one connection, which ends at once.
task<listener> listen(listen_options options, endpoint where);
WEFT_COROUTINE_WRAPPER inline task<listener> listen(endpoint where) { return listen({}, where); }
/// Makes `count` listeners, at least one, that share a port. Each has its own queue, and the system spreads connections over
/// them. For port 0 all take the one that the system chooses for the first.
///
/// Fails  as listen(); also where a listener that does not share the port has it.
task<std::vector<listener>> listen_many(listen_options options, endpoint where, std::size_t count);

}  // namespace weft::net
