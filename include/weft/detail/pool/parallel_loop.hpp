// How for_each and reduce of parallel.hpp cut a range in pieces, and what becomes of their failures.
//
// A range is cut in halves until a piece is small enough; each cut is a when_all, so pieces are taken by other workers
// where these have nothing to do, and otherwise cost a join that nobody took from. Between two pieces a loop looks whether
// it was told to stop, and whether another piece has failed.
//
// Rejected: as many pieces as there are workers (the slowest one holds up all); sorting and the like, which others have; to
// say of when_all, too, that it runs on one thread (there its children wait side by side, and that is mostly meant).
#pragma once

#include <atomic>
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

namespace weft::detail {

/// Says once in a process that pieces of a loop follow one another here, if they do.
void look_for_parallel_executor() noexcept;

/// What the pieces of one loop share.
class loop_state {
 public:
  loop_state(std::size_t elements, std::size_t grain) noexcept : grain_{grain != 0 ? grain : elements / 512 + 1} {
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
task<> run_for_each(Range range, F f, std::size_t grain) {
  const auto count = static_cast<std::size_t>(std::ranges::size(range));
  if (count == 0) co_return;
  loop_state all{count, grain};
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
task<T> run_reduce(Range range, T initial, Combine combine, Transform transform, std::size_t grain) {
  const auto count = static_cast<std::size_t>(std::ranges::size(range));
  if (count == 0) co_return initial;
  loop_state all{count, grain};
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

}  // namespace weft::detail
