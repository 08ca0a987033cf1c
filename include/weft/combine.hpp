// Combinators. when_all and windowed are here; when_any, when_some and when, in race.hpp; timeout and retry, in timed.hpp;
// merge, for_each and as_completed, in merge.hpp; detach_on_stop, in detach_on_stop.hpp; resume_on, start_on, continue_on and
// yield, in hop.hpp; then, on_value, on_error and on_stop, in pipe.hpp. This header includes all of them.
//
//     auto [user, orders] = co_await w::when_all(load_user(id), load_orders(id));
//     std::vector<page> pages = co_await w::when_all(std::move(fetches));
//
// All of them wait until everything that they have started has ended, also what has lost a race: nothing outlives its block.
// How that is done is described in join/group.hpp.
#pragma once

#include <cstddef>
#include <deque>
#include <tuple>
#include <utility>
#include <vector>
#include <weft/detach_on_stop.hpp>
#include <weft/detail/base/standard.hpp>
#include <weft/detail/join/awaitables.hpp>
#include <weft/detail/join/group.hpp>
#include <weft/detail/join/join.hpp>
#include <weft/detail/join/made_join.hpp>
#include <weft/detail/join/range_join.hpp>
#include <weft/detail/join/sinks.hpp>
#include <weft/detail/join/tuple_join.hpp>
#include <weft/hop.hpp>
#include <weft/merge.hpp>
#include <weft/pipe.hpp>
#include <weft/race.hpp>
#include <weft/task.hpp>
#include <weft/timed.hpp>

