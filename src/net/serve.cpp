// A server: the task that serve() returns, and the state that its connections share.
//
// server::run() awaits two tasks. tell_of_stop() waits until a stop, or the server's end, ends its wait, and then sets `drain_`.
// serve_connections() is shielded from the stop: it runs the scope of all connections, whose body waits for `drain_`. Each
// acceptor is a fork of that scope. So a stop reaches the acceptors and the handlers only through the scope's body.
#include <weft/serve.hpp>

#include <atomic>
#include <new>
#include <system_error>
#include <utility>
#include <vector>
#include <weft/clock.hpp>
#include <weft/combine.hpp>
#include <weft/env.hpp>
#include <weft/error.hpp>
#include <weft/race.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>
#include <weft/semaphore.hpp>
#include <weft/with.hpp>

#include "net/connection_watch.hpp"
#include "net/serve_failure.hpp"
#include "net/system_address.hpp"

namespace weft {
namespace detail {
namespace {

local<event*> draining_of_server{nullptr};
// The flag of the connection whose handler runs, which says that the peer has completed the handshake.
local<std::atomic<bool>*> handshake_here{nullptr};

}  // namespace

class server {
 public:
  server(const net::serve_options& options, std::vector<net::listener>&& at, connection_handler& handler)
      : options_{options},
        acceptors_(at.size()),
        handler_{handler},
        stats_{options.stats != nullptr ? *options.stats : own_stats_},
        places_{options.max_connections} {
    for (std::size_t i = 0; i != at.size(); ++i) acceptors_[i].at = std::move(at[i]);
  }

  task<> run() { co_await when_all(tell_of_stop(), shielded(serve_connections())); }

 private:
  // A connection's place among max_connections (RAII), until its handler has ended and its descriptor is closed.
  class place {
   public:
    place(server& of, semaphore::permit&& permit) noexcept : of_{&of}, permit_{std::move(permit)} {
      of.connection_begins();
    }
    place(place&& other) noexcept
        : of_{std::exchange(other.of_, nullptr)}, permit_{std::move(other.permit_)}, has_begun_{other.has_begun_} {}
    ~place() {
      permit_.release();
      if (of_ != nullptr) of_->connection_ended(has_begun_);
    }

    void has_begun() noexcept { has_begun_ = true; }

   private:
    server* of_;
    semaphore::permit permit_;
    bool has_begun_ = false;  // serve_one() runs
  };
  // A listener, and the event for which its fork waits while the system lacks something.
  struct acceptor {
    net::listener at;
    event one_ended;  // a connection has ended
  };
  struct accepted {
    net::stream stream;
    net::ip_address peer;
    semaphore::permit permit;
  };
  // Sets an event at the end of a block, also by an exception.
  class sets_at_end {
   public:
    explicit sets_at_end(event& one) noexcept : one_{one} {}
    sets_at_end(const sets_at_end&) = delete;
    ~sets_at_end() { one_.set(); }

   private:
    event& one_;
  };
  class stops_at_end {
   public:
    explicit stops_at_end(scope& all) noexcept : all_{all} {}
    stops_at_end(const stops_at_end&) = delete;
    ~stops_at_end() { all_.request_stop({.reason = "the grace of a server that drains is over"}); }

   private:
    scope& all_;
  };

  task<> tell_of_stop() {
    const sets_at_end tells{drain_};
    co_await is_over_.wait();
  }

  task<> serve_connections() {
    const sets_at_end ends{is_over_};
    const auto body = [this](scope& connections) { return accept_and_drain(connections); };
    const auto in_scope = [&body] { return with_scope(body); };
    const auto without_handshake = [&] { return with_local(draining_of_server, &draining_, in_scope); };
    co_await with_local(handshake_here, nullptr, without_handshake);  // hides the flag of a server around this one
    if (accept_failed_) std::rethrow_exception(accept_failed_);
  }

  task<> accept_and_drain(scope& connections) {
    const stops_at_end stops{connections};
    std::vector<fork<>> accepting;
    try {
      accepting.reserve(acceptors_.size());
      for (acceptor& one : acceptors_) accepting.push_back(connections.fork(accept_all(connections, one)));
    } catch (...) {  // no memory for a frame
      fail();
    }
    co_await drain_.wait();
    for (fork<>& one : accepting) one.request_stop({.reason = "the server drains"});
    for (fork<>& one : accepting) static_cast<void>(co_await as_result(std::move(one)));
    for (acceptor& one : acceptors_) one.at.close();
    draining_.set();
    if (end_one()) co_return;
    const auto ended = co_await select(on(none_left_.wait()), after(options_.grace));
    if (ended.index == 1) add(stats_.cut_, connections_.load(std::memory_order_relaxed));  // for statistics
  }

