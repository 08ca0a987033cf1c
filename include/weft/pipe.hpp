// Continuations of an awaitable, by `|`: `t | then(f)`, `t | on_value(f) | on_error(g) | on_stop(h)`.
//
// What holds for all of them:
//
//   Suspends  nothing runs before the whole is awaited; then it suspends as `t` does, and as what the function returns, if that
//             can be awaited: it is awaited, too.
//   Cancel    a stop of the awaiting task reaches `t`, or what the function returned.
//   Lifetime  the function is moved into the frame; what it refers to outlives the await.
//   Cost      the frame of a coroutine.
#pragma once

#include <type_traits>
#include <utility>
#include <weft/detail/task/pipe.hpp>
#include <weft/task.hpp>

namespace weft {

/// `t | on_value(f)`: awaits t, then calls f with its value and gives what f returns. If t fails or is stopped, f is not
/// called.
///
///     int n = co_await (read(file) | on_value(parse) | on_error([](const parse_error&) { return 0; }));
template <class F>
auto on_value(F&& f) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
  return detail::make_adaptor<detail::on_value_kind>(std::forward<F>(f));
}

/// `t | then(f)`: the same, but an f that takes a `result<T>`, and no T, is called with the result, however t has ended.
template <class F>
auto then(F&& f) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
  return detail::make_adaptor<detail::then_kind>(std::forward<F>(f));
}

/// `t | on_error(g)`: if t fails, gives what g returns in place of the value. A g that takes a std::exception_ptr is called for
/// every failure; one that takes an exception type, as `[](const std::system_error& e) { … }`, for exceptions of that type, and
/// all others pass through. Cost: nothing beside the await, until something is thrown.
template <class G>
auto on_error(G&& g) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(G);
  return detail::make_adaptor<detail::on_error_kind>(std::forward<G>(g));
}

/// `t | on_stop(h)`: if t ends stopped, gives what h returns in place of the value. If the awaiting task itself was told to
/// stop, its next wait ends it, even one in what h returns.
template <class H>
auto on_stop(H&& h) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(H);
  return detail::make_adaptor<detail::on_stop_kind>(std::forward<H>(h));
}

}  // namespace weft