namespace weft {

// ---- when_all ---------------------------------------------------------------------------------------------------------

/// Awaits all of them concurrently: `auto [a, b] = co_await when_all(f(), g());`. Gives a tuple of their values; void becomes
/// std::monostate, a reference a std::reference_wrapper.
///
/// Suspends  until all have ended, in whatever way. On one thread they run in turn, each up to its first wait. On a pool other
///           workers may steal those that have not begun, and run them in parallel.
/// Cancel    stops all of them, and joins them.
/// Fails     throws the failure of the first argument that failed; ends stopped if none failed and one was stopped.
/// Lifetime  the arguments of a child live until it has ended and its parent goes on, or suspends to wait for others. So a
///           sibling may wait for something that they hold, but must not block its thread for it.
/// Cost      no allocation where the children's frames are elided, and no atomic read-modify-write if no child waits or is
///           stolen. Its frame has 200 bytes for each child, and room for the results.
template <detail::awaitable_argument... Awaitables>
auto when_all(WEFT_ELIDABLE_ARGUMENT Awaitables&&... awaitables) {
  return detail::tuple_join<await_result<Awaitables>...>{detail::as_task(std::forward<Awaitables>(awaitables))...};
}
/// Without arguments: gives an empty tuple.
inline auto when_all() { return detail::tuple_join<>{}; }

namespace detail {

/// A vector of tasks goes when its tasks have been taken out.
template <class Range>
decltype(auto) range_to_take(std::remove_reference_t<Range>& range) {
  if constexpr (gives_its_elements<Range> && std::is_same_v<Range, std::vector<task<range_result<Range>>>>)
    return Range{std::move(range)};
  else
    return static_cast<Range&&>(range);
}

}  // namespace detail

/// Awaits all elements of a range concurrently; gives a vector of their values, in order. A vector of tasks is moved in; the
/// elements of a view are awaited as the view gives them. Otherwise as above.
///
/// Fails     the call throws std::bad_alloc where there is no memory; none of them runs then. If there is no memory for the
///           vector of values, it throws when all have ended and none has failed.
/// Memory    comes from where it is called, as that of the tasks.
/// Cost      one block of frame memory with 200 bytes for each element, and the vector. If the range does not know its size,
///           the block doubles as it grows.
template <detail::awaitable_range Range>
WEFT_CONTAINERS auto when_all(Range&& range) {
  using value = detail::range_result<Range>;
  return detail::join_into<detail::range_children<value>, detail::into_vector<value>>{
      {}, std::in_place, detail::range_to_take<Range>(range)};
}

/// The same, but makes no vector: when all have ended and none has failed, the values go to `into`, in order. That is an output
/// iterator (it gives the iterator behind the last value), a function that is called with each value, or `std::ignore`, which
/// drops them.
///
///     std::array<int, 8> sizes;
///     co_await w::when_all(pages | std::views::transform(size_of), sizes.begin());
///
/// Fails     as above, or throws what `into` throws.
/// Lifetime  what `into` refers to outlives the await.
template <detail::awaitable_range Range, class Into>
  requires detail::takes_values<std::decay_t<Into>, detail::range_result<Range>>
auto when_all(Range&& range, Into&& into) {
  using iterator = std::decay_t<Into>;
  static_assert(!WEFT_DESTROYS_TEMPORARIES_TWICE || std::is_lvalue_reference_v<Into> ||
                    std::is_trivially_destructible_v<iterator>,
                "this compiler may destroy an iterator, or a function, that is written inside a co_await expression "
                "twice: name it, pass the lvalue");
  using value = detail::range_result<Range>;
  return detail::join_into<detail::range_children<value>, detail::into<value, iterator>>{
      {iterator(std::forward<Into>(into))}, std::in_place, detail::range_to_take<Range>(range)};
}

/// Awaits `make(0)` to `make(n - 1)` concurrently; gives a vector of their values, in order. Each is made when it begins, by
/// the thread that runs it. If none waits and none is stolen, only one of them exists at a time: a recursion needs memory for
/// its depth only, and each child is still in the cache when it runs.
///
///     auto sizes = co_await w::when_all(pages.size(), [&](std::size_t i) { return size_of(pages[i]); });
///
/// Threads   on a pool, several threads may call `make`, which is moved in, at once, and while earlier children run.
/// Fails     as above. An exception of `make`, or a lack of memory for a child, is a failure of that child; the others are made
///           nevertheless. The call throws std::bad_alloc where there is no memory to begin with.
/// Lifetime  a child is destroyed with its arguments when it has ended. What `make` refers to outlives the await.
/// Cost      as above, but the block has 240 bytes in all, and room for the results. A child that is stolen, or that begins
///           after one that waits, allocates 184 bytes.
template <class Make>
  requires awaitable<std::invoke_result_t<const Make&, std::size_t>>
WEFT_CONTAINERS auto when_all(std::size_t n, Make make) {
  return detail::join_into<detail::made_children<Make>, detail::into_vector<detail::made_result<Make>>>{
      {}, n, std::move(make)};
}

/// The same, with `into` as for a range: so a sum needs no memory but that of its children.
///
///     std::size_t sum = 0;
///     const auto size = [&](std::size_t i) { return size_of(pages[i]); };
///     co_await w::when_all(pages.size(), size, [&](std::size_t one) { sum += one; });
template <class Make, class Into>
  requires awaitable<std::invoke_result_t<const Make&, std::size_t>> &&
           detail::takes_values<Into, detail::made_result<Make>>
auto when_all(std::size_t n, Make make, Into into) {
  return detail::join_into<detail::made_children<Make>, detail::into<detail::made_result<Make>, Into>>{
      {std::move(into)}, n, std::move(make)};
}
template <int = 0>
void when_all(detail::refused<detail::one_or_range_is_awaited>);
template <int = 0>
void when_all(detail::refused<detail::first_is_awaited>, detail::refused_other,
              detail::refused_other = detail::not_given::it_is, detail::refused_other = detail::not_given::it_is,
              detail::refused_other = detail::not_given::it_is, detail::refused_other = detail::not_given::it_is);
template <int = 0>
void when_all(std::size_t, detail::refused<detail::awaited_are_made>, detail::whatever = detail::not_given::it_is);
template <int = 0>
detail::void_is_no_awaitable when_all(...);

// ---- windowed -------------------------------------------------------------------------------------------------------

namespace detail {

/// A range that several lanes take from, one element at a time, each with a slot for its result.
template <class Range>
class WEFT_CONTAINERS window {
  using value_type = range_result<Range>;

 public:
  explicit window(std::remove_reference_t<Range>& range)
      : next_{std::ranges::begin(range)}, end_{std::ranges::end(range)} {}

