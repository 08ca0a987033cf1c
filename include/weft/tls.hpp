// TLS by OpenSSL 3: clients and servers over any reader and writer. A library of its own, weft::tls.
//
//     w::task<> fetch() {
//       const w::tls::client_context trusting_the_system;
//       w::tls::stream<> server = co_await w::tls::connect(trusting_the_system, "example.com", "443");
//       co_await server.write("GET / HTTP/1.0\r\nHost: example.com\r\n\r\n");
//       ...
//     }
//
//     w::task<> run(w::net::listener at) {
//       const w::tls::server_context mine{{.certificate = {w::tls::pem::file("chain.pem"), w::tls::pem::file("key.pem")}}};
//       co_await w::tls::serve(mine, std::move(at), echo);  // w::task<> echo(w::tls::stream<> peer)
//     }
//
// A client verifies its server's certificate chain and name unless it is told not to. A peer marks the end of what it sends by
// the alert close_notify: a stream that ends without it fails with `truncated`, since an attacker may have cut it.
//
// Certificates, options, contexts and errors are in tls_context.hpp.
//
// A TLS stream can be used wherever its transport can: in tasks, in fibers and on plain threads. OpenSSL runs on the thread that
// runs the task, under a lock of the session, which no task holds while it waits.
//
// Rejected: (a) OpenSSL on the socket itself: a read may need to write and a write to read, so each call would have to be
// repeated when the other direction is ready, which another task may be waiting for; and no transport but a socket would do.
// (b) kTLS: it needs a kernel module, and a plain read fails at a record that is no data, such as an alert. (c) Early data
// (0-RTT): an attacker who records it can replay it.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>
#include <weft/detail/base/invoke.hpp>
#include <weft/detail/tls/transport.hpp>
#include <weft/error.hpp>
#include <weft/io.hpp>
#include <weft/net.hpp>
#include <weft/resolve.hpp>
#include <weft/semaphore.hpp>
#include <weft/serve.hpp>
#include <weft/task.hpp>
#include <weft/tls_context.hpp>

namespace weft::tls {

// ---- streams --------------------------------------------------------------------------------------------------------------

/// The contents of a certificate.
struct certificate_info {
  std::string subject;  ///< "CN=example.com,O=..."
  std::string issuer;
  std::string serial;              ///< in hexadecimal digits
  std::vector<std::string> names;  ///< the host names and IP addresses in its subjectAltName
  /// A time that the clock can't hold (after 2262) is its maximum.
  std::chrono::system_clock::time_point not_before, not_after;
  std::array<std::byte, 32> sha256;  ///< the digest of `der`
  std::vector<std::byte> der;        ///< the whole certificate, as encoded
};

/// A TLS session over a transport, which it owns. A reader and a writer: at a time one task may read and one may write.
///
/// Threads   any thread may call it. Move or destroy it only while no other thread begins an operation. close() may be called
///           while a read or a write waits, if the transport allows that.
/// Lifetime  an operation that is under way keeps the session alive when the stream is destroyed.
/// Cost      besides OpenSSL's memory: two output buffers, which keep up to 4 KiB each while idle; an input buffer of 17 KiB only
///           while received bytes wait to be decrypted.
template <class Transport = net::stream>
class stream {
 public:
  /// Makes a stream without a session: every operation fails with weft::errc::closed.
  stream() noexcept = default;
  stream(stream&& other) noexcept
      : session_{std::move(other.session_)}, transport_{std::exchange(other.transport_, nullptr)} {}
  stream& operator=(stream&& other) noexcept {
    stream old{std::move(*this)};
    session_ = std::move(other.session_);
    transport_ = std::exchange(other.transport_, nullptr);
    return *this;
  }
  ~stream() { close(); }

