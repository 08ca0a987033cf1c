// Requests to stop: a source, tokens that refer to it, and callbacks.
//
//     w::stop_source closing;
//     w::stop_callback log{closing.token(), [] { puts("closing"); }};
//     closing.request_stop({.reason = "an operator has asked for it"});
//
// Most code needs none of this: tasks inherit their stop token from their environment, and every await of weft obeys it. A
// request carries a cause, by which one can find out later why something was stopped.
//
// A source does not move: it stands in the frame of whoever may request the stop. Tokens are pointers to it, and callbacks are
// nodes in its list: no reference counts, and no allocation.
#pragma once

#include <atomic>
#include <cstdint>
#include <source_location>
#include <type_traits>
#include <utility>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/base/config.hpp>
#include <weft/detail/core/stop_node.hpp>

namespace weft {

namespace detail { struct debug_core; }

/// Why a stop was requested. The text is not copied: it outlives the source, and each `stopped` that was caught for it.
struct stop_cause {
  const char* reason = "stop requested";  ///< a string literal, or text that outlives whoever asks for it
  std::source_location where = std::source_location::current();
  const void* thrown_in = nullptr;  ///< where a failure is why: the coroutine that threw; async_frame{it} has its name
};

class stop_token;

/// Requests a stop, once, of any number of listeners. It does not move, and outlives its tokens and callbacks (asserted for
/// callbacks).
///
/// Threads   all members from any thread.
/// Lifetime  stopped work may destroy it before request_stop() has returned: on the same thread, in a callback that has
///           destroyed its own stop_callback before, or on another thread.
class stop_source {
 public:
  stop_source() = default;
  stop_source(const stop_source&) = delete;
  stop_source& operator=(const stop_source&) = delete;
  ~stop_source();

  /// Tells all listeners to stop: calls their callbacks on this thread, one after the other, while it holds no lock. False: a
  /// stop was requested before, and nothing happens. Never throws. Cost: a spin lock, taken once for each callback.
  bool request_stop(stop_cause cause = {}) noexcept;

  /// Whether a stop was requested. Takes no lock.
  bool stop_requested() const noexcept {
    return (state_.load(std::memory_order_acquire) & requested) != 0;  // <- asked
  }

  /// Why the stop was requested; null before that.
  const stop_cause* cause() const noexcept { return stop_requested() ? &cause_ : nullptr; }

  stop_token token() noexcept;  ///< for those who are to listen; the source outlives it

 private:
  friend class stop_token;
  friend struct detail::debug_core;
  template <class F>
  friend class stop_callback;

  bool add(detail::stop_node& node) noexcept;  // false: stopped already, the node is not in the list
  void remove(detail::stop_node& node) noexcept;
  void lock() noexcept;
  void unlock(std::uint32_t set = 0) noexcept;
  void let_go_of_run() noexcept;

  static constexpr std::uint32_t locked = 1, requested = 2, in_run = 4;

  // `locked` guards the list and the run; `requested` is set once, under the lock; `in_run` is there, once callbacks are
  // called, until the last access of the thread that calls them.
  //   edge list   changes of the list        ->  the next holder of the lock, and the destructor
  //   edge asked  the cause, and what led to it  ->  whoever sees `requested`
  //
  // test/model/stop_model.cpp fails without them.
  detail::atomic<std::uint32_t> state_{0};
  detail::plain<detail::stop_node*> nodes_ = nullptr;
  detail::plain<detail::stop_run*> run_ = nullptr;  // while `in_run`: on the stack of the request_stop() that runs
  stop_cause cause_{nullptr, {}};
};

/// Refers to a stop_source, or to none; then it is never stopped. It is a pointer: copies are free, and valid as long as the
/// source lives.
class stop_token {
 public:
  stop_token() = default;

  /// Whether its source has requested a stop; false without a source.
  bool stop_requested() const noexcept { return source_ != nullptr && source_->stop_requested(); }
  bool stop_possible() const noexcept { return source_ != nullptr; }  ///< whether it has a source
  /// Why that stop was requested; null before, and without a source.
  const stop_cause* cause() const noexcept { return source_ != nullptr ? source_->cause() : nullptr; }

  friend bool operator==(stop_token, stop_token) = default;

 private:
  friend class stop_source;
  template <class F>
  friend class stop_callback;
  explicit stop_token(stop_source* source) noexcept : source_{source} {}

  stop_source* source_ = nullptr;
};

inline stop_token stop_source::token() noexcept { return stop_token{this}; }

/// Calls `callback` once when the token's source requests a stop: in the constructor if it already has, else on the thread that
/// calls request_stop(). The destructor removes the callback, and blocks while it is running on another thread.
///
/// Cost     no allocation: the list's node is this object. The constructor and the destructor take a spin lock.
/// Threads  any. The callback must not throw (that ends the program, with a sentence), and must not wait for the thread that
///          runs this destructor.
template <class F>
class stop_callback : detail::stop_node {
  static_assert(std::is_invocable_v<F&>, "a stop_callback calls its function without arguments");

 public:
  /// Calls `callback` before it returns, if the stop was requested already.
  template <class G>
  stop_callback(stop_token token, G&& callback) noexcept(std::is_nothrow_constructible_v<F, G>)
      : stop_node{[](stop_node& self) noexcept { static_cast<stop_callback&>(self).call(); }},
        callback_(std::forward<G>(callback)),
        source_{token.source_} {
    if (source_ != nullptr && !source_->add(*this)) {
      source_ = nullptr;
      call();
    }
  }
  ~stop_callback() {
    if (source_ != nullptr) source_->remove(*this);
  }

 private:
  // This object may be gone when this returns.
  void call() noexcept {
    detail::call_no_throw(callback_, "the function of a stop_callback threw, where nobody could catch it");
  }

  F callback_;
  stop_source* source_;
};
template <class F>
stop_callback(stop_token, F) -> stop_callback<F>;

}  // namespace weft
