// Reports of scopes that were told to stop and have not ended within a given time.
//
//     co_await w::with_scope({.stop_within = 2s}, serve);  // a child that has not ended 2 s after a stop is named on stderr
//
// A child ignores a stop while it computes without check_stop(), is shielded(), awaits something of another library, or runs a
// cleanup. If it waits in weft, the report has its async stack. The stack of a running child is known to its thread alone: if
// the process has a watchdog, its signal asks the thread for it; otherwise the report names only the child's function.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <source_location>
#include <string>
#include <type_traits>
#include <weft/async_frame.hpp>
#include <weft/detail/base/config.hpp>
#include <weft/detail/base/forward.hpp>
#include <weft/detail/base/invoke.hpp>
#include <weft/items.hpp>
#include <weft/stop.hpp>
#include <weft/wait_subject.hpp>

namespace weft {

/// A child of a scope that has not ended.
struct overdue_child {
  bool is_body;          ///< the body of the scope; else a fork
  bool is_shielded;      ///< whether it is shielded from the stop
  async_frame function;  ///< its outermost function
  /// The innermost 32 frames, innermost first. Empty: it does not wait in weft, and its thread can't be asked.
  items<async_frame> stack;
  items<wait_subject> waits_on = {};  ///< what it waits for: one thing, or each case of a select
  const void* root = nullptr;         ///< identifies it where a wait_subject names its holder
  bool runs = false;                  ///< whether `stack` is that of a thread: plain functions first, then coroutines
};

/// A scope that was told to stop and has not ended.
struct overdue_scope {
  std::source_location where;                  ///< the scope
  stop_cause cause;                            ///< why it was told to stop
  std::chrono::steady_clock::duration waited;  ///< the time since then, by its clock
  std::size_t ignoring;                        ///< how many children have not ended
  items<overdue_child> children;               ///< the body, and the newest of the forks, up to 32 in all
};

/// Prints a report of several lines: the scope, then each child with its stack.
std::ostream& operator<<(std::ostream& out, const overdue_scope& what);
std::string to_string(const overdue_scope& what);

/// A callable that is called with an overdue scope. The default one prints it to stderr. The callable outlives the scope,
/// unless it is a lambda without captures or a function.
///
/// Threads  called on the thread on which the scope's clock fires; the real clock's thread fires no other timer meanwhile.
/// Fails    a callable that throws ends the program with a sentence.
class overdue_handler {
 public:
  constexpr overdue_handler() noexcept = default;  ///< prints to stderr

  template <class Handler>
    requires std::is_invocable_v<Handler&, const overdue_scope&> &&
             (std::is_lvalue_reference_v<Handler> || std::is_empty_v<Handler>)
  overdue_handler(Handler&& handler) noexcept {  // NOLINT: `.on_overdue = log_it`
    using plain = std::remove_cvref_t<Handler>;
    if constexpr (std::is_function_v<plain>) {
      object_ = reinterpret_cast<void*>(&handler);
      call_ = [](void* object, const overdue_scope& what) noexcept { call(*reinterpret_cast<plain*>(object), what); };
    } else if constexpr (std::is_lvalue_reference_v<Handler>) {
      object_ = const_cast<void*>(static_cast<const void*>(std::addressof(handler)));
      call_ = [](void* object, const overdue_scope& what) noexcept {
        call(*static_cast<std::remove_reference_t<Handler>*>(object), what);
      };
    } else {
      call_ = [](void*, const overdue_scope& what) noexcept {
        plain here{};
        call(here, what);
      };
    }
  }

  void operator()(const overdue_scope& what) const noexcept { call_(object_, what); }  ///< calls the callable

 private:
  template <class Handler>
  static void call(Handler& handler, const overdue_scope& what) noexcept {
    auto calls = [&] { static_cast<void>(detail::invoke(handler, what)); };
    detail::call_no_throw(calls, "the .on_overdue handler of a scope threw, where nobody could catch it");
  }
  static void print(void*, const overdue_scope& what) noexcept;

  void* object_ = nullptr;
  void (*call_)(void*, const overdue_scope&) noexcept = print;
};

}  // namespace weft
