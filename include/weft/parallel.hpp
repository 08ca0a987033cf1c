// Loops over a range that a pool shares out: for_each and reduce.
//
// A range is cut in halves until a piece is small enough; each cut is a when_all, so pieces are taken by other workers
// where these have nothing to do, and otherwise cost a join that nobody took from. Between two pieces a loop looks whether
// it was told to stop, and whether another piece has failed.
//
// A loop is there for several threads only, so on an executor that can't run in parallel it says so, once a process.
//
// Rejected: as many pieces as there are workers (the slowest one holds up all); sorting and the like, which others have; to
// say of when_all, too, that it runs on one thread (there its children wait side by side, and that is mostly meant).
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <exception>
#include <iterator>
#include <type_traits>
#include <utility>
#include <weft/combine.hpp>
#include <weft/detail/base/invoke.hpp>
#include <weft/detail/base/standard.hpp>
#include <weft/task.hpp>
#include <weft/with.hpp>

namespace weft {

struct parallel_options {
  /// How many elements one piece has at least, which nobody shares; 0: a 512th of the range.
  std::size_t grain = 0;
};

namespace detail {

/// Says once in a process that pieces of a loop follow one another here, if they do.
void look_for_parallel_executor() noexcept;

/// What the pieces of one loop share.
class loop_state {
 public:
  loop_state(std::size_t elements, const parallel_options& options) noexcept
      : grain_{options.grain != 0 ? options.grain : elements / 512 + 1} {
    if (elements > grain_) look_for_parallel_executor();
  }

  std::size_t grain() const noexcept { return grain_; }

  /// Keeps the failure that is handled now, if it is the first.
  void fail() noexcept {
    if (!failed_.exchange(true, std::memory_order_relaxed)) failure_ = std::current_exception();  // the joins carry it
  }
  bool has_failed() const noexcept { return failed_.load(std::memory_order_relaxed); }  // a hint, or after the joins
  /// After the joins.
  void throw_failure() const {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }

