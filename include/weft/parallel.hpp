// Parallel loops over a range, on a pool: for_each and reduce.
//
//     co_await w::for_each(pixels, shade);
//     double sum = co_await w::reduce(samples, 0.0);
//
// A loop checks for a stop between two pieces of its range. On an executor that can't run in parallel, the first one in a
// process writes a warning to stderr. detail/pool/parallel_loop.hpp says how a range is divided.
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <weft/detail/base/standard.hpp>
#include <weft/detail/pool/parallel_loop.hpp>
#include <weft/task.hpp>

namespace weft {

/// How a range is divided into pieces.
struct parallel_options {
  /// The least number of elements in a piece, which is not divided further; 0: 1/512 of the range.
  std::size_t grain = 0;
};

/// Calls `f(element)` for all elements of a range, on a pool several at the same time. If `f` returns something that can be
/// awaited, that is awaited.
///
///     co_await w::for_each(pixels, shade);
///     co_await w::for_each({.grain = 4}, std::views::iota(0, rows), blur_row);
///
/// Order     none on a pool. On an executor that runs one job at a time, that of the range; the first such loop writes a
///           warning to stderr, since that is seldom intended.
/// Suspends  until all pieces have ended.
/// Cancel    is checked before each piece, and wherever `f` waits.
/// Fails     throws the first exception. Pieces that have not begun then are left out, and the others are waited for. A failure
///           is thrown even where a stop has ended other pieces.
/// Lifetime  a range that is an lvalue outlives the loop; one that is an rvalue is moved into its frame, as is `f`.
/// Cost      for each piece, that of a when_all; the elements of a piece are called in a plain loop.
template <detail::loop_range Range, class F>
  requires std::invocable<std::decay_t<F>&, std::ranges::range_reference_t<Range>>
WEFT_COROUTINE_TAKES_OVER task<> for_each(parallel_options options, Range&& range, F&& f) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
  return detail::run_for_each<detail::range_in_frame<Range>, std::decay_t<F>>(std::forward<Range>(range),
                                                                              std::forward<F>(f), options.grain);
}
template <detail::loop_range Range, class F>
  requires std::invocable<std::decay_t<F>&, std::ranges::range_reference_t<Range>>
WEFT_COROUTINE_TAKES_OVER task<> for_each(Range&& range, F&& f) {
  return for_each(parallel_options{}, std::forward<Range>(range), std::forward<F>(f));
}

/// Combines `initial` and `transform(element)` of all elements, in the order of the range; on a pool, several pieces at the
/// same time. So `combine(a, b)` takes two `T`s and gives one, and must be associative, but need not be commutative. An empty
/// range gives `initial`.
///
///     double sum = co_await w::reduce(samples, 0.0);
///     long bytes = co_await w::reduce({.grain = 1}, files, 0L, std::plus<>{}, size_of_file);
///
/// Otherwise as for_each.
template <detail::loop_range Range, class T, class Combine = std::plus<>, class Transform = std::identity>
  requires std::invocable<std::decay_t<Transform>&, std::ranges::range_reference_t<Range>>
WEFT_COROUTINE_TAKES_OVER task<T> reduce(parallel_options options, Range&& range, T initial, Combine&& combine = {},
                                         Transform&& transform = {}) {
  static_assert(std::is_invocable_r_v<T, std::decay_t<Combine>&, T, T>,
                "reduce combines two of `initial`'s type into one");
  static_assert(
      std::is_convertible_v<std::invoke_result_t<std::decay_t<Transform>&, std::ranges::range_reference_t<Range>>, T>,
      "reduce makes of each element one of `initial`'s type, by `transform`");
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(Combine);
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(Transform);
  return detail::run_reduce<T, detail::range_in_frame<Range>, std::decay_t<Combine>, std::decay_t<Transform>>(
      std::forward<Range>(range), std::move(initial), std::forward<Combine>(combine),
      std::forward<Transform>(transform), options.grain);
}

template <detail::loop_range Range, class T, class Combine = std::plus<>, class Transform = std::identity>
  requires std::invocable<std::decay_t<Transform>&, std::ranges::range_reference_t<Range>>
WEFT_COROUTINE_TAKES_OVER task<T> reduce(Range&& range, T initial, Combine&& combine = {}, Transform&& transform = {}) {
  return reduce(parallel_options{}, std::forward<Range>(range), std::move(initial), std::forward<Combine>(combine),
                std::forward<Transform>(transform));
}

}  // namespace weft
