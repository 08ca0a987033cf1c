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

/// What a server counts, to be read while it runs. Several servers may count in one.
///
/// Threads   all members from any. Each figure is over when it is read.
/// Lifetime  outlives the servers that count in it.
class server_stats {
 public:
  server_stats() = default;
  server_stats(const server_stats&) = delete;

  /// Connections that were accepted, and given to a handler.
  std::uint64_t accepted() const noexcept { return get(accepted_); }
  /// Of those, how many have a handler that has not ended.
  std::uint64_t active() const noexcept { return get(active_); }
  /// Connections that came, and were lost before there was a handler: by an error of their network, or for want of memory. One
  /// that its peer has given up while it waited to be accepted is not counted.
  std::uint64_t rejected() const noexcept { return get(rejected_); }
  /// How often the server has paused since the system had no descriptor, or no memory, for another connection, or a filter
  /// refused to accept it (EPERM).
  std::uint64_t pauses() const noexcept { return get(pauses_); }
  /// Handlers that failed by what their peer did: connection_reset, broken_pipe, `closed` and the like; and those that were
  /// stopped since it was late or slow.
  std::uint64_t peer_errors() const noexcept { return get(peer_errors_); }
  /// Handlers that failed by anything else, which was given to `.on_error`.
  std::uint64_t failures() const noexcept { return get(failures_); }
  /// Handlers that were stopped since their connection was idle.
  std::uint64_t idle() const noexcept { return get(idle_); }
  /// Handlers that were stopped since they had not called handshake_done() in time. They are peer_errors(), too.
  std::uint64_t late() const noexcept { return get(late_); }
  /// Handlers that were stopped since their connection was below `.min_rate`. They are peer_errors(), too.
  std::uint64_t slow() const noexcept { return get(slow_); }
  /// Handlers that were stopped since the grace was over.
  std::uint64_t cut() const noexcept { return get(cut_); }

 private:
  friend detail::server;
  // Relaxed, all of them: counts, by which nothing is ordered.
  using count = std::atomic<std::uint64_t>;
  static std::uint64_t get(const count& of) noexcept { return of.load(std::memory_order_relaxed); }  // a figure
  count accepted_{0}, active_{0}, rejected_{0}, pauses_{0}, peer_errors_{0}, failures_{0}, idle_{0}, late_{0}, slow_{0},
      cut_{0};
};

/// What is told of a handler that failed, and with whom: `(const endpoint& peer, std::exception_ptr failure)`. The endpoint is
/// 0.0.0.0:0 where the peer has none, as on a Unix socket. Refers to a callable, which outlives the server; a lambda without
/// captures, a function, or a pointer to one, needs no object. By default, a failure goes to the process's handler of lost
/// errors, see error.hpp.
///
/// Threads  where the handler ran; perhaps several at once.
/// Fails    one that throws ends the program, with a sentence.
/// Misuse   a pointer to a function that is null ends the program with a sentence.
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
  /// How many connections have a handler at once. Where there are as many, the next one waits to be accepted.
  std::size_t max_connections = static_cast<std::size_t>(-1);
  /// A handler is stopped when its connection was neither read from nor written to for so long, or up to a quarter longer,
  /// of which 1 ms is the least. Time in which it computes, or waits for something else, counts, too.
  detail::time_span idle_timeout = std::chrono::steady_clock::duration::max();
  /// A handler is stopped that has not called handshake_done() so long after its connection was accepted.
  detail::time_span handshake_timeout = std::chrono::steady_clock::duration::max();
  /// A handler is stopped when it has waited for its peer during a whole `.rate_window`, or up to a quarter longer, in which
  /// some bytes came or went, but fewer than so many for each second of the window. That begins with the first byte behind a
  /// silence; and anew where nobody reads or writes at the end of a quarter. What follows a byte counts, also a silence: nobody
  /// can tell from outside whether more was to come. So a request and its answer that have fewer bytes than a window must have,
  /// with a silence behind them in which the handler reads, end as slow: choose less than the smallest. Without a byte a silence
  /// is for `.idle_timeout` alone. 0: no minimum.
  std::uint64_t min_rate = 0;
  detail::time_span rate_window = std::chrono::seconds{10};
  /// How long handlers may go on once the server was told to stop.
  detail::time_span grace = std::chrono::seconds{10};
  connection_error_handler on_error{};
  server_stats* stats = nullptr;  ///< where it counts
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
/// connection (EMFILE and the like), or a filter refuses it (EPERM), it pauses: until one of its connections has ended, or 5 ms
/// and, in a row, up to 1 s.
///
/// Suspends  until it is told to stop, and no handler runs any more.
/// Cancel    drains, as said above: it takes as long as the handlers, and up to `.grace` where they respect a stop. Ends
///           stopped.
/// Fails     with the error of accept() behind which no other one can come, as of a listener that somebody has shut down, or
///           with `closed` where `at` is empty; also then it drains first. std::bad_alloc.
/// Lifetime  `handler` is moved, or copied, into the frame, and is called for several connections at once.
/// Misuse    options that make no sense (no connections, a time below zero) end the program with a sentence.
/// Cost      a fork a connection; with `.idle_timeout`, `.min_rate` or `.handshake_timeout` a timer, and another two frames; with
///           the last one two more.
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

/// The same for several listeners, at least one, that a fork each accepts from: on several addresses, or on one port that they
/// share (see listen_many). Limits and counts are for all of them together. Where one of them fails, all drain.
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

/// In a handler, and in what it awaits or forks: the peer has shown itself, so `.handshake_timeout` is over for it. Where that is,
/// the handler knows: behind a TLS handshake, a login, the head of a first request. Elsewhere it does nothing.
///
/// Threads  any that works for the handler. May be called again.
inline void handshake_done() noexcept { detail::handshake_is_done(); }

/// In a handler, and in what it awaits or forks: completes when its server drains. A case of a select, too.
///
///     auto next = co_await w::select(w::on(peer.read(buffer)), w::on(w::net::draining()));
///     if (next.index == 1) co_return;  // no request is under way
///
/// Suspends  until then; outside of any server for ever.
/// Cancel    as any wait.
[[nodiscard("nothing happens until it is awaited")]] inline auto draining() noexcept {
  return detail::draining_here().wait();
}
/// Whether it does. Outside of any server, no.
inline bool is_draining() noexcept { return detail::draining_here().is_set(); }

}  // namespace weft::net
