// What follows an awaitable: `t | then(f)`, `t | on_value(f) | on_error(g) | on_stop(h)`.
#pragma once

#include <type_traits>
#include <utility>
#include <weft/detail/task/pipe.hpp>
#include <weft/task.hpp>

namespace weft {

/// `t | on_value(f)`: awaits t, then f of its value. A failure or a stop passes f by. Like all adaptors, it awaits what
/// the function gives, if that can be awaited, and moves the function into its frame.
///
///     int n = co_await (read(file) | on_value(parse) | on_error([](const parse_error&) { return 0; }));
template <class F>
auto on_value(F&& f) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
  return detail::make_adaptor<detail::on_value_kind>(std::forward<F>(f));
}

/// `t | then(f)`: the same; but an f that takes a `result<T>` and no T is called with that, however t ended.
template <class F>
auto then(F&& f) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
  return detail::make_adaptor<detail::then_kind>(std::forward<F>(f));
}

/// `t | on_error(g)`: if t fails, what g gives takes the place of its value. g takes a std::exception_ptr and is called
/// for every failure, or an exception type, `[](const std::system_error& e) { … }`, and is called for those; others
/// pass it by. Cost: nothing beside the await, until something is thrown.
template <class G>
auto on_error(G&& g) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(G);
  return detail::make_adaptor<detail::on_error_kind>(std::forward<G>(g));
}

/// `t | on_stop(h)`: if t ends stopped, what h gives takes the place of its value. Where the awaiting task itself was
/// told to stop, its next wait stops again: that can be an await of h's.
template <class H>
auto on_stop(H&& h) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(H);
  return detail::make_adaptor<detail::on_stop_kind>(std::forward<H>(h));
}

}  // namespace weft
