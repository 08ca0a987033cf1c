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
// A client verifies its server unless it is told not to: the chain, and the name. What was sent ends with a word of the peer's
// (close_notify): a stream that ends without one fails with `truncated`, since somebody may have cut it.
//
// Certificates, options, contexts and errors are in tls_context.hpp.
//
// All of it works where the transport does: in tasks, in fibers and on plain threads. OpenSSL runs on whatever thread works for
// the task, under a lock of the session's, which nobody holds while he waits.
//
// Rejected: (a) OpenSSL on the socket itself: its calls would have to be repeated in whichever direction it wants, while the other
// one may be waiting already; and there would be nothing but sockets. (b) kTLS: it needs a module of the kernel, and one that
// reads can't know an alert from data. (c) Early data (0-RTT): whoever records it can send it again.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
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

/// What stands in a certificate.
struct certificate_info {
  std::string subject;  ///< "CN=example.com,O=..."
  std::string issuer;
  std::string serial;                                           ///< in hexadecimal digits
  std::vector<std::string> names;                               ///< hosts and addresses that it is for
  std::chrono::system_clock::time_point not_before, not_after;  ///< beyond what the clock can say (year 2262): its last
  std::array<std::byte, 32> sha256;                             ///< of all of it
  std::vector<std::byte> der;                                   ///< all of it
};

/// A session over a transport, which it owns. A reader and a writer; reads and writes are for one task at a time each, and both may
/// go on at once.
///
/// Threads   any, but for moves and destruction, which are for when nothing else begins; close() may come while a read or a write
///           waits, as the transport allows.
/// Lifetime  an operation that is under way keeps what it needs of a stream that is destroyed.
/// Cost      besides OpenSSL's, no buffer while nothing goes on, but up to 4 KiB of output; 17 KiB while something that has come was
///           not read yet.
template <class Transport = net::stream>
class stream {
 public:
  /// None: every operation fails with weft::errc::closed.
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

  /// Reads what has come, up to a record (16 KiB). 0: the peer has said that no more will come, or `into` is empty.
  ///
  /// Suspends  where no whole record has come; and after 128 operations in a row that did not.
  /// Cancel    has had no effect.
  /// Fails     with errc::truncated where the transport has ended before the peer has said so; with other errors of TLS, behind
  ///           which nothing more can be read or written; as the transport does; with weft::errc::closed where this was closed here.
  /// Misuse    two tasks that read at once end the program with a sentence.
  WEFT_COROUTINE_WRAPPER task<std::size_t> read(std::span<std::byte> into) const {
    return detail::tls_read(session_, into);
  }

  /// Writes some of it, up to a record (16 KiB). Otherwise as write().
  WEFT_COROUTINE_WRAPPER task<std::size_t> write_some(std::span<const std::byte> data) const {
    return detail::tls_write_some(session_, data);
  }

  /// Writes all of it.
  ///
  /// Suspends  where the transport has no room; and while a message of the peer's about the session, as a ticket, has come in part.
  /// Cancel    one that is stopped while it waits closes the stream: a record that was begun can't be taken back.
  /// Fails     as the transport does; nothing can be written then, but what has come can be read. With weft::errc::closed behind
  ///           shutdown() and close().
  /// Misuse    as of read().
  WEFT_COROUTINE_WRAPPER task<> write(std::span<const std::byte> data) const {
    return detail::tls_write(session_, data);
  }
  WEFT_COROUTINE_WRAPPER task<> write(std::string_view text) const { return write(std::as_bytes(std::span{text})); }

  /// Says that no more will come (close_notify): the peer reads to the end, then 0. What it sends can still be read. Once is
  /// enough: a second time it does nothing. The transport stays as it is.
  ///
  /// Suspends, Cancel, Fails, Misuse  as write(), of which it is one.
  WEFT_COROUTINE_WRAPPER task<> shutdown() const { return detail::tls_shutdown(session_); }

  /// Closes the transport, if that can be closed. Who reads or writes ends with `closed`, and the peer finds the stream truncated
  /// unless shutdown() was before. Does not wait, and may be called again.
  void close() noexcept {
    if (session_) detail::tls_close(*session_);
  }
  bool is_open() const noexcept { return session_ && detail::tls_is_open(*session_); }

