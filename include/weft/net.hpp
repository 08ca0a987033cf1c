// Streams, by TCP and by Unix sockets: listeners and connections.
//
//     w::task<> echo(w::net::stream peer) {
//       std::array<std::byte, 4096> buffer;
//       while (const std::size_t size = co_await peer.read(buffer)) co_await peer.write(std::span{buffer}.first(size));
//     }
//
// All of it works in tasks, in fibers (weft::await) and on plain threads (sync_wait). Inside of a runtime its workers wait
// for sockets, elsewhere a thread of the process.
//
// The kernel never holds a caller's buffer, but for write_zero_copy: each operation is tried at once, and where it can't go on,
// it waits until the socket is ready and is tried again. So one that is stopped while it waits has had no effect, and its buffer
// is free.
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

/// What a stream has received, in a buffer that is the library's: it goes back when this goes, on whatever thread.
class lent_buffer {
 public:
  lent_buffer() noexcept = default;  ///< empty, as at the end of a stream
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

/// A connection, by TCP or by Unix sockets. Reads and writes are for one task at a time each, and both may go on at once.
///
/// Threads   any, but for moves, destruction and release(), which are for when nothing else goes on; close() may come while
///           a read or a write waits, which ends with the error `closed`.
/// Lifetime  a read or a write that is under way keeps what it needs of a stream that is destroyed; it fails with `closed`.
///           The runtime in which it was made outlives it.
class stream {
 public:
  /// None: every operation fails with `closed`.
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

  /// Takes over a connected socket, which becomes non-blocking and close-on-exec. Throws error; then it is the caller's
  /// still.
  static stream adopt(int number);

  /// Reads what has come, as much as `into` holds. 0: the peer has closed its side, or `into` is empty.
  ///
  /// Suspends  only where nothing has come, and after 128 operations in a row that did not.
  /// Cancel    has had no effect.
  /// Fails     with an error of the system's, such as connection_reset; `closed` where this was closed here.
  /// Misuse    two tasks that read at once end the program with a sentence.
  /// Cost      one system call where something has come; none that fails, but for a stream's first.
  detail::operation<detail::reading> read(std::span<std::byte> into) const noexcept { return {{at_, into}}; }
  /// The same into several parts, one after the other, by one system call: a part is filled before the next one begins. Gives
  /// how many bytes there are in all of them together; 0: the end, or all of them are empty. Of more than 64 parts it may fill
  /// only the first 64.
  ///
  /// Lifetime  the array of parts stays, and stays the same, until this has ended.
  ///
  ///     const std::array<std::span<std::byte>, 2> parts{header, body};
  ///     const std::size_t size = co_await peer.read(parts);
  template <class = void>  // so that read({}) is the one above
  detail::operation<detail::reading_parts> read(std::span<const std::span<std::byte>> parts) const noexcept {
    return detail::reading_parts{at_, parts};
  }

  /// Reads what has come, up to 16 KiB, into a buffer that is lent for it: one that waits has none, so an idle connection
  /// costs no buffer. Empty: the peer has closed its side. Otherwise as read().
  ///
  /// Fails     with not_enough_memory, too; nothing has been read then.
  /// Cost      that of read(), and an allocation of 16 KiB.
  ///
  ///     while (const w::net::lent_buffer got = co_await peer.receive(); !got.empty()) co_await peer.write(got);
  detail::operation<detail::receiving> receive() const noexcept { return detail::receiving{at_}; }

  /// Writes some of it, at least a byte, unless it is empty. Otherwise as read(), in the other direction.
  detail::operation<detail::writing_some> write_some(std::span<const std::byte> data) const noexcept {
    return {{at_, data}};
  }
  /// The same from several parts, one after the other, by one system call, which takes of the first 64 at most. Gives how many
  /// bytes it has sent of all of them together; the array of parts, which stays until this has ended, stays the same.
  template <class = void>  // so that write_some({}) is the one above
  detail::operation<detail::writing_some_parts> write_some(
      std::span<const std::span<const std::byte>> parts) const noexcept {
    return detail::writing_some_parts{at_, parts};
  }

  /// Writes all of it.
  ///
  /// Cancel    one that is stopped, or fails, before its first byte has had no effect. After that the peer can't tell what it
  ///           has from what it lacks: so the stream's write side is closed, and later writes fail with `closed`.
  detail::writing write(std::span<const std::byte> data) const noexcept { return detail::writing{at_, data}; }
  detail::writing write(std::string_view text) const noexcept { return write(std::as_bytes(std::span{text})); }
  /// The same for several parts, one after the other, by as few system calls as the system allows. The array of parts, which
  /// changes meanwhile, stays until this has ended.
  detail::writing write(std::span<std::span<const std::byte>> parts) const noexcept {
    return detail::writing{at_, parts};
  }

  /// Writes all of it, from where it is: the system sends from `data` instead of a copy (MSG_ZEROCOPY, Linux 4.14), and this ends
  /// when it has let go of that. For large pieces over a network; what has fewer than zero_copy_least bytes, or goes by a Unix
  /// socket, is written as by write(), and so is all that follows on a stream of which the system says that it has copied
  /// nevertheless, as over loopback, or that takes nothing lent, as with kTLS.
  ///
  /// Suspends  until the system needs `data` no more: where it makes no copy, until the peer's system has acknowledged all. As of
  ///           write(), that is no word of the peer's that it has read it.
  /// Cancel    before its first byte it has had no effect. After that, until it has ended, the connection is reset, since the
  ///           system would keep the memory for as long as the peer likes: the stream's reads fail then, too. `data` is free when
  ///           this has ended, however that is.
  /// Fails     as write(); likewise. Also where all was lent, and the connection had ended before this has.
  /// Lifetime  `data` stays as it is until this has ended.
  /// Misuse    as of write(), of which it is one. A socket that was adopted has nothing lent by others.
  /// Cost      that of a write without its copy, and 6 us for a report of the system's; pages count against the limit of locked
  ///           memory.
  WEFT_COROUTINE_WRAPPER task<> write_zero_copy(std::span<const std::byte> data) const {
    return detail::write_zero_copy(at_, data);
  }
  /// From so many bytes on a report costs less than a copy: 6 us beside some 100 us a MiB, as measured over loopback.
  static constexpr std::size_t zero_copy_least = std::size_t{64} * 1024;

