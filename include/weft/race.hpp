// The first of several: when_any, when_some and `range | when(n)`. Who is first, and what becomes of the others, is told in
// join/race.hpp.
#pragma once

#include <cstddef>
#include <utility>
#include <weft/detail/join/group.hpp>
#include <weft/detail/join/race.hpp>
#include <weft/task.hpp>

namespace weft {

/// What when_any gives: which one it was, and its value. `auto [index, value] = co_await when_any(...)`.
template <class Value>
struct any_result {
  std::size_t index;  ///< of the argument, or of the range's element
  Value value;
};

/// Awaits whichever ends first, and stops the others: `auto [index, value] = co_await when_any(f(), g());`. `value` is a
/// std::variant with as many alternatives; void is std::monostate, a reference a std::reference_wrapper.
///
///     auto [index, value] = co_await w::when_any(read(socket), w::sleep_for(1s));
///
/// Suspends  until one has ended with a value or a failure, and all that were started have ended. They start in turn; those
///           behind one that ends at once are never started.
/// Cancel    a stop goes to all of them, and they are joined; a value that came all the same is given. One that is stopped
///           by itself is out of the race; if all are, this ends stopped.
/// Fails     throws what the first one threw, if that was first to end. A failure of another goes to the handler of lost
///           errors, see error.hpp.
/// Cost      as when_all, and an atomic operation to decide.
template <detail::awaitable_argument... Awaitables>
auto when_any(WEFT_ELIDABLE_ARGUMENT Awaitables&&... awaitables) {
  static_assert(sizeof...(Awaitables) > 0, "when_any of nothing would never end");
  return detail::any_of_tuple<await_result<Awaitables>...>{detail::as_task(std::forward<Awaitables>(awaitables))...};
}

/// The same for the elements of a range, which all give the same type. Of an empty one it fails: std::errc::invalid_argument.
template <detail::awaitable_range Range>
WEFT_CONTAINERS auto when_any(Range&& range) {
  return detail::any_of_range<detail::range_result<Range>>{detail::tasks_of(std::forward<Range>(range))};
}
template <int = 0>
void when_any(detail::refused<detail::one_or_range_is_awaited>);
template <int = 0>
void when_any(detail::refused<detail::first_is_awaited>, detail::refused_other,
              detail::refused_other = detail::not_given::it_is, detail::refused_other = detail::not_given::it_is,
              detail::refused_other = detail::not_given::it_is, detail::refused_other = detail::not_given::it_is);

/// Awaits the first `n` of a range to end with a value, and stops the others; gives their indices and values in the order
/// in which they came. `range | when(n)` is the same.
///
/// Fails   a failure before the n-th value decides, and is thrown; later ones are lost errors. Of a range of fewer than `n`
///         this call throws, before anything is awaited: std::errc::invalid_argument. Otherwise as when_any.
template <detail::awaitable_range Range>
WEFT_CONTAINERS auto when_some(std::size_t n, Range&& range) {
  return detail::some_of_range<detail::range_result<Range>>{n, detail::tasks_of(std::forward<Range>(range))};
}
template <int = 0>
void when_some(detail::given<std::size_t>, detail::refused<detail::elements_are_awaited>);

namespace detail {

struct when_stage {
  std::size_t n;
  template <awaitable_range Range>
  WEFT_CONTAINERS friend auto operator|(Range&& range, when_stage self) {
    return weft::when_some(self.n, std::forward<Range>(range));
  }
  template <int = 0>
  friend void operator|(refused<elements_are_awaited>, given<when_stage>) {}  // a friend's default needs a body
};

}  // namespace detail

/// when_some behind a `|`.
[[nodiscard("an adaptor stands behind a range: tasks | when(n)")]] inline detail::when_stage when(
    std::size_t n) noexcept {
  return {n};
}

}  // namespace weft
