// What when_all, when_any and their like take: awaitables, one by one or as a range. Why something else is refused, what awaiting
// an element gives, and a range as tasks. Part of combine.hpp.
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>
#include <weft/detail/base/standard.hpp>
#include <weft/detail/task/as_task.hpp>
#include <weft/detail/task/refused.hpp>
#include <weft/task.hpp>

namespace weft::detail {

/// The elements of an rvalue container are the callee's to move from; those of a view, or of an lvalue, are not.
template <class Range>
inline constexpr bool gives_its_elements = !std::is_lvalue_reference_v<Range> && !std::ranges::view<Range>;

template <class Range>
using range_awaitable = std::conditional_t<gives_its_elements<Range>, std::ranges::range_value_t<Range>&&,
                                           std::ranges::range_reference_t<Range>>;

template <class Range>
concept awaitable_range = std::ranges::input_range<Range> && awaitable_argument<range_awaitable<Range>>;

/// Why a range is not taken that is to have awaitables.
struct elements_are_awaited {
  template <class Range>
  static constexpr refusal why() {
    if constexpr (awaitable_range<Range>)
      return refusal::none;
    else if constexpr (!std::ranges::input_range<Range>)
      return refusal::not_a_range;
    else if constexpr (awaitable_argument<std::ranges::range_value_t<Range>>)
      return refusal::kept_tasks;
    else
      return refusal::elements;
  }
  static constexpr bool converts_others = false;
};

/// Why something is neither awaited itself nor a range of what is.
struct one_or_range_is_awaited {
  template <class T>
  static constexpr refusal why() {
    if constexpr (!awaitable_argument<T> && std::ranges::input_range<T>)
      return elements_are_awaited::why<T>();
    else
      return one_is_awaited::why<T>();
  }
  static constexpr bool converts_others = false;
};

/// Why the first of several is not awaited, and why another one is not. Only the first may be meant as a range.
struct first_is_awaited {
  template <class T>
  static constexpr refusal why() {
    constexpr refusal alone = one_or_range_is_awaited::why<T>();
    return alone == refusal::none && !awaitable_argument<T> ? refusal::range_beside_others : alone;
  }
  static constexpr bool converts_others = true;
};
struct others_are_awaited : one_is_awaited {
  static constexpr bool converts_others = true;
};
using refused_other = refused<others_are_awaited>;

/// Why a function is not taken that is to make awaitables.
struct awaited_are_made {
  template <class Make>
  static constexpr refusal why() {
    if constexpr (requires { requires weft::awaitable<std::invoke_result_t<const std::decay_t<Make>&, std::size_t>>; })
      return refusal::none;
    return refusal::make;
  }
  static constexpr bool converts_others = false;
};

/// What awaiting an element gives.
template <class Range>
using range_result = await_result<range_awaitable<Range>>;

/// All elements as tasks. A vector of tasks is moved.
template <class Range>
std::vector<task<range_result<Range>>> tasks_of(Range&& range) {
  using value_type = range_result<Range>;
  if constexpr (std::is_same_v<std::remove_cvref_t<Range>, std::vector<task<value_type>>> &&
                gives_its_elements<Range>) {
    return std::forward<Range>(range);
  } else {
    std::vector<task<value_type>> tasks;
    if constexpr (std::ranges::sized_range<Range>) tasks.reserve(std::ranges::size(range));
    for (auto&& one : range) tasks.push_back(as_task(static_cast<range_awaitable<Range>&&>(one)));
    return tasks;
  }
}

}  // namespace weft::detail
