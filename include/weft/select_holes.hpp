// Cases of a select that may be missing, and never(). Part of select.hpp.
//
// on_if() makes a case that takes part only under a condition, so that the other cases keep their numbers. It stands for Go's
// nil channels, as do on_receive(pointer) and on_send(pointer, value).
#pragma once

#include <optional>
#include <type_traits>
#include <utility>
#include <weft/channel.hpp>
#include <weft/detail/channel/select_holes.hpp>
#include <weft/select_cases.hpp>

namespace weft {

/// A case that may be missing: see on_if().
template <class Case>
class case_if {
 public:
  using result_type = typename Case::result_type;
  using state = detail::state_if<Case>;
  explicit case_if(std::optional<Case> one) noexcept : one_{std::move(one)} {}  ///< never chosen if it is empty

 private:
  friend state;
  std::optional<Case> one_;
};

/// A case that takes part only if `holds` is true. Otherwise it is never ready, but keeps its index.
///
///     auto got = co_await select(on_receive(in), on_if(!queue.empty(), on_send(out, next)));
///
/// A vector may have such cases: `std::vector<case_if<receive_case<int>>>`. A case that runs beside its select, and
/// `otherwise`, can't be wrapped.
///
/// Cost  a flag, and a test of it.
template <class Case>
case_if<Case> on_if(bool holds, Case one) {
  static_assert(detail::waits_in_a_line<Case>,
                "on_if() takes a case that waits in a line: leave out what runs beside its select, and otherwise");
  return case_if<Case>{holds ? std::optional<Case>{std::move(one)} : std::nullopt};
}

/// A receive from a channel that may be missing: with a null pointer the case is never ready, as Go's nil channel.
template <class T>
case_if<receive_case<T>> on_receive(channel<T>* from) {
  using found = std::optional<receive_case<T>>;
  return case_if<receive_case<T>>{from != nullptr ? found{on_receive(*from)} : found{}};
}
/// The same for a send. Without a channel the value is destroyed with the select.
template <class T, class U = T>
  requires std::is_constructible_v<T, U&&>
case_if<send_case<T>> on_send(channel<T>* to, U&& value) {
  using found = std::optional<send_case<T>>;
  return case_if<send_case<T>>{to != nullptr ? found{on_send(*to, std::forward<U>(value))} : found{}};
}

/// Never completes: `co_await never();` waits until it is stopped. `never<T>()` has the result type T.
///
/// Suspends  always.
/// Cancel    ends stopped. As a case of a select, on(never()), it is never chosen.
/// Cost      no allocation.
template <class T = void>
detail::never_ending<T> never() noexcept {
  return {};
}

}  // namespace weft
