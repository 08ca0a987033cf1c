// A structured server: serve() accepts connections, and runs a handler for each, until it is told to stop; then it drains.
//
//     w::task<> echo(w::net::stream peer) {
//       std::array<std::byte, 4096> buffer;
//       while (const std::size_t size = co_await peer.read(buffer)) co_await peer.write(std::span{buffer}.first(size));
//     }
//
//     w::task<> run() {
//       w::net::listener at = co_await w::net::listen(w::net::endpoint{"127.0.0.1", 7777});
//       co_await w::net::serve(std::move(at), echo);
//     }
//
//     int main() { return w::run_main(w::when_any(run(), w::interrupted())); }
//
// No connection outlives serve(), and none ends another one: what a handler fails with is counted or reported. A stop of
// serve() goes in three steps:
//
//   1. It accepts no more, and closes the listener.
//   2. `draining()` completes. A handler that waits for its peer's next request takes that as the end; one that is at a
//      request answers it.
//   3. Handlers that have not ended after `.grace` are stopped.
//
// When all have ended, so does serve(), stopped.
//
// Rejected: (a) to stop handlers that wait in a read when draining begins: nobody can tell from outside whether the peer is in
// the middle of a request. (b) A server object with start and stop: whoever forgets the stop has orphans.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>
#include <weft/detail/base/config.hpp>
#include <weft/detail/base/duration.hpp>
#include <weft/detail/base/invoke.hpp>
#include <weft/event.hpp>
#include <weft/net.hpp>
#include <weft/task.hpp>

namespace weft::detail { class server; }  // namespace weft::detail

namespace weft::net {

/// What a server counts. May be read while it runs, and shared by several servers.
///
/// Threads   any thread may call all members. Each figure may have changed by the time it is returned.
/// Lifetime  outlives the servers that count in it.
class server_stats {
 public:
  server_stats() = default;
  server_stats(const server_stats&) = delete;

  /// Connections that were accepted, and given to a handler.
  std::uint64_t accepted() const noexcept { return get(accepted_); }
  /// Of those, how many have a handler that has not ended.
  std::uint64_t active() const noexcept { return get(active_); }
  /// Connections that were lost before a handler ran: by an error of the network, or for lack of memory. One that its peer has
  /// given up while it waited in the listener's queue is not counted.
  std::uint64_t rejected() const noexcept { return get(rejected_); }
  /// How often the server has paused because the system had no descriptor or no memory for another connection, or a filter
  /// refused it (EPERM).
  std::uint64_t pauses() const noexcept { return get(pauses_); }
  /// Handlers that failed because of their peer: with connection_reset, broken_pipe, errc::closed and the like, or stopped
  /// because it was late or slow.
  std::uint64_t peer_errors() const noexcept { return get(peer_errors_); }
  /// Handlers that failed otherwise; `.on_error` was told of each.
  std::uint64_t failures() const noexcept { return get(failures_); }
  /// Handlers that were stopped because their connection was idle.
  std::uint64_t idle() const noexcept { return get(idle_); }
  /// Handlers that were stopped because they had not called handshake_done() in time. They also count as peer_errors().
  std::uint64_t late() const noexcept { return get(late_); }
  /// Handlers that were stopped because their connection was below `.min_rate`. They also count as peer_errors().
  std::uint64_t slow() const noexcept { return get(slow_); }
  /// Handlers that were stopped because `.grace` was over.
  std::uint64_t cut() const noexcept { return get(cut_); }

 private:
  friend detail::server;
  // Relaxed, all of them: counts, by which nothing is ordered.
  using count = std::atomic<std::uint64_t>;
  static std::uint64_t get(const count& of) noexcept { return of.load(std::memory_order_relaxed); }  // a figure
  count accepted_{0}, active_{0}, rejected_{0}, pauses_{0}, peer_errors_{0}, failures_{0}, idle_{0}, late_{0}, slow_{0},
      cut_{0};
};

/// A callable `(const endpoint& peer, std::exception_ptr failure)` that is told of each handler that failed. `peer` is
/// 0.0.0.0:0 where the peer has no address, as on a Unix socket. The callable outlives the server, unless it is a lambda
/// without captures or a function. By default failures go to the process's handler of lost errors: see error.hpp.
///
/// Threads  called on the thread on which the handler has failed; perhaps on several at once.
/// Fails    a callable that throws ends the program with a sentence.
/// Misuse   a null pointer to a function ends the program with a sentence.
class connection_error_handler {
 public:
  constexpr connection_error_handler() noexcept = default;