  /// Reads bytes that were received, at most one record (16 KiB). 0: the peer has sent close_notify, or `into` is empty.
  ///
  /// Suspends  where no whole record was received; and after 128 operations in a row that did not suspend.
  /// Cancel    a stopped read has taken nothing.
  /// Fails     with errc::truncated where the transport ends without close_notify; with another TLS error, after which nothing
  ///           more can be read or written; as the transport does; with weft::errc::closed after close() of this stream.
  /// Misuse    two tasks that read at once end the program with a sentence.
  WEFT_COROUTINE_WRAPPER task<std::size_t> read(std::span<std::byte> into) const {
    return detail::tls_read(session_, into);
  }

  /// Writes a part of `data`, at most one record (16 KiB), and gives its size. Otherwise as write().
  WEFT_COROUTINE_WRAPPER task<std::size_t> write_some(std::span<const std::byte> data) const {
    return detail::tls_write_some(session_, data);
  }

  /// Writes all of `data`.
  ///
  /// Suspends  where the transport has no room; and while only a part of a handshake message of the peer's, such as a session
  ///           ticket, was received; and after 128 operations in a row that did not suspend.
  /// Cancel    a write that is stopped while it waits closes the stream: a record that was begun can't be taken back.
  /// Fails     as the transport does: then nothing more can be written, but what was received can still be read. With
  ///           weft::errc::closed after shutdown() or close().
  /// Misuse    two tasks that write at once end the program with a sentence.
  WEFT_COROUTINE_WRAPPER task<> write(std::span<const std::byte> data) const {
    return detail::tls_write(session_, data);
  }
  WEFT_COROUTINE_WRAPPER task<> write(std::string_view text) const { return write(std::as_bytes(std::span{text})); }

  /// Ends what this side sends (close_notify): the peer reads all of it, then 0. What the peer sends can still be read. A second
  /// call does nothing. The transport stays open.
  ///
  /// Suspends, Cancel, Fails, Misuse  as write(): it counts as a write.
  WEFT_COROUTINE_WRAPPER task<> shutdown() const { return detail::tls_shutdown(session_); }

  /// Closes the transport, if that has a close(). A read or a write that waits fails with `closed`. The peer sees a truncated
  /// stream unless shutdown() was called before; or a reset, if this side has not read all that was sent, session tickets, too.
  /// Does not wait; may be called again.
  void close() noexcept {
    if (session_) detail::tls_close(*session_);
  }
  bool is_open() const noexcept { return session_ && detail::tls_is_open(*session_); }

  /// The peer's certificate; none: the peer has shown none, or there is no session.
  std::optional<certificate_info> peer_certificate() const;
  /// The protocol that both sides have agreed on by ALPN; empty: none.
  std::string alpn() const;
  /// The version of the protocol: "TLSv1.3".
  std::string version() const;
  /// The cipher suite: "TLS_AES_128_GCM_SHA256".
  std::string cipher() const;
  /// The host name that the client has asked for (SNI).
  std::string server_name() const;
  /// Whether the handshake resumed an earlier session.
  bool is_resumed() const;

  /// The transport, for options such as set_no_delay(). The stream must have a session.
  const Transport& transport() const noexcept {
    WEFT_EXPECTS(transport_ != nullptr, "a TLS stream without a session was asked for its transport");
    return *transport_;
  }

 private:
  friend detail::tls_access;
  stream(detail::tls_session_of session, Transport& transport) noexcept
      : session_{std::move(session)}, transport_{&transport} {}

  detail::tls_session_of session_;
  Transport* transport_ = nullptr;  // in the session
};

/// What a session can run over: a reader and writer that can be moved without an exception.
template <class T>
concept transport = io::reader<T> && io::writer<T> && std::is_nothrow_move_constructible_v<T> && std::is_object_v<T>;

}  // namespace weft::tls

// ---- implementation -------------------------------------------------------------------------------------------------------

