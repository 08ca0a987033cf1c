// The first of several: when_any, when_some and `range | when(n)`. How the winner is decided, and the others are ended, is
// described in join/race.hpp.
#pragma once

#include <cstddef>
#include <source_location>
#include <utility>
#include <weft/detail/join/awaitables.hpp>
#include <weft/detail/join/group.hpp>
#include <weft/detail/join/race.hpp>
#include <weft/task.hpp>

namespace weft {

/// What when_any gives: which one has won, and its value. `auto [index, value] = co_await when_any(...)`.
template <class Value>
struct any_result {
  std::size_t index;  ///< of the argument, or of the element in the range
  Value value;
};

/// Awaits several, gives the result of the one that ends first, and stops the others. `value` is a std::variant with an
/// alternative for each; void becomes std::monostate, a reference a std::reference_wrapper.
///
///     auto [index, value] = co_await w::when_any(read(socket), w::sleep_for(1s));
///
/// Suspends  until one has ended with a value or a failure, and all others that were started have ended. They are started in
///           order; those after one that ends at once are never started.
/// Cancel    stops all of them, and joins them; if one gives a value nevertheless, so does this. One that ends stopped by
///           itself is out of the race; if all do, this ends stopped. In those that are stopped because another was first,
///           why_stopped() says so, with `where`.
/// Fails     throws what the winner has thrown. Failures of the others go to the handler of lost errors, see error.hpp.
/// Cost      as when_all, and an atomic operation to decide.
template <detail::awaitable_argument A, detail::awaitable_argument B>
auto when_any(WEFT_ELIDABLE_ARGUMENT A&& a, WEFT_ELIDABLE_ARGUMENT B&& b,
              std::source_location where = std::source_location::current()) {
  return detail::any_of(where, std::forward<A>(a), std::forward<B>(b));
}
/// Of one, of three, and so on. What is an awaitable and a range of such is taken as a range.
template <detail::awaitable_argument A>
  requires(!detail::awaitable_range<A>)
auto when_any(WEFT_ELIDABLE_ARGUMENT A&& a, std::source_location where = std::source_location::current()) {
  return detail::any_of(where, std::forward<A>(a));
}
template <detail::awaitable_argument A, detail::awaitable_argument B, detail::awaitable_argument C>
auto when_any(WEFT_ELIDABLE_ARGUMENT A&& a, WEFT_ELIDABLE_ARGUMENT B&& b, WEFT_ELIDABLE_ARGUMENT C&& c,
              std::source_location where = std::source_location::current()) {
  return detail::any_of(where, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c));
}
template <detail::awaitable_argument A, detail::awaitable_argument B, detail::awaitable_argument C,
          detail::awaitable_argument D>
auto when_any(WEFT_ELIDABLE_ARGUMENT A&& a, WEFT_ELIDABLE_ARGUMENT B&& b, WEFT_ELIDABLE_ARGUMENT C&& c,
              WEFT_ELIDABLE_ARGUMENT D&& d, std::source_location where = std::source_location::current()) {
  return detail::any_of(where, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c), std::forward<D>(d));
}
template <detail::awaitable_argument A, detail::awaitable_argument B, detail::awaitable_argument C,
          detail::awaitable_argument D, detail::awaitable_argument E>
auto when_any(WEFT_ELIDABLE_ARGUMENT A&& a, WEFT_ELIDABLE_ARGUMENT B&& b, WEFT_ELIDABLE_ARGUMENT C&& c,
              WEFT_ELIDABLE_ARGUMENT D&& d, WEFT_ELIDABLE_ARGUMENT E&& e,
              std::source_location where = std::source_location::current()) {
  return detail::any_of(where, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c), std::forward<D>(d),
                        std::forward<E>(e));
}
template <detail::awaitable_argument A, detail::awaitable_argument B, detail::awaitable_argument C,
          detail::awaitable_argument D, detail::awaitable_argument E, detail::awaitable_argument F>
auto when_any(WEFT_ELIDABLE_ARGUMENT A&& a, WEFT_ELIDABLE_ARGUMENT B&& b, WEFT_ELIDABLE_ARGUMENT C&& c,
              WEFT_ELIDABLE_ARGUMENT D&& d, WEFT_ELIDABLE_ARGUMENT E&& e, WEFT_ELIDABLE_ARGUMENT F&& f,
              std::source_location where = std::source_location::current()) {
  return detail::any_of(where, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c), std::forward<D>(d),
                        std::forward<E>(e), std::forward<F>(f));
}
/// Of more than six, without the line of the call.
template <detail::awaitable_argument... Awaitables>
  requires(sizeof...(Awaitables) > detail::most_with_line)
auto when_any(WEFT_ELIDABLE_ARGUMENT Awaitables&&... awaitables) {
  return detail::any_of({}, std::forward<Awaitables>(awaitables)...);
}
detail::race_of_nothing when_any();

/// The same for the elements of a range, which give the same type. Fails with std::errc::invalid_argument for an empty one.
template <detail::awaitable_range Range>
WEFT_CONTAINERS auto when_any(Range&& range, std::source_location where = std::source_location::current()) {
  return detail::any_of_range<detail::range_result<Range>>{detail::tasks_of(std::forward<Range>(range)), where};
}
template <int = 0>
void when_any(detail::refused<detail::one_or_range_is_awaited>);
template <int = 0>
void when_any(detail::refused<detail::first_is_awaited>, detail::refused_other,
              detail::refused_other = detail::not_given::it_is, detail::refused_other = detail::not_given::it_is,
              detail::refused_other = detail::not_given::it_is, detail::refused_other = detail::not_given::it_is);
template <int = 0>
detail::void_is_no_awaitable when_any(...);

/// Awaits the elements of a range until `n` have ended with a value, and stops the others; gives their indices and values, in
/// the order in which they ended. `range | when(n)` is the same.
///
/// Fails   a failure before the n-th value ends the race, and is thrown; later ones are lost errors. For a range of fewer than
///         `n` elements the call throws std::errc::invalid_argument before anything is awaited. Otherwise as when_any.
template <detail::awaitable_range Range>
WEFT_CONTAINERS auto when_some(std::size_t n, Range&& range,
                               std::source_location where = std::source_location::current()) {
  return detail::some_of_range<detail::range_result<Range>>{n, detail::tasks_of(std::forward<Range>(range)), where};
}
template <int = 0>
void when_some(detail::given<std::size_t>, detail::refused<detail::elements_are_awaited>);

namespace detail {

struct when_stage {
  std::size_t n;
  std::source_location where;
  template <awaitable_range Range>
  WEFT_CONTAINERS friend auto operator|(Range&& range, when_stage self) {
    return weft::when_some(self.n, std::forward<Range>(range), self.where);
  }
  template <int = 0>
  friend void operator|(refused<elements_are_awaited>, given<when_stage>) {}  // a friend's default needs a body
};

}  // namespace detail

/// when_some as an adaptor: `range | when(n)`.
[[nodiscard("an adaptor stands behind a range: tasks | when(n)")]] inline detail::when_stage when(
    std::size_t n, std::source_location where = std::source_location::current()) noexcept {
  return {n, where};
}

}  // namespace weft