  /// Calls `handler`, which outlives the server unless it is empty, with each failure.
  template <class Handler>
    requires(!std::is_same_v<std::remove_cvref_t<Handler>, connection_error_handler>) &&
            std::is_invocable_v<Handler&, const endpoint&, std::exception_ptr> &&
            (std::is_lvalue_reference_v<Handler> || std::is_empty_v<Handler> ||
             std::is_function_v<std::remove_pointer_t<Handler>>)
  connection_error_handler(Handler&& handler) noexcept {  // NOLINT: `.on_error = log_it`
    using plain = std::remove_cvref_t<Handler>;
    using function = std::remove_pointer_t<plain>;
    if constexpr (std::is_function_v<function>) {
      function* const its = handler;
      WEFT_EXPECTS(its != nullptr, "a server was given a null pointer as its .on_error handler");
      object_ = reinterpret_cast<void*>(its);
      call_ = [](void* object, const endpoint& peer, std::exception_ptr&& failure) noexcept {
        call(*reinterpret_cast<function*>(object), peer, std::move(failure));
      };
    } else if constexpr (std::is_lvalue_reference_v<Handler>) {
      object_ = const_cast<void*>(static_cast<const void*>(std::addressof(handler)));
      call_ = [](void* object, const endpoint& peer, std::exception_ptr&& failure) noexcept {
        call(*static_cast<std::remove_reference_t<Handler>*>(object), peer, std::move(failure));
      };
    } else {
      call_ = [](void*, const endpoint& peer, std::exception_ptr&& failure) noexcept {
        plain here{};
        call(here, peer, std::move(failure));
      };
    }
  }

  /// Tells it of one failure.
  void operator()(const endpoint& peer, std::exception_ptr failure) const noexcept {
    call_(object_, peer, std::move(failure));
  }

 private:
  template <class Handler>
  static void call(Handler& handler, const endpoint& peer, std::exception_ptr&& failure) noexcept {
    auto calls = [&] { static_cast<void>(detail::invoke(handler, peer, std::move(failure))); };
    detail::call_no_throw(calls, "the .on_error handler of a server threw, where nobody could catch it");
  }
  static void lose(void*, const endpoint& peer, std::exception_ptr&& failure) noexcept;

  void* object_ = nullptr;
  void (*call_)(void*, const endpoint&, std::exception_ptr&&) noexcept = lose;
};

/// What serve() is given. Written in this order.
struct serve_options {
  /// How many handlers may run at once. Beyond that, connections wait in the listener's queue.
  std::size_t max_connections = static_cast<std::size_t>(-1);
  /// How long a connection may be neither read from nor written to before its handler is stopped, which may happen up to a
  /// quarter of that time (at least 1 ms) later. Time in which the handler computes, or waits for something else, counts.
  detail::time_span idle_timeout = std::chrono::steady_clock::duration::max();
  /// How long after its connection was accepted a handler may take to call handshake_done() before it is stopped.
  detail::time_span handshake_timeout = std::chrono::steady_clock::duration::max();
  /// The least rate, in bytes a second, averaged over `.rate_window`. A handler is stopped that waits for its peer during a whole
  /// window (or up to a quarter longer) in which some bytes were read or written, but fewer than that. 0: no minimum.
  ///
  /// A window begins with the first byte after a silence. It begins anew if the handler neither reads nor writes when a quarter
  /// of it ends. A silence after a byte counts, since a server can't tell whether more is to come. So if the handler reads on
  /// after a request and its answer, those must have `.min_rate` times `.rate_window` bytes: choose a rate below that of the
  /// smallest. A silence without any byte is left to `.idle_timeout`.
  std::uint64_t min_rate = 0;
  detail::time_span rate_window = std::chrono::seconds{10};  ///< the time over which `.min_rate` is averaged
  /// How long handlers may go on after the server was told to stop, before they are stopped, too.
  detail::time_span grace = std::chrono::seconds{10};
  connection_error_handler on_error{};  ///< is told of handlers that fail
  server_stats* stats = nullptr;        ///< where the server counts; null: nowhere
};

}  // namespace weft::net

// ---- implementation -------------------------------------------------------------------------------------------------------

namespace weft::detail {

class connection_handler {
 public:
  connection_handler(const connection_handler&) = delete;
  virtual task<> handle(net::stream peer) = 0;

 protected:
  connection_handler() = default;
  ~connection_handler() = default;
};

template <class F>
class connection_handler_of final : public connection_handler {
 public:
  explicit connection_handler_of(F&& f) : f_(std::move(f)) {}
  WEFT_COROUTINE_WRAPPER task<> handle(net::stream peer) override { return as_task(invoke(f_, std::move(peer))); }