namespace weft::detail {

struct tls_access {
  template <class Context>
  static std::shared_ptr<tls_context> core(const Context& of) {
    return of.core_;
  }
  template <class Transport>
  static tls::stream<Transport> make(tls_session_of session, Transport& transport) noexcept {
    return {std::move(session), transport};
  }
};

std::optional<tls::certificate_info> tls_peer_certificate(tls_session& of);
enum class tls_fact { alpn, version, cipher, server_name };
std::string tls_fact_of(tls_session& of, tls_fact which);
bool tls_is_resumed(tls_session& of) noexcept;

template <class Transport>
task<tls::stream<Transport>> tls_over(std::shared_ptr<tls_context> by, Transport over, std::string host) {
  auto kept = std::make_unique<tls_transport_over<Transport>>(std::move(over));
  Transport& its = kept->get();
  tls_session_of session = tls_begin(std::move(by), std::move(kept), host);
  tls::stream<Transport> made =
      tls_access::make(session, its);  // its destructor closes the transport if the handshake fails
  co_await tls_handshake(std::move(session));
  co_return made;
}

task<tls::stream<net::stream>> tls_connect(net::connect_options options, std::shared_ptr<tls_context> by,
                                           std::string host, std::string service);

}  // namespace weft::detail

namespace weft::tls {

template <class Transport>
std::optional<certificate_info> stream<Transport>::peer_certificate() const {
  return session_ ? detail::tls_peer_certificate(*session_) : std::nullopt;
}
template <class Transport>
std::string stream<Transport>::alpn() const {
  return session_ ? detail::tls_fact_of(*session_, detail::tls_fact::alpn) : std::string{};
}
template <class Transport>
std::string stream<Transport>::version() const {
  return session_ ? detail::tls_fact_of(*session_, detail::tls_fact::version) : std::string{};
}
template <class Transport>
std::string stream<Transport>::cipher() const {
  return session_ ? detail::tls_fact_of(*session_, detail::tls_fact::cipher) : std::string{};
}
template <class Transport>
std::string stream<Transport>::server_name() const {
  return session_ ? detail::tls_fact_of(*session_, detail::tls_fact::server_name) : std::string{};
}
template <class Transport>
bool stream<Transport>::is_resumed() const {
  return session_ && detail::tls_is_resumed(*session_);
}

// ---- handshakes -----------------------------------------------------------------------------------------------------------

/// Does a client's handshake over `over`. The server's certificate must be for `host`, a name or an IP address; a name is also
/// sent to the server (SNI).
///
/// Suspends  until the server has answered: without limit, unless timeout() sets one.
/// Cancel    closes the transport.
/// Fails     with invalid_argument for what can't be a host, such as ".example.com"; with an errc or another TLS error, of which
///           the server is told by an alert; as the transport does; with std::bad_alloc. Each closes the transport. In TLS 1.3
///           only the first read fails where the server refuses this side's certificate.
/// Cost      OpenSSL's: a full handshake is mostly signatures.
template <transport Transport>
WEFT_COROUTINE_TAKES_OVER task<stream<Transport>> connect(const client_context& by, Transport over,
                                                          std::string_view host) {
  return detail::tls_over(detail::tls_access::core(by), std::move(over), std::string{host});
}
/// Connects by TCP, as net::connect(), and then does the handshake over that connection.
WEFT_COROUTINE_TAKES_OVER inline task<stream<>> connect(const net::connect_options& options, const client_context& by,
                                                        std::string_view host, std::string_view service) {
  return detail::tls_connect(options, detail::tls_access::core(by), std::string{host}, std::string{service});
}
WEFT_COROUTINE_TAKES_OVER inline task<stream<>> connect(const client_context& by, std::string_view host,
                                                        std::string_view service) {
  return connect(net::connect_options{}, by, host, service);
}

/// Does a server's handshake over `over`. Otherwise as connect().
template <transport Transport>
WEFT_COROUTINE_TAKES_OVER task<stream<Transport>> accept(const server_context& by, Transport over) {
  return detail::tls_over(detail::tls_access::core(by), std::move(over), std::string{});
}

// ---- serving --------------------------------------------------------------------------------------------------------------

/// Options of tls::serve().
struct serve_options {
  /// Here `.handshake_timeout` limits the TLS handshake, and its default means 10 s instead of no limit. For no limit, set it to
  /// some years.
  net::serve_options net{};
  /// How many handshakes go on at once. Further connections wait for a turn, and that wait counts against their timeout.
  std::size_t max_handshakes = 1024;
};

}  // namespace weft::tls

