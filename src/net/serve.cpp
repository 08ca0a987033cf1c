// A server: the task that serve() returns, and what its connections have in common.
//
// serve_by() awaits two tasks. One waits, without a shield, for nothing but a stop, of which it tells the other one. That is
// shielded, and is the scope of all connections, whose body waits until draining begins. What accepts is a fork of that scope.
// So a stop ends the wait for connections, and reaches the handlers only through the body.
#include <weft/serve.hpp>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>
#include <utility>
#include <weft/combine.hpp>
#include <weft/env.hpp>
#include <weft/error.hpp>
#include <weft/race.hpp>
#include <weft/scope.hpp>
#include <weft/select.hpp>
#include <weft/semaphore.hpp>
#include <weft/time.hpp>
#include <weft/with.hpp>

namespace weft {
namespace detail {

struct accepted_connection {
  net::stream stream;
  net::endpoint peer;
};

struct accepting_for_server {
  using value_type = accepted_connection;
  static constexpr const char* name = "accept";
  static constexpr const char* if_taken = nullptr;
  static constexpr direction which() noexcept { return direction::in; }
  bool may_try() const noexcept { return at->may_try(which()); }
  tried attempt() noexcept {
    one_ended->reset();  // before the system is asked: what ends from here on is worth another try
    return try_accept(*at, &peer);
  }
  accepted_connection give(const tried& got) const {
    *is_lost = true;
    accepted_connection one{net::stream::take_over(static_cast<int>(got.size)), peer};
    *is_lost = false;
    return one;
  }

  descriptor* at;
  event* one_ended;
  bool* is_lost;  // a connection came that nobody has
  net::endpoint peer{};
};

namespace {

// The delays between attempts to accept for which the system lacks something.
class accept_delay {
 public:
  void reset() noexcept { next_ = first; }
  clock::duration next() noexcept { return std::exchange(next_, std::min(2 * next_, most)); }

 private:
  static constexpr clock::duration first = std::chrono::milliseconds{5}, most = std::chrono::seconds{1};
  clock::duration next_ = first;
};

// For the last one, no try behind it can succeed.
enum class accept_failure : std::uint8_t { of_the_connection, of_the_system, of_the_listener };

accept_failure kind_of(const std::error_code& refused) noexcept {
  if (refused.category() != std::generic_category()) return accept_failure::of_the_listener;
  switch (refused.value()) {
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
    case ENOSPC:  // for what watches it
    case EPERM:   // a filter refuses the call, and may do so for ever
      return accept_failure::of_the_system;
    case ECONNRESET:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENETUNREACH:
    case ENONET:
    case ENOPROTOOPT:
    case ETIMEDOUT: return accept_failure::of_the_connection;
    default: return accept_failure::of_the_listener;
  }
}

// Whether a handler has failed by what its peer did.
bool is_of_the_peer(const std::error_code& failed) noexcept {
  if (failed == errc::closed) return true;
  if (failed.category() != std::generic_category() && failed.category() != std::system_category()) return false;
  switch (failed.value()) {
    case ECONNABORTED:
    case ECONNRESET:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENETRESET:
    case ENETUNREACH:
    case ENOTCONN:
    case EPIPE:
    case ETIMEDOUT: return true;
    default: return false;
  }
}

local<event*> draining_of_server{nullptr};

}  // namespace

class server {
 public:
  server(const net::serve_options& options, net::listener&& at, connection_handler& handler) noexcept
      : options_{options},
        at_{std::move(at)},
        handler_{handler},
        stats_{options.stats != nullptr ? *options.stats : own_stats_},
        places_{options.max_connections} {}

  task<> run() { co_await when_all(tell_of_stop(), shielded(serve_connections())); }

 private:
  // A connection's part of the server, until its handler has ended and its descriptor is closed.
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
    bool has_begun_ = false;  // its task runs
  };
  // Sets an event at the end of a block, however that comes.
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
    co_await with_local(draining_of_server, &draining_, in_scope);
    if (accept_failed_) std::rethrow_exception(accept_failed_);
  }

  task<> accept_and_drain(scope& connections) {
    const stops_at_end stops{connections};
    fork<> accepting = connections.fork(accept_all(connections));
    co_await drain_.wait();
    accepting.request_stop({.reason = "the server drains"});
    static_cast<void>(co_await as_result(std::move(accepting)));
    at_.close();
    draining_.set();
    if (end_one()) co_return;
    const auto ended = co_await select(on(none_left_.wait()), after(options_.grace));
    if (ended.index == 1) add(stats_.cut_, connections_.load(std::memory_order_relaxed));  // a figure
  }

  task<> accept_all(scope& connections) {
    const sets_at_end drains{drain_};  // also where it is stopped
    try {
      co_await accept_while_open(connections);
    } catch (...) {  // thrown by serve_connections
      accept_failed_ = std::current_exception();
    }
  }