  task<> accept_all(scope& connections, acceptor& by) {
    const sets_at_end drains{drain_};  // also if it is stopped
    try {
      co_await accept_while_open(connections, by);
    } catch (...) {
      fail();
    }
  }

  // In an exception handler: the server drains, and serve_connections() throws the first exception that came here.
  void fail() noexcept {
    if (!has_failed_.exchange(true,
                              std::memory_order_relaxed))  // decides who is first; the scope's join orders the rest
      accept_failed_ = std::current_exception();
    drain_.set();
  }

  task<> accept_while_open(scope& connections, acceptor& by) {
    for (accept_delay delay;;) {
      bool lacks_something = false, is_lost = false;
      try {
        auto accept = accept_next(by, is_lost);
        auto got = co_await as_result(std::move(accept));
        if (got.is_stopped()) {
          co_await check_stop();  // acquire() of a free permit is no stop point if the stop came to a root further out
        } else if (got.has_value()) {
          is_lost = true;  // if begin() throws
          begin(connections, *std::move(got));
          is_lost = false;
          delay.reset();
        } else {
          const accept_failure kind = kind_of(got.error());
          if (kind == accept_failure::of_the_listener) static_cast<void>(std::move(got).value());  // throws it
          if (kind == accept_failure::of_the_connection) is_lost = true;
          lacks_something = kind == accept_failure::of_the_system;
        }
      } catch (const std::bad_alloc&) {
        lacks_something = true;
      }
      if (is_lost) add(stats_.rejected_);
      if (!lacks_something) continue;
      add(stats_.pauses_);
      co_await select(on(by.one_ended.wait()), after(delay.next()));  // allocates nothing
    }
  }

  // Waits for a place and a connection. It holds no place while it waits for a connection: another listener may need it.
  task<accepted> accept_next(acceptor& by, bool& is_lost) {
    descriptor* const at = by.at.at_;
    const descriptor_use use{at};
    if (!use) co_await fail_with(failure_of(closed_here(), "accept"));
    co_await check_stop();
    if (has_had_its_turn()) co_await yield();
    for (accepted one;;) {
      one.permit = co_await places_.acquire();
      by.one_ended.reset();  // before the try: a connection that ends from here on is a reason for another try
      if (at->may_try(direction::in))
        if (const tried got = try_accept(*at, &one.peer); !got.must_wait) {
          if (got.refused) co_await fail_with(failure_of(got.refused, "accept"));
          is_lost = true;  // if take_over() throws, the connection is closed
          one.stream = net::stream::take_over(static_cast<int>(got.size), at->is_unix());
          is_lost = false;
          co_return one;
        }
      one.permit.release();
      co_await at->until_ready(direction::in);
      if (at->is_closed()) co_await fail_with(failure_of(closed_here(), "accept"));
    }
  }

  void begin(scope& connections, accepted&& one) {
    place mine{*this, std::move(one.permit)};
    connections.fork(serve_one(std::move(mine), std::move(one)));
    add(stats_.accepted_);
  }

  task<> serve_one(place given, accepted one) {
    place mine{std::move(given)};  // destroyed last
    mine.has_begun();
    net::stream peer = std::move(one.stream);
    std::exception_ptr failure;
    connection_fault fault = connection_fault::none;
    try {
      if (!limits_.has_any()) {
        const auto how = co_await as_result(handler_.handle(std::move(peer)));
        failure = how.exception();
      } else {
        std::atomic<bool> has_shown{false};
        descriptor& at = *peer.at_;
        // Read before the handler is called: a handler that is no coroutine may give the descriptor back in that call.
        const std::uint16_t generation = at.generation();
        if (options_.min_rate != 0) at.count_moved();
        auto race =
            as_result(when_any(handle_to_end(std::move(peer), has_shown, failure), watch(at, generation, has_shown)));
        const auto first = co_await std::move(race);
        if (first.has_value() && first->index == 1) fault = std::get<1>(first->value);
        if (!failure) failure = first.exception();  // no memory for a frame
      }
    } catch (...) {  // no memory for a frame
      failure = std::current_exception();
    }
    count(fault);
    if (failure) count(fault, one.peer, std::move(failure));
  }

  void count(connection_fault of) noexcept {
    using enum connection_fault;
    if (of == none) return;
    add(of == idle ? stats_.idle_ : of == late ? stats_.late_ : stats_.slow_);
    if (of != idle) add(stats_.peer_errors_);
  }
  // Counts a handler's failure. `of` is the fault for which the handler was stopped, if it was.
  void count(connection_fault of, const net::ip_address& peer, std::exception_ptr&& failure) noexcept {
    if (!is_of_the_peer(code_of(failure))) {
      add(stats_.failures_);
      options_.on_error(peer.to_endpoint(), std::move(failure));
    } else if (of != connection_fault::late && of != connection_fault::slow) {  // these count(of) has counted
      add(stats_.peer_errors_);
    }
  }