namespace weft::detail {

void expect_sense(const tls::serve_options& options) noexcept;
net::serve_options with_handshake_timeout(net::serve_options options) noexcept;

template <class F>
concept serves_tls = std::is_invocable_v<std::decay_t<F>&, tls::stream<>> &&
                     weft::awaitable<std::invoke_result_t<std::decay_t<F>&, tls::stream<>>> &&
                     std::is_void_v<weft::await_result<std::invoke_result_t<std::decay_t<F>&, tls::stream<>>>>;

template <class F>
class tls_handler final : public connection_handler {
 public:
  tls_handler(std::shared_ptr<tls_context> by, std::size_t most, F&& f)
      : by_{std::move(by)}, handshakes_{most}, f_(std::move(f)) {}
  task<> handle(net::stream peer) override {
    tls::stream<> secured = co_await handshake(std::move(peer));
    net::handshake_done();
    co_await as_task(invoke(f_, std::move(secured)));
  }

 private:
  task<tls::stream<>> handshake(net::stream peer) {
    const auto place = co_await handshakes_.acquire();
    co_return co_await nothrow(tls_over(by_, std::move(peer), std::string{}));
  }

  std::shared_ptr<tls_context> by_;
  semaphore handshakes_;
  F f_;
};

template <class F>
task<> tls_serve_with(std::shared_ptr<tls_context> by, tls::serve_options options, std::vector<net::listener> at, F f) {
  tls_handler<F> handler{std::move(by), options.max_handshakes, std::move(f)};
  co_await serve_by(with_handshake_timeout(options.net), std::move(at), handler);
}

}  // namespace weft::detail

namespace weft::tls {

/// Serves as net::serve() does, with a TLS handshake on each connection before it awaits `handler(stream<>)`. The handshake runs
/// in the connection's own fork, so it keeps no other connection from being accepted. A handshake that fails, or takes too long,
/// counts in net::server_stats::peer_errors().
///
/// Misuse  options that make no sense end the program with a sentence.
template <class F, class At>
  requires detail::serves_tls<F> && (std::same_as<At, net::listener> || std::same_as<At, std::vector<net::listener>>)
WEFT_COROUTINE_TAKES_OVER task<> serve(serve_options options, const server_context& by, At at, F&& handler) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
  detail::expect_sense(options);
  std::vector<net::listener> all = detail::all_of(std::move(at));
  WEFT_EXPECTS(!all.empty(), "a server was given no listener");
  return detail::tls_serve_with<std::decay_t<F>>(detail::tls_access::core(by), options, std::move(all),
                                                 std::forward<F>(handler));
}
template <class F, class At>
  requires detail::serves_tls<F> && (std::same_as<At, net::listener> || std::same_as<At, std::vector<net::listener>>)
WEFT_COROUTINE_TAKES_OVER task<> serve(const server_context& by, At at, F&& handler) {
  return serve(serve_options{}, by, std::move(at), std::forward<F>(handler));
}
/// The same, with the options behind the context.
template <class F, class At>
  requires detail::serves_tls<F> && (std::same_as<At, net::listener> || std::same_as<At, std::vector<net::listener>>)
WEFT_COROUTINE_TAKES_OVER task<> serve(const server_context& by, serve_options options, At at, F&& handler) {
  return serve(options, by, std::move(at), std::forward<F>(handler));
}

}  // namespace weft::tls