  /// Sends `size` bytes of a file, from `offset` on, without a copy through the program (sendfile). Gives how many it has sent:
  /// fewer where the file ends before, also one that has been cut meanwhile. Who has promised more to its peer then closes the
  /// stream.
  ///
  /// Suspends  where there is no room, and after 128 pieces of up to 128 KiB that had some.
  /// Cancel    as write(): after its first byte it closes the stream's write side.
  /// Fails     as write(), likewise; with an error of the file's, such as io_error, or resource_unavailable_try_again of one that
  ///           has nothing yet; invalid_seek for a pipe or a socket, which
  ///           have no positions: io::copy() passes on what those give.
  /// Lifetime  the file's descriptor, which stays the caller's, is open until this has ended. Its own position stays.
  /// Misuse    as of write(), of which it is one.
  /// Cost      a system call and five short ones a piece (no SIGPIPE must come of it). What is not in the system's cache is read
  ///           from its disk meanwhile, and the worker waits for that: have large cold files read ahead by
  ///           `blocking(readahead, ...)`, or read them by that and write() them.
  WEFT_COROUTINE_WRAPPER task<std::uint64_t> send_file(int file, std::uint64_t offset = 0,
                                                       std::uint64_t size = static_cast<std::uint64_t>(-1)) const {
    return detail::send_file(at_, {file, offset, size});
  }

  /// Closes its write side: the peer reads to the end, then 0. Does not wait. Throws error.
  void shutdown() const;
  /// Closes it in both directions. Who reads or writes ends with `closed`. Does not wait, and may be called again.
  void close() noexcept {
    if (at_ != nullptr) at_->close();
  }
  bool is_open() const noexcept { return at_ != nullptr && !at_->is_closed(); }

  /// Gives its descriptor to the caller; where nothing reads or writes.
  [[nodiscard("the descriptor is nobody's then")]] int release() noexcept;
  /// Its descriptor, which stays its own; -1: none. Who asks may make a duplicate of it: the connection is shut down then only
  /// by shutdown(), and where it is closed while a read or a write waits.
  int native_handle() const noexcept { return at_ != nullptr ? at_->shown_number() : -1; }

  endpoint local() const;  ///< throws error
  endpoint peer() const;   ///< throws error

  /// Whether small writes are sent at once. They are unless it is turned off: otherwise the system holds back the second of
  /// two small writes until the first is acknowledged, up to 40 ms. Throws error, as the following.
  void set_no_delay(bool on) const;
  void set_keep_alive(bool on) const;
  /// In bytes, as the system takes them: Linux doubles it.
  void set_receive_buffer(int bytes) const;
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

/// Connects.
///
/// Suspends  until the peer's system answers. Of a Unix socket, only while the listener has no room: nothing tells when it has,
///           so it is tried again after 1 ms, and then after up to 64 ms.
/// Cancel    closes the attempt.
/// Fails     with an error of the system's: connection_refused, network_unreachable, no_such_file_or_directory, ...
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
  int backlog = 1024;          ///< how many connections wait to be accepted; the system may allow fewer
  bool reuse_address = true;   ///< a server that starts again need not wait for its old connections to be forgotten
  bool reuse_port = false;     ///< several listeners share the port, and the system spreads connections
  bool only_v6 = false;        ///< of an IPv6 address: takes no IPv4 connections
  bool replace_stale = false;  ///< of a Unix path: removes a socket there that nobody listens on, as a crash leaves it
};

/// What connections are accepted from. As a stream, but that several tasks may accept at once.
///
/// The file of a Unix path, which listen() has made, is removed when the listener is closed, unless another one is there by
/// then. A copy that a fork() has made removes nothing.
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

  /// The next connection. One that its peer has given up meanwhile is passed over.
  ///
  /// Cancel    has had no effect: a connection that has come is the next accept's.
  /// Fails     with an error of the system's, such as too_many_files_open, behind which it may be called again; `closed`.
  detail::operation<detail::accepting> accept() const noexcept { return {{at_}}; }

  /// Where it listens: the port that the system has chosen, where 0 was asked for. Throws error.
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

/// Listens at `where`; port 0: the system chooses one. Does not suspend.
///
/// Fails   with an error of the system's: address_in_use, permission_denied, ...
/// Misuse  with .replace_stale, of two programs that begin at the same moment one may take the other's path. Who can't rule
///         that out locks a file beside it first. Whoever listens there already accepts a connection that ends at once.
task<listener> listen(listen_options options, endpoint where);
WEFT_COROUTINE_WRAPPER inline task<listener> listen(endpoint where) { return listen({}, where); }
/// So many listeners, at least one, that share one port: each has a queue of its own, among which the system spreads the
/// connections that come. With port 0, the one that the system chooses for the first.
/// Fails  as listen(); also where somebody else listens there who does not share.
task<std::vector<listener>> listen_many(listen_options options, endpoint where, std::size_t count);

}  // namespace weft::net