  // Ends with a value however the handler ends, since when_any() would wait for watch() after a handler that ended as stopped.
  // The handler's failure goes to `failure`, since when_any() drops the failure of a loser.
  task<> handle_to_end(net::stream peer, std::atomic<bool>& has_shown, std::exception_ptr& failure) const {
    try {
      auto handler = handle(std::move(peer), has_shown);
      const auto how = co_await as_result(std::move(handler));
      failure = how.exception();
    } catch (...) {  // no memory for a frame
      failure = std::current_exception();
    }
  }
  WEFT_COROUTINE_WRAPPER task<> handle(net::stream peer, std::atomic<bool>& has_shown) const {
    return limits_.has_handshake() ? handle_with_handshake(std::move(peer), has_shown)
                                   : handler_.handle(std::move(peer));
  }
  task<> handle_with_handshake(net::stream peer, std::atomic<bool>& has_shown) const {
    const auto handles = [&] { return handler_.handle(std::move(peer)); };
    co_await with_local(handshake_here, &has_shown, handles);
  }

  // Ends when the connection breaks a limit, and says which. Begins after the handler, which may have given up the connection by
  // then.
  task<connection_fault> watch(descriptor& at, std::uint16_t generation, const std::atomic<bool>& has_shown) const {
    const clock& by = current_clock();
    for (connection_watch of{limits_, by.now(), generation};;) {
      co_await sleep_until(of.due());
      const connection_fault found = of.look(by.now(), at, has_shown);
      if (found != connection_fault::none) co_return found;
    }
  }

  void connection_begins() noexcept {
    connections_.fetch_add(1, std::memory_order_relaxed);  // no edge: the acceptors' count keeps it above 0
    add(stats_.active_);
  }
  void connection_ended(bool had_begun) noexcept {
    stats_.active_.fetch_sub(1, std::memory_order_relaxed);  // for statistics
    if (had_begun)                                           // else its fork failed for lack of memory
      for (acceptor& one : acceptors_) one.one_ended.set();
    if (end_one()) none_left_.set();
  }
  // Whether that was the last one.
  bool end_one() noexcept {
    return connections_.fetch_sub(1, std::memory_order_acq_rel) == 1;  // -> ended, <- ended (no model: a counter)
  }
  static void add(net::server_stats::count& to, std::uint64_t some = 1) noexcept {
    to.fetch_add(some, std::memory_order_relaxed);  // for statistics
  }

  const net::serve_options options_;
  const connection_limits limits_{.handshake = options_.handshake_timeout,
                                  .idle = options_.idle_timeout,
                                  .rate_window = options_.rate_window,
                                  .min_rate = options_.min_rate};
  std::vector<acceptor> acceptors_;
  connection_handler& handler_;
  net::server_stats own_stats_;
  net::server_stats& stats_;
  semaphore places_;
  event drain_, draining_, is_over_, none_left_;
  //   edge ended  what was done for a connection  ->  who finds that it was the last one
  std::atomic<std::size_t> connections_{1};  // and one for the acceptors, until they have ended
  std::atomic<bool> has_failed_{false};  // accept_failed_ is written, or will be. No edge: the scope's join orders it
  std::exception_ptr accept_failed_;
};

event& draining_here() noexcept {
  static event never;
  event* const its = draining_of_server.get();
  return its != nullptr ? *its : never;
}

void handshake_is_done() noexcept {
  if (std::atomic<bool>* const its = handshake_here.get(); its != nullptr)
    its->store(true, std::memory_order_relaxed);  // a flag that orders nothing
}

void expect_sense(const net::serve_options& options) noexcept {
  WEFT_EXPECTS(options.max_connections != 0, "a server with max_connections = 0 was asked for: it could serve nobody");
  WEFT_EXPECTS(options.idle_timeout > clock::duration::zero(), "a server was given an idle_timeout that is no time");
  WEFT_EXPECTS(options.handshake_timeout > clock::duration::zero(),
               "a server was given a handshake_timeout that is no time");
  WEFT_EXPECTS(options.rate_window > clock::duration::zero(), "a server was given a rate_window that is no time");
  WEFT_EXPECTS(options.grace >= clock::duration::zero(), "a server was given a grace below zero");
}

task<> serve_by(net::serve_options options, std::vector<net::listener> at, connection_handler& handler) {
  server one{options, std::move(at), handler};
  co_await one.run();
}

}  // namespace detail

void net::connection_error_handler::lose(void*, const endpoint&, std::exception_ptr&& failure) noexcept {
  detail::lose_error("serve a connection", failure);
}

}  // namespace weft