 private:
  F f_;
};

void expect_sense(const net::serve_options& options) noexcept;
task<> serve_by(net::serve_options options, std::vector<net::listener> at, connection_handler& handler);

inline std::vector<net::listener> all_of(std::vector<net::listener>&& at) noexcept { return std::move(at); }
inline std::vector<net::listener> all_of(net::listener&& at) {
  std::vector<net::listener> one;
  one.push_back(std::move(at));
  return one;
}

template <class At, class F>
task<> serve_with(net::serve_options options, At at, F f) {
  connection_handler_of<F> handler{std::move(f)};
  co_await serve_by(options, all_of(std::move(at)), handler);
}

/// Of the server around; elsewhere one that is never set.
event& draining_here() noexcept;
void handshake_is_done() noexcept;

template <class F>
concept serves_connections = std::is_invocable_v<std::decay_t<F>&, net::stream> &&
                             weft::awaitable<std::invoke_result_t<std::decay_t<F>&, net::stream>> &&
                             std::is_void_v<weft::await_result<std::invoke_result_t<std::decay_t<F>&, net::stream>>>;

}  // namespace weft::detail

namespace weft::net {

/// Accepts connections from `at`, and awaits `handler(stream)` for each, as a fork of its own, until it is told to stop.
///
///     co_await w::net::serve({.max_connections = 10'000, .grace = 5s}, std::move(at), handle);
///
/// A handler that fails ends its own connection and no other. Where the system has no descriptor or no memory for another
/// connection (EMFILE and the like), or a filter refuses it (EPERM), the server pauses until one of its connections has ended,
/// or for 5 ms, and for up to 1 s if that happens repeatedly.
///
/// Suspends  until it was told to stop and all handlers have ended.
/// Cancel    drains, as described at the top, and ends stopped. If the handlers obey a stop, that takes at most `.grace`.
/// Fails     with an error of accept() after which the listener can accept no more, as when it was shut down; with errc::closed
///           where `at` is not open; with std::bad_alloc. It drains first.
/// Lifetime  `handler` is moved or copied into the frame, and is called for several connections at once.
/// Misuse    options that make no sense (no connections, a time below zero) end the program with a sentence.
/// Cost      a fork a connection; with `.idle_timeout`, `.min_rate` or `.handshake_timeout` a timer, and another two frames;
///           with the last one two more.
template <class F>
  requires detail::serves_connections<F>
WEFT_COROUTINE_TAKES_OVER task<> serve(serve_options options, listener at, F&& handler) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
  detail::expect_sense(options);
  return detail::serve_with<listener, std::decay_t<F>>(options, std::move(at), std::forward<F>(handler));
}
template <class F>
  requires detail::serves_connections<F>
WEFT_COROUTINE_TAKES_OVER task<> serve(listener at, F&& handler) {
  return serve(serve_options{}, std::move(at), std::forward<F>(handler));
}

/// The same for several listeners, at least one, on several addresses or on one port that they share (SO_REUSEPORT). Each has a
/// fork that accepts from it.
///
///     auto at = co_await w::net::listen_many({}, where, w::available_processors());  // as many as a runtime has workers
///     co_await w::net::serve(std::move(at), handle);
///
/// Limits and counts are for all of them together. Where one of them fails, all drain.
template <class F>
  requires detail::serves_connections<F>
WEFT_COROUTINE_TAKES_OVER task<> serve(serve_options options, std::vector<listener> at, F&& handler) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
  detail::expect_sense(options);
  WEFT_EXPECTS(!at.empty(), "a server was given no listener");
  return detail::serve_with<std::vector<listener>, std::decay_t<F>>(options, std::move(at), std::forward<F>(handler));
}
template <class F>
  requires detail::serves_connections<F>
WEFT_COROUTINE_TAKES_OVER task<> serve(std::vector<listener> at, F&& handler) {
  return serve(serve_options{}, std::move(at), std::forward<F>(handler));
}

/// Tells the server that the handshake of this connection is done, so that `.handshake_timeout` no longer applies: after a TLS
/// handshake, a login, or the head of the first request. Call it in a handler, or in what that awaits or forks; elsewhere, and
/// repeatedly, it has no effect.
inline void handshake_done() noexcept { detail::handshake_is_done(); }

/// Completes when the server drains whose handler this task belongs to. May be a case of a select.
///
///     auto next = co_await w::select(w::on(peer.read(buffer)), w::on(w::net::draining()));
///     if (next.index == 1) co_return;  // no request is under way
///
/// Suspends  until the server drains; outside of any server for ever.
/// Cancel    ends the wait.
[[nodiscard("nothing happens until it is awaited")]] inline auto draining() noexcept {
  return detail::draining_here().wait();
}
/// Whether that server drains; false outside of any server.
inline bool is_draining() noexcept { return detail::draining_here().is_set(); }

}  // namespace weft::net