 private:
  const std::size_t grain_;
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;  // by who failed first
};

/// Thrown by a piece that is not worth its while, since another one has failed.
struct piece_skipped {};

template <class Iterator, class F>
task<> loop_piece(Iterator first, std::size_t count, F& f, loop_state& all) {
  co_await check_stop();
  if (all.has_failed()) co_return;
  if (count > all.grain()) {
    const auto half = static_cast<std::iter_difference_t<Iterator>>(count / 2);
    auto left = loop_piece(first, count / 2, f, all);
    auto right = loop_piece(first + half, count - count / 2, f, all);
    co_await when_all(std::move(left), std::move(right));
    co_return;
  }
  try {
    for (; count != 0; --count, ++first) {
      if constexpr (weft::awaitable<std::invoke_result_t<F&, std::iter_reference_t<Iterator>>>)
        static_cast<void>(co_await detail::invoke(f, *first));
      else
        static_cast<void>(detail::invoke(f, *first));
    }
  } catch (...) {
    all.fail();
    throw;  // pieces that a stop leaves out have ended stopped, and a join gives a failure before that
  }
}

template <class Range, class F>
task<> run_for_each(Range range, F f, parallel_options options) {
  const auto count = static_cast<std::size_t>(std::ranges::size(range));
  if (count == 0) co_return;
  loop_state all{count, options};
  auto pieces = loop_piece(std::ranges::begin(range), count, f, all);
  try {
    co_await std::move(pieces);
  } catch (...) {
    all.throw_failure();
    throw;
  }
}

/// What `combine` takes for its second: a T, also of an element that only becomes one.
template <class T, class Combine, class Element>
decltype(auto) as_operand(Element&& one) {
  if constexpr (std::is_same_v<std::remove_cvref_t<Element>, T>) {
    if constexpr (std::is_invocable_r_v<T, Combine&, T, Element>)
      return static_cast<Element&&>(one);
    else
      return T(std::forward<Element>(one));
  } else {
    return T(std::forward<Element>(one));
  }
}

template <class T, class Iterator, class Combine, class Transform>
task<T> reduce_piece(Iterator first, std::size_t count, Combine& combine, Transform& transform, loop_state& all) {
  co_await check_stop();
  if (all.has_failed()) throw piece_skipped{};
  if (count > all.grain()) {
    const auto half = static_cast<std::iter_difference_t<Iterator>>(count / 2);
    auto left = reduce_piece<T>(first, count / 2, combine, transform, all);
    auto right = reduce_piece<T>(first + half, count - count / 2, combine, transform, all);
    auto both = co_await when_all(std::move(left), std::move(right));
    try {
      co_return detail::invoke(combine, std::get<0>(std::move(both)), std::get<1>(std::move(both)));
    } catch (...) {
      all.fail();
      throw;
    }
  }
  try {
    T sum = detail::invoke(transform, *first);
    while (--count != 0)
      sum = detail::invoke(combine, std::move(sum), as_operand<T, Combine>(detail::invoke(transform, *++first)));
    co_return sum;
  } catch (...) {
    all.fail();
    throw;
  }
}

template <class T, class Range, class Combine, class Transform>
task<T> run_reduce(Range range, T initial, Combine combine, Transform transform, parallel_options options) {
  const auto count = static_cast<std::size_t>(std::ranges::size(range));
  if (count == 0) co_return initial;
  loop_state all{count, options};
  auto pieces = reduce_piece<T>(std::ranges::begin(range), count, combine, transform, all);
  try {
    T sum = co_await std::move(pieces);
    co_return detail::invoke(combine, std::move(initial), std::move(sum));
  } catch (...) {
    all.throw_failure();
    throw;
  }
}

/// An lvalue is referred to, an rvalue is moved into the frame.
template <class Range>
using range_in_frame = std::conditional_t<std::is_lvalue_reference_v<Range>, Range, std::remove_cvref_t<Range>>;

template <class Range>
concept loop_range = std::ranges::random_access_range<Range> && std::ranges::sized_range<Range>;

}  // namespace detail

/// Calls `f(element)` for all elements of a range, on a pool several at once; if that gives something to await, awaits it.
///
///     co_await w::for_each(pixels, shade);
///     co_await w::for_each({.grain = 4}, std::views::iota(0, rows), blur_row);
///
/// Order     none on a pool; on an executor that runs one job at a time, that of the range (and the first such loop says
///           so, once, to stderr: it is seldom meant).
/// Cancel    looked for before each piece, and wherever `f` waits.
/// Fails     the first that throws ends it: pieces that have not begun are left out, the others are waited for. A failure
///           comes out also where a stop has ended other pieces.
/// Lifetime  an lvalue outlives the loop, an rvalue is moved into its frame; `f` is.
/// Cost      that of a when_all a piece; elements of one piece are called in a plain loop.
template <detail::loop_range Range, class F>
  requires std::invocable<std::decay_t<F>&, std::ranges::range_reference_t<Range>>
WEFT_COROUTINE_TAKES_OVER task<> for_each(parallel_options options, Range&& range, F&& f) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
  return detail::run_for_each<detail::range_in_frame<Range>, std::decay_t<F>>(std::forward<Range>(range),
                                                                              std::forward<F>(f), options);
}
template <detail::loop_range Range, class F>
  requires std::invocable<std::decay_t<F>&, std::ranges::range_reference_t<Range>>
WEFT_COROUTINE_TAKES_OVER task<> for_each(Range&& range, F&& f) {
  return for_each(parallel_options{}, std::forward<Range>(range), std::forward<F>(f));
}

/// `combine` of `initial` and of `transform(element)` for all elements, in the order of the range; on a pool, pieces of it at
/// once. So `combine(a, b)` takes and gives `T`s, and is associative; it need not be commutative. For an empty range,
/// `initial`.
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
      std::forward<Transform>(transform), options);
}

template <detail::loop_range Range, class T, class Combine = std::plus<>, class Transform = std::identity>
  requires std::invocable<std::decay_t<Transform>&, std::ranges::range_reference_t<Range>>
WEFT_COROUTINE_TAKES_OVER task<T> reduce(Range&& range, T initial, Combine&& combine = {}, Transform&& transform = {}) {
  return reduce(parallel_options{}, std::forward<Range>(range), std::move(initial), std::forward<Combine>(combine),
                std::forward<Transform>(transform));
}

}  // namespace weft
