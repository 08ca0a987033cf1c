// What a scope reports when it was told to stop, and has not ended after a time of its user's choosing.
//
//     co_await w::with_scope({.stop_within = 2s}, serve);  // a child that has not ended 2 s after a stop is named on stderr
//
// A child ignores a stop by computing without check_stop(), behind shielded(), in an awaitable of another library, or in a
// cleanup. What waits in weft now has a stack; what runs has none that could be read from outside, and is named by its
// function.
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
  bool is_body;                       ///< the body of the scope; else a fork
  bool is_shielded;                   ///< it has put the stop off
  async_frame function;               ///< what runs in it
  items<async_frame> stack;           ///< innermost first, the innermost 32; empty: it does not wait in weft now
  items<wait_subject> waits_on = {};  ///< what it waits for there: one thing, or each case of a select
  const void* root = nullptr;         ///< what a wait_subject means by its holder
};

/// A scope that was told to stop and has not ended.
struct overdue_scope {
  std::source_location where;                  ///< the scope
  stop_cause cause;                            ///< why it was told
  std::chrono::steady_clock::duration waited;  ///< since then, by its clock
  std::size_t ignoring;                        ///< how many children have not ended
  items<overdue_child> children;               ///< the body, and the newest of the forks, up to 32 in all
};

/// Several lines for people: the scope, then each child with its stack.
std::ostream& operator<<(std::ostream& out, const overdue_scope& what);
std::string to_string(const overdue_scope& what);

/// What is called with an overdue scope; by default it is printed to stderr. Refers to a callable, which outlives the
/// scope; a lambda without captures, or a function, needs no object.
///
/// Threads  where the scope's clock fires: for the real one its own thread, which nothing else uses meanwhile.
/// Fails    a handler that throws ends the program, with a sentence.
class overdue_handler {
 public:
  constexpr overdue_handler() noexcept = default;  ///< prints

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

  void operator()(const overdue_scope& what) const noexcept { call_(object_, what); }  ///< calls the handler

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
