// Error policies: what a scope does when a fork fails, as given by `.on_error`.
//
//   fail_fast           the default: the siblings and the body are told to stop, all are joined, the failure is thrown
//   collect_all_errors  nobody is told to stop; at the end an error_list with all failures is thrown
//   a handler           is called with each failure, and nothing else happens: `.on_error = log_it`
//   supervise(handler)  the same, but the handler decides: go on, restart that fork, or fail the scope
//
// A failure of the body always fails the scope.
//
// A policy is a pointer to a function and one to an object, and owns nothing: scope_options must have no destructor, for
// g++ 12 would run it twice where they are written inside a co_await expression.
#pragma once

#include <exception>
#include <type_traits>
#include <utility>
#include <weft/detail/base/config.hpp>
#include <weft/detail/base/duration.hpp>
#include <weft/detail/base/forward.hpp>
#include <weft/detail/base/invoke.hpp>
#include <weft/items.hpp>

namespace weft {

/// A list of failures, the oldest first. A scope with collect_all_errors throws one; a scope fills the one that it is given as
/// `.errors`.
class error_list : public std::exception {
 public:
  error_list() = default;
  /// `failures`: the oldest first.
  explicit error_list(items<std::exception_ptr> failures) noexcept : failures_{std::move(failures)} {}

  const char* what() const noexcept override { return "several forks of a scope failed: see its error_list"; }

  std::size_t size() const noexcept { return failures_.size(); }
  bool empty() const noexcept { return failures_.empty(); }
  const std::exception_ptr& operator[](std::size_t index) const noexcept { return failures_[index]; }
  const std::exception_ptr* begin() const noexcept { return failures_.begin(); }
  const std::exception_ptr* end() const noexcept { return failures_.end(); }

 private:
  items<std::exception_ptr> failures_;
};

/// What a handler of failures decides.
enum class on_failure {
  go_on,  ///< nothing more happens
  /// The fork is started again. Only forks of a function whose arguments can be copied can be; others fail the scope. A fork
  /// that was told to stop is not restarted, as with `go_on`.
  restart,
  fail,  ///< the scope fails
};

/// How often the forks of one scope may be restarted: after `restarts` restarts within the time `within`, the next failure
/// fails the scope.
struct restart_limits {
  unsigned restarts = ~0U;
  detail::time_span within = std::chrono::steady_clock::duration::max();
};

/// Decides what happens when a fork fails. It refers to its handler, which outlives the scope, unless that is a lambda without
/// captures or a function.
///
/// Threads  a handler is called on the thread on which the fork has failed, under no lock; perhaps on several at once.
/// Fails    a handler that throws ends the program with a sentence.
class error_policy {
 public:
  enum class kind { fail_fast, collect_all, handle };

  /// One of the kinds by its name, fail_fast or collect_all.
  constexpr error_policy(kind what = kind::fail_fast) noexcept : kind_{what} {}  // NOLINT: `.on_error = fail_fast`

  /// A handler that is called with each failure. It may return an on_failure; if it returns void, that is on_failure::go_on.
  template <class Handler>
    requires std::is_invocable_v<Handler&, std::exception_ptr> &&
                 (std::is_lvalue_reference_v<Handler> || std::is_empty_v<Handler> || std::is_pointer_v<Handler>)
  error_policy(Handler&& handler, restart_limits limits = {}) noexcept  // NOLINT: `.on_error = log_it`
      : kind_{kind::handle}, limits_{limits} {
    WEFT_EXPECTS(limits.within > std::chrono::steady_clock::duration::zero(),
                 "a policy was given restart_limits whose `within` is no time: restarts would have no limit");
    using plain = std::remove_cvref_t<Handler>;
    if constexpr (std::is_function_v<plain>) {
      object_ = reinterpret_cast<void*>(&handler);
      call_ = [](void* object, std::exception_ptr failure) noexcept {
        return decide(*reinterpret_cast<plain*>(object), std::move(failure));
      };
    } else if constexpr (std::is_pointer_v<plain>) {
      object_ = reinterpret_cast<void*>(handler);
      call_ = [](void* object, std::exception_ptr failure) noexcept {
        return decide(reinterpret_cast<plain>(object), std::move(failure));
      };
    } else if constexpr (std::is_lvalue_reference_v<Handler>) {
      object_ = const_cast<void*>(static_cast<const void*>(std::addressof(handler)));
      call_ = [](void* object, std::exception_ptr failure) noexcept {
        return decide(*static_cast<std::remove_reference_t<Handler>*>(object), std::move(failure));
      };
    } else {
      call_ = [](void*, std::exception_ptr failure) noexcept { return decide(plain{}, std::move(failure)); };
    }
  }

  kind what() const noexcept { return kind_; }                       ///< fail_fast, collect_all, or a handler
  const restart_limits& limits() const noexcept { return limits_; }  ///< how often forks may be restarted
  /// Calls the handler. Only for a policy that has one.
  on_failure operator()(std::exception_ptr failure) const noexcept { return call_(object_, std::move(failure)); }

 private:
  template <class Handler>
  static on_failure decide(Handler&& handler, std::exception_ptr failure) noexcept {
    auto what = on_failure::go_on;
    const auto call = [&] {
      if constexpr (std::is_convertible_v<std::invoke_result_t<Handler, std::exception_ptr>, on_failure>)
        what = detail::invoke(handler, std::move(failure));
      else
        static_cast<void>(detail::invoke(handler, std::move(failure)));
    };
    detail::call_no_throw(call, "the .on_error handler of a scope threw, where nobody could catch it");
    return what;
  }

  kind kind_;
  restart_limits limits_;
  void* object_ = nullptr;
  on_failure (*call_)(void*, std::exception_ptr) noexcept = nullptr;
};

/// The first failure stops the other children and is thrown where the scope ends; or all of them run to their ends, and an
/// error_list of all failures is thrown.
inline constexpr error_policy::kind fail_fast = error_policy::kind::fail_fast;
inline constexpr error_policy::kind collect_all_errors = error_policy::kind::collect_all;

/// A policy by which `handler(std::exception_ptr) -> on_failure` decides on each failure.
template <class Handler>
error_policy supervise(Handler&& handler, restart_limits limits = {}) noexcept {
  static_assert(std::is_convertible_v<std::invoke_result_t<Handler&, std::exception_ptr>, on_failure>,
                "supervise(handler): the handler says what happens, a weft::on_failure");
  return error_policy{std::forward<Handler>(handler), limits};
}

}  // namespace weft