  /// The peer's certificate; nothing: it has shown none, or there is no session.
  std::optional<certificate_info> peer_certificate() const;
  /// The protocol that both sides have agreed on; empty: none.
  std::string alpn() const;
  /// "TLSv1.3"
  std::string version() const;
  /// "TLS_AES_128_GCM_SHA256"
  std::string cipher() const;
  /// The host that the client has asked for.
  std::string server_name() const;
  /// Whether the handshake was a short one, of a session that was there before.
  bool is_resumed() const;

  /// What it runs over, for options of its own, as set_no_delay(); there must be one.
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

/// What a session can be over: a reader and writer that moves.
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
enum class tls_fact : std::uint8_t { alpn, version, cipher, server_name };
std::string tls_fact_of(tls_session& of, tls_fact which);
bool tls_is_resumed(tls_session& of) noexcept;

template <class Transport>
task<tls::stream<Transport>> tls_over(std::shared_ptr<tls_context> by, Transport over, std::string host) {
  auto kept = std::make_unique<tls_transport_over<Transport>>(std::move(over));
  Transport& its = kept->get();
  tls_session_of session = tls_begin(std::move(by), std::move(kept), host);
  tls::stream<Transport> made =
      tls_access::make(session, its);  // closes it where the handshake does not come to its end
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

/// The client's side of a session over `over`: `host`, a name or an address in numbers, is what the server must have a certificate
/// for, and what it is told (SNI).
///
/// Suspends  until the server has answered. Bounded by timeout(), where that is needed.
/// Cancel    closes the transport.
/// Fails     with invalid_argument for what can't be a host, as ".example.com"; with an errc or another error of TLS, of which the server is told; as the transport does; std::bad_alloc. It closes
///           the transport then. That the server does not take this side's certificate, with TLS 1.3 only the first read tells.
/// Cost      OpenSSL's, most of it for signatures, of a full handshake.
template <transport Transport>
WEFT_COROUTINE_TAKES_OVER task<stream<Transport>> connect(const client_context& by, Transport over,
                                                          std::string_view host) {
  return detail::tls_over(detail::tls_access::core(by), std::move(over), std::string{host});
}
/// Connects by TCP, as net::connect(), and then as above.
WEFT_COROUTINE_TAKES_OVER inline task<stream<>> connect(const net::connect_options& options, const client_context& by,
                                                        std::string_view host, std::string_view service) {
  return detail::tls_connect(options, detail::tls_access::core(by), std::string{host}, std::string{service});
}
WEFT_COROUTINE_TAKES_OVER inline task<stream<>> connect(const client_context& by, std::string_view host,
                                                        std::string_view service) {
  return connect(net::connect_options{}, by, host, service);
}

/// The server's side of a session over `over`. Otherwise as connect().
template <transport Transport>
WEFT_COROUTINE_TAKES_OVER task<stream<Transport>> accept(const server_context& by, Transport over) {
  return detail::tls_over(detail::tls_access::core(by), std::move(over), std::string{});
}

// ---- serving --------------------------------------------------------------------------------------------------------------

/// What tls::serve() is given.
struct serve_options {
  /// Of these, `.handshake_timeout` is for TLS; its default, no limit, stands for 10 s here. Who wants none says some years.
  net::serve_options net{};
  /// How many handshakes go on at once; further connections wait for one to end, which counts against their timeout.
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

/// A server, as net::serve(), that has the handshake of each connection done before it awaits `handler(stream<>)`. A handshake is a
/// part of the connection's own fork: it keeps no other one from being accepted. One that fails, or takes too long, counts among
/// net::server_stats::peer_errors().
///
/// Misuse  options that make no sense end the program with a sentence.
template <class F, class At>
  requires detail::serves_tls<F> && (std::same_as<At, net::listener> || std::same_as<At, std::vector<net::listener>>)
WEFT_COROUTINE_TAKES_OVER task<> serve(const server_context& by, serve_options options, At at, F&& handler) {
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
  return serve(by, serve_options{}, std::move(at), std::forward<F>(handler));
}

}  // namespace weft::tls
