// Several async_generators as one: merge. Part of combine.hpp.
//
// The sources run side by side, each in a child of its own, and each value is handed to a function, one at a time. So the
// values are consumed where the sources are waited for, and none of these outlives that line.
//
// Rejected: an async_generator of all values. While its consumer holds one, the other sources would run on; and a consumer
// may drop a generator at any time, from a destructor, which can't wait for them.
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>
#include <weft/async_generator.hpp>
#include <weft/detail/forward.hpp>
#include <weft/detail/group.hpp>
#include <weft/detail/lock.hpp>
#include <weft/detail/pipe.hpp>
#include <weft/task.hpp>

namespace weft {

namespace detail {

/// Whose turn it is to call the function. First come, first served.
class turns {
 public:
  class awaiter : waiter {
   public:
    explicit awaiter(turns& of) noexcept : waiter{type}, of_{of} {}
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> caller) noexcept {
      return of_.wait(*this, suspending(caller));  // self may be gone after this line
    }
    void await_resume() const noexcept {}

   private:
    static on_stop leave(waiter& self) noexcept;
    static void tell(const waiter& self, const char* what, wait_subjects& into) noexcept {
      into.add(what, &static_cast<const awaiter&>(self).of_);
    }
    static constexpr wait_type type{leave, "turn to call the function of a pipe", tell};

    turns& of_;
  };
  struct next : knows_roots {
    explicit next(turns& those) noexcept : of{&those} {}
    awaiter operator co_await() const noexcept { return awaiter{*of}; }
    turns* of;
  };

  /// The turn of who awaited `next`, until this is destroyed.
  class holder {
   public:
    explicit holder(turns& of) noexcept : of_{of} {}
    holder(const holder&) = delete;
    ~holder() { of_.pass_on(); }

   private:
    turns& of_;
  };

  bool over = false;  // nobody calls it any more; whoever has the turn reads and writes this

 private:
  bool wait(waiter& one, root& self) noexcept;
  void pass_on() noexcept;

  tiny_lock lock_;  // of the rest
  waiter_line line_;
  bool taken_ = false;
};

/// What a function says by its result: whether to go on.
template <class F, class T>
inline constexpr bool says_when_to_end = std::is_convertible_v<outcome_of_call<F&, T&&>, bool>;

/// Runs one source. True: the function wants no more.
template <class T, class F>
task<bool> merge_lane(async_generator<T>& source, turns& order, F& f) {
  while (auto* value = co_await source.next()) {
    co_await turns::next{order};
    const turns::holder mine{order};
    if (order.over) break;
    order.over = true;  // if this does not return
    auto&& made = call(f, static_cast<T&&>(*value));
    if constexpr (says_when_to_end<F, T>) {
      const bool go_on = co_await std::forward<decltype(made)>(made);
      if (!go_on) co_return true;
    } else {
      co_await std::forward<decltype(made)>(made);
    }
    order.over = false;
  }
  co_return false;
}

/// Waits for all lanes; the first that fails, or says that it is over, stops the others.
class lanes_awaiter : public range_group<bool> {
 public:
  explicit lanes_awaiter(std::vector<task<bool>>&& lanes) : range_group<bool>{std::move(lanes), &kind} {}
  void await_resume();

 private:
  static void child_ended(group& self, child& one, bool failed) noexcept;
  static constexpr group::deciding kind{child_ended, nullptr};

  static constexpr std::size_t nobody = static_cast<std::size_t>(-1);
  std::size_t decider_ = nobody;  // written by that one, before it counts down
};

struct lanes : knows_roots {
  explicit lanes(std::vector<task<bool>>&& of) noexcept : tasks{std::move(of)} {}
  lanes_awaiter operator co_await() && { return lanes_awaiter{std::move(tasks)}; }
  std::vector<task<bool>> tasks;
};

template <class T, class F>
task<> merge_into(std::vector<async_generator<T>> sources, F f) {
  turns order;
  std::vector<task<bool>> all;
  all.reserve(sources.size());
  for (auto& source : sources) all.push_back(merge_lane(source, order, f));
  co_await lanes{std::move(all)};
}

template <class T>
task<std::vector<std::remove_cvref_t<T>>> merge_collected(std::vector<async_generator<T>> sources) {
  std::vector<std::remove_cvref_t<T>> values;
  auto put = [&values](T&& value) { values.push_back(static_cast<T&&>(value)); };
  co_await merge_into(std::move(sources), put);
  co_return values;
}

template <class T, class F>
task<> feed(async_generator<T> source, F f) {
  while (auto* value = co_await source.next()) {
    auto&& made = call(f, static_cast<T&&>(*value));
    if constexpr (says_when_to_end<F, T>) {
      const bool go_on = co_await std::forward<decltype(made)>(made);
      if (!go_on) co_return;
    } else {
      co_await std::forward<decltype(made)>(made);
    }
  }
}

/// Several sources, to be consumed as one.
template <class T>
class [[nodiscard("merged sources run when they are consumed: merge(a, b) | for_each(f)")]] merged {
 public:
  explicit merged(std::vector<async_generator<T>>&& sources) noexcept : sources_{std::move(sources)} {}
  std::vector<async_generator<T>> take() && noexcept { return std::move(sources_); }

  friend task<std::vector<std::remove_cvref_t<T>>> operator|(merged sources, collecting) {
    return merge_collected<T>(std::move(sources).take());
  }

 private:
  std::vector<async_generator<T>> sources_;
};

template <class F>
class [[nodiscard("for_each stands behind an async_generator: numbers() | for_each(f)")]] for_each_stage {
 public:
  template <class G>
  explicit for_each_stage(std::in_place_t, G&& f) : f_(std::forward<G>(f)) {}

  template <class T>
  WEFT_COROUTINE_TAKES_OVER friend task<> operator|(async_generator<T> source, for_each_stage&& self) {
    return feed<T, F>(std::move(source), std::move(self.f_));
  }
  template <class T>
  WEFT_COROUTINE_TAKES_OVER friend task<> operator|(merged<T> sources, for_each_stage&& self) {
    return merge_into<T, F>(std::move(sources).take(), std::move(self.f_));
  }

 private:
  F f_;
};

}  // namespace detail

/// Consumes an async_generator: calls `f(value)` for each, and awaits what that gives, if it can be awaited. An `f` that
/// gives a bool ends it by false.
///
///     co_await (lines(in) | w::for_each(print));
///
/// Lifetime  `f` is moved into the frame.
template <class F>
detail::for_each_stage<std::decay_t<F>> for_each(F&& f) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
  return detail::for_each_stage<std::decay_t<F>>{std::in_place, std::forward<F>(f)};
}

/// Runs several async_generators side by side: `merge(a(), b()) | for_each(f)` hands their values to `f` as they come, one at
/// a time; a source waits while another's value is in `f`. `| collect()` gives them in a vector.
///
/// Suspends  until all sources are at their ends, or `f` wants no more; then those that wait are stopped and joined.
/// Cancel    a stop goes to all sources, and to `f` if that waits.
/// Fails     the first failure, of a source or of `f`, stops the others and is thrown; later ones are lost errors.
/// Threads   each source runs in a child of its own, on the executor of who awaits it. Calls of `f` never overlap.
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

}  // namespace weft
