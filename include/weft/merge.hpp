// merge combines several async_generators; as_completed gives results in the order in which they come. The sources run
// concurrently, and a function is called with their values, one at a time. How that is done, and why the result is no
// generator, is described in join/merge.hpp.
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>
#include <weft/async_generator.hpp>
#include <weft/detail/base/forward.hpp>
#include <weft/detail/join/awaitables.hpp>
#include <weft/detail/join/group.hpp>
#include <weft/detail/join/merge.hpp>
#include <weft/error.hpp>
#include <weft/task.hpp>

namespace weft {

/// Consumes an async_generator: calls `f(value)` for each value, and awaits the result if that can be awaited. If `f` gives
/// false, the loop ends.
///
///     co_await (lines(in) | w::for_each(print));
///
/// Lifetime  `f` is moved into the frame.
template <class F>
detail::for_each_stage<std::decay_t<F>> for_each(F&& f) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
  return detail::for_each_stage<std::decay_t<F>>{std::in_place, std::forward<F>(f)};
}

/// `for_each(numbers(), f)` is the same.
template <class T, class F>
WEFT_COROUTINE_TAKES_OVER task<> for_each(async_generator<T> source, F&& f) {
  return std::move(source) | weft::for_each(std::forward<F>(f));
}

/// Runs several async_generators concurrently: `merge(a(), b()) | for_each(f)` calls `f` with their values as they come, one at
/// a time; a source waits while `f` runs with a value of another one. `| collect()` gives a vector of all values, and `|
/// accumulate(init, fn)` their reduction. transform, filter and take may stand between; their functions are called one at a
/// time, too.
///
/// Suspends  until all sources have ended, or `f` has given false; sources that wait are then stopped and joined.
/// Cancel    stops all sources, and `f` if that waits.
/// Fails     the first failure of a source or of `f` stops the others and is thrown; later ones are lost errors.
/// Threads   each source runs as a child on the executor of the awaiting task. Calls of `f` never overlap.
template <class T, std::same_as<async_generator<T>>... Rest>
detail::merged<T> merge(async_generator<T> first, Rest... rest) {
  std::vector<async_generator<T>> sources;
  sources.reserve(1 + sizeof...(rest));
  sources.push_back(std::move(first));
  (sources.push_back(std::move(rest)), ...);
  return detail::merged<T>{std::move(sources)};
}
template <class T>
detail::merged<T> merge(std::vector<async_generator<T>> sources) {
  return detail::merged<T>{std::move(sources)};
}

/// The same adaptors as functions, as those of an async_generator.
template <class T, class... Stages, class Fn>
auto transform(detail::merged<T, Stages...> sources, Fn&& fn) {
  return std::move(sources) | transform(std::forward<Fn>(fn));
}
template <class T, class... Stages, class Fn>
auto filter(detail::merged<T, Stages...> sources, Fn&& keep) {
  return std::move(sources) | filter(std::forward<Fn>(keep));
}
template <class T, class... Stages>
auto take(detail::merged<T, Stages...> sources, std::size_t count) {
  return std::move(sources) | take(count);
}
template <class T, class... Stages, class Result, class Fn>
WEFT_COROUTINE_TAKES_OVER task<Result> accumulate(detail::merged<T, Stages...> sources, Result init, Fn&& fn) {
  return std::move(sources) | accumulate(std::move(init), std::forward<Fn>(fn));
}
template <class T, class... Stages, class Result>
WEFT_COROUTINE_TAKES_OVER task<Result> accumulate(detail::merged<T, Stages...> sources, Result init) {
  using value_type = typename detail::behind<T, Stages...>::type;
  return accumulate(std::move(sources), std::move(init),
                    [](Result&& sum, value_type&& value) { return std::move(sum) + static_cast<value_type&&>(value); });
}
template <class T, class... Stages>
auto collect(detail::merged<T, Stages...> sources) {
  return std::move(sources) | collect();
}
template <class T, class... Stages, class F>
WEFT_COROUTINE_TAKES_OVER task<> for_each(detail::merged<T, Stages...> sources, F&& f) {
  return std::move(sources) | weft::for_each(std::forward<F>(f));
}

// ---- as_completed -----------------------------------------------------------------------------------------------------

/// What as_completed gives for each element: which one it is, and how it ended.
template <class T>
struct completed {
  std::size_t index;  ///< of the element in the range
  result<T> outcome;
};

namespace detail {

template <class T>
async_generator<completed<T>> completion_of(std::size_t index, task<T> one) {
  auto outcome = co_await as_result(std::move(one));
  completed<T> ended{index, std::move(outcome)};
  co_yield std::move(ended);
}

}  // namespace detail

/// Runs the elements of a range concurrently: `as_completed(range) | for_each(f)` calls `f` with a completed<T> for each, in
/// the order in which they end, one at a time. The other adaptors of a merge may follow, too.
///
///     auto show = [&](w::completed<std::string> page) { if (page.outcome) print(urls[page.index], *page.outcome); };
///     co_await (w::as_completed(urls | std::views::transform(fetch)) | w::for_each(show));
///
/// Suspends  until all have ended, or `f` has given false; those that still run are then stopped and joined.
/// Cancel    stops all of them, and `f` if that waits.
/// Fails     throws what `f` throws; the others are stopped and joined before. The failure of an element is passed to `f` as
///           its outcome.
/// Threads   as merge: they run as children, on the executor of the awaiting task. Calls of `f` never overlap.
/// Cost      two frames for each element.
template <detail::awaitable_range Range>
auto as_completed(Range&& range) {
  using value_type = detail::range_result<Range>;
  auto tasks = detail::tasks_of(std::forward<Range>(range));
  std::vector<async_generator<completed<value_type>>> all;
  all.reserve(tasks.size());
  for (auto& one : tasks) all.push_back(detail::completion_of<value_type>(all.size(), std::move(one)));
  return detail::merged<completed<value_type>>{std::move(all)};
}
template <int = 0>
void as_completed(detail::refused<detail::elements_are_awaited>);

}  // namespace weft