  /// Takes the next element into `one`. Null: there is none, one has failed, or who asks was told to stop.
  result<value_type>* take(task<value_type>& one) {
    const std::lock_guard guard{lock_};
    if (over_ || next_ == end_) return nullptr;
    over_ = true;  // if the range throws
    if ((stopped_ = current_root()->stop_requested())) return nullptr;
    one = as_task(static_cast<range_awaitable<Range>&&>(*next_));
    ++next_;
    over_ = false;
    return &slots_.emplace_back();
  }
  void end() noexcept {
    const std::lock_guard guard{lock_};
    over_ = true;
  }

  // When all lanes have ended.
  std::deque<result<value_type>>& slots() noexcept { return slots_; }
  bool was_stopped() const noexcept { return stopped_; }

 private:
  std::mutex lock_;  // held over what the range does to give an element
  std::ranges::iterator_t<Range> next_;
  std::ranges::sentinel_t<Range> end_;
  std::deque<result<value_type>> slots_;  // stay where they are
  bool over_ = false;
  bool stopped_ = false;  // with elements left
};

inline void expect_window(std::size_t n) noexcept {
  WEFT_EXPECTS(n > 0, "windowed(0, range) would never start anything");
}

template <class Range>
task<> window_lane(window<Range>& elements) {
  task<range_result<Range>> one;
  while (auto* slot = elements.take(one)) {
    *slot = co_await as_result(std::move(one));
    if (!slot->has_value()) elements.end();
  }
}

template <class Range>
task<std::vector<element<range_result<Range>>>> windowed_in_task(std::size_t width, Range range) {
  using value_type = range_result<Range>;
  window<Range> elements{range};
  if constexpr (std::ranges::sized_range<Range>)
    width = width < std::ranges::size(range) ? width : std::ranges::size(range);
  std::vector<task<>> lanes;
  lanes.reserve(width);
  for (std::size_t i = 0; i != width; ++i) lanes.push_back(window_lane(elements));
  co_await when_all(std::move(lanes), std::ignore);

  bool stopped = elements.was_stopped();
  for (const auto& slot : elements.slots()) {
    if (slot.exception()) rethrow(slot.exception());
    stopped = stopped || slot.is_stopped();
  }
  if (stopped) co_await ends_stopped{};
  std::vector<element<value_type>> values;
  values.reserve(elements.slots().size());
  for (auto& slot : elements.slots()) {
    if constexpr (std::is_void_v<value_type>)
      values.emplace_back();
    else
      values.emplace_back(*std::move(slot));
  }
  co_return values;
}

}  // namespace detail

/// Awaits all elements of a range, at most `n` at a time; gives a vector of their values, in order. Elements are taken from the
/// range one by one, when they begin: if a view makes the tasks, at most `n` of them exist.
///
///     auto pages = co_await w::windowed(8, urls | std::views::transform(fetch));
///
/// Suspends  until all that were started have ended.
/// Cancel    stops those that run, joins them, and starts no others.
/// Fails     starts no others after an element has failed or was stopped. Throws the failure of the first element, in the order
///           of the range, that failed; or what the range throws. Misuse: an `n` of zero ends the program with a sentence.
/// Lifetime  an lvalue range, and what a view refers to, outlive the await; an rvalue container is moved in.
/// Cost      a frame for each of the `n`; for each element some 30 ns more than an await, and at times an allocation.
template <detail::awaitable_range Range>
WEFT_COROUTINE_TAKES_OVER WEFT_CONTAINERS auto windowed(std::size_t n, Range&& range) {
  detail::expect_window(n);
  return detail::windowed_in_task<Range>(n, std::forward<Range>(range));
}
template <int = 0>
void windowed(detail::given<std::size_t>, detail::refused<detail::elements_are_awaited>);

namespace detail {

struct windowed_stage {
  std::size_t n;
  template <awaitable_range Range>
  WEFT_COROUTINE_TAKES_OVER WEFT_CONTAINERS friend auto operator|(Range&& range, windowed_stage self) {
    return weft::windowed(self.n, std::forward<Range>(range));
  }
  template <int = 0>
  friend void operator|(refused<elements_are_awaited>, given<windowed_stage>) {}  // a friend's default needs a body
};

}  // namespace detail

/// `range | windowed(n)` is the same.
[[nodiscard("an adaptor stands behind a range: tasks | windowed(n)")]] inline detail::windowed_stage windowed(
    std::size_t n) noexcept {
  detail::expect_window(n);
  return {n};
}

}  // namespace weft