  task<> accept_while_open(scope& connections) {
    for (accept_delay delay;;) {
      bool lacks_something = false, is_lost = false;
      try {
        semaphore::permit permit = co_await places_.acquire();
        auto accept = run_operation(accepting_for_server{at_.at_, &one_ended_, &is_lost});
        auto got = co_await as_result(std::move(accept));
        if (got.is_stopped()) {
          co_await check_stop();  // a permit that is free is no stop point where it was somebody around that was told
        } else if (got.has_value()) {
          is_lost = true;  // unless it has begun
          begin(connections, std::move(permit), *std::move(got));
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
      co_await select(on(one_ended_.wait()), after(delay.next()));  // allocates nothing
    }
  }

  void begin(scope& connections, semaphore::permit&& permit, accepted_connection&& one) {
    place mine{*this, std::move(permit)};
    connections.fork(serve_one(std::move(mine), std::move(one)));
    add(stats_.accepted_);
  }

  task<> serve_one(place given, accepted_connection one) {
    place mine{std::move(given)};  // until all of this has gone
    mine.has_begun();
    net::stream peer = std::move(one.stream);
    std::exception_ptr failure;
    try {
      if (options_.idle_timeout == clock::duration::max()) {
        const auto how = co_await as_result(handler_.handle(std::move(peer)));
        failure = how.exception();
      } else {
        descriptor& at = *peer.at_;
        // As a result, since a handler that is stopped by itself would be out of the race, and leave the other one.
        auto race = when_any(as_result(handler_.handle(std::move(peer))), wait_until_idle(at, at.generation()));
        const auto first = co_await std::move(race);
        if (first.index == 1)
          add(stats_.idle_);
        else
          failure = std::get<0>(first.value).exception();
      }
    } catch (...) {  // no frame
      failure = std::current_exception();
    }
    if (!failure) co_return;
    if (is_of_the_peer(code_of(failure))) {
      add(stats_.peer_errors_);
    } else {
      add(stats_.failures_);
      options_.on_error(one.peer, std::move(failure));
    }
  }

  // Ends when nothing was read or written for four looks, a quarter of the time each. The descriptor may be another
  // connection's by then, if the handler goes on without its own.
  task<> wait_until_idle(descriptor& at, std::uint16_t generation) const {
    int quiet = 0;
    // Delayed by a look that comes late: one that follows soon is no quarter.
    for (interval looks{std::max(options_.idle_timeout / 4, clock::duration{1}), missed_ticks::delay}; quiet != 4;) {
      co_await looks.next();
      // In this order: the flag may be another connection's.
      quiet = at.generation() == generation && !at.take_moved() ? quiet + 1 : 0;
    }
  }

  void connection_begins() noexcept {
    connections_.fetch_add(1, std::memory_order_relaxed);  // by who holds one of them
    add(stats_.active_);
  }
  void connection_ended(bool had_begun) noexcept {
    stats_.active_.fetch_sub(1, std::memory_order_relaxed);  // a figure
    if (had_begun) one_ended_.set();                         // else it is one for which something lacked
    if (end_one()) none_left_.set();
  }
  // Whether that was the last one.
  bool end_one() noexcept {
    return connections_.fetch_sub(1, std::memory_order_acq_rel) == 1;  // -> ended, <- ended (no model: a counter)
  }
  static void add(net::server_stats::count& to, std::uint64_t some = 1) noexcept {
    to.fetch_add(some, std::memory_order_relaxed);  // a figure
  }

  const net::serve_options options_;
  net::listener at_;
  connection_handler& handler_;
  net::server_stats own_stats_;
  net::server_stats& stats_;
  semaphore places_;
  event drain_, draining_, is_over_, none_left_, one_ended_;
  //   edge ended  what was done for a connection  ->  who finds that it was the last one
  std::atomic<std::size_t> connections_{1};  // and one for what accepts, until that has ended
  std::exception_ptr accept_failed_;
};

event& draining_here() noexcept {
  static event never;
  event* const its = draining_of_server.get();
  return its != nullptr ? *its : never;
}

void expect_sense(const net::serve_options& options) noexcept {
  WEFT_EXPECTS(options.max_connections != 0, "a server with max_connections = 0 was asked for: it could serve nobody");
  WEFT_EXPECTS(options.idle_timeout > clock::duration::zero(), "a server was given an idle_timeout that is no time");
  WEFT_EXPECTS(options.grace >= clock::duration::zero(), "a server was given a grace below zero");
}

task<> serve_by(net::serve_options options, net::listener at, connection_handler& handler) {
  server one{options, std::move(at), handler};
  co_await one.run();
}

}  // namespace detail

void net::connection_error_handler::lose(void*, const endpoint&, std::exception_ptr&& failure) noexcept {
  detail::lose_error("serve a connection", failure);
}

}  // namespace weft
