// What merge, for_each and as_completed are made of. Part of merge.hpp.
//
// The sources run side by side, each in a child of its own, and each value is handed to a function, one at a time. So the
// values are consumed where the sources are waited for, and none of these outlives that line.
//
// What stands between a merge and its function, as transform and take, is done where the function is called, in turn: see
// `pushing`. So of all sources together take(3) takes three, and calls of the functions do not overlap.
//
// Rejected: an async_generator of all values. While its consumer holds one, the other sources would run on; and a consumer
// may drop a generator at any time, from a destructor, which can't wait for them.
//
// as_completed is a merge, too: of generators of one value each.
#pragma once

#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
#include <weft/async_generator.hpp>
#include <weft/detail/base/lock.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/core/waiter.hpp>
#include <weft/detail/join/group.hpp>
#include <weft/detail/task/pipe.hpp>
#include <weft/error.hpp>
#include <weft/task.hpp>

namespace weft::detail {

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
    static const wait_layout seen;
    static constexpr wait_type type{
        .leave = leave, .name = "turn to call the function of a pipe", .tell = tell, .layout = &seen};

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
WEFT_LAYOUT(turns::awaiter, stored_at(WEFT_BEHIND_WAITER(awaiter, of_)));

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
class WEFT_CONTAINERS lanes_awaiter : public range_group<bool> {
 public:
  explicit lanes_awaiter(std::vector<task<bool>>&& lanes) : range_group<bool>{std::move(lanes), kind, {}} {}
  void await_resume() {
    if (!any_failed()) return;
    for (std::size_t i = 0; i != slots_.size(); ++i)
      if (i != decider_ && slots_[i].is_exception()) lose_error("merge", slots_[i].exception());
    throw_failure(slots_[decider_]);
  }

 private:
  static void child_ended(group& self, child& one, bool failed) noexcept {
    auto& mine = static_cast<lanes_awaiter&>(self);
    if ((failed || mine.slots_[one.index].value()) && mine.decide()) mine.decider_ = one.index;
  }
  static constexpr group::deciding kind{
      prepare, child_ended, nullptr,
      "another source of the merge has failed, or the function of its values wants no more"};

  static constexpr std::size_t nobody = static_cast<std::size_t>(-1);
  std::size_t decider_ = nobody;  // written by that one, before it counts down
};

struct WEFT_CONTAINERS lanes : knows_roots {
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

// ---- what stands between a merge and its function -------------------------------------------------------------------

/// What a stage makes of values of type T, as an async_generator<T> has them.
template <class Stage, class T>
struct passes_on {
  using type = T;
};
template <class Fn, class T>
struct passes_on<transforming<Fn>, T> {
  using type = call_result<Fn, T&&>;
};
template <class T, class... Stages>
struct behind {
  using type = T;
};
template <class T, class Stage, class... Rest>
struct behind<T, Stage, Rest...> : behind<typename passes_on<Stage, T>::type, Rest...> {};

template <class Stage>
inline constexpr bool may_stand_between = std::is_same_v<Stage, taking>;
template <class Fn>
inline constexpr bool may_stand_between<transforming<Fn>> = true;
template <class Fn>
inline constexpr bool may_stand_between<filtering<Fn>> = true;

/// Hands a value through the stages and to the function behind them. False: no more values are wanted.
template <class F, class... Stages>
class pushing {
 public:
  pushing(std::tuple<Stages...>&& stages, F&& f) : stages_{std::move(stages)}, f_(std::move(f)) {}

  /// Whether a value is wanted at all.
  bool wants_any() const noexcept {
    return std::apply([](const auto&... each) { return (... && !is_empty(each)); }, stages_);
  }

  template <class T>
  WEFT_COROUTINE_WRAPPER task<bool> operator()(T&& value) {
    return push<0, T>(static_cast<T&&>(value));
  }

 private:
  template <std::size_t I, class T>
  task<bool> push(T&& value) {
    if constexpr (I == sizeof...(Stages)) {
      auto&& made = call(f_, static_cast<T&&>(value));
      if constexpr (says_when_to_end<F, T>) {
        const bool go_on = co_await std::forward<decltype(made)>(made);
        co_return go_on;
      } else {
        co_await std::forward<decltype(made)>(made);
        co_return true;
      }
    } else {
      auto& stage = std::get<I>(stages_);
      using stage_type = std::tuple_element_t<I, std::tuple<Stages...>>;
      if constexpr (requires { stage.keep; }) {
        auto&& kept = call(stage.keep, std::as_const(value));
        if (!co_await std::forward<decltype(kept)>(kept)) co_return true;
        co_return co_await push<I + 1, T>(static_cast<T&&>(value));
      } else if constexpr (requires { stage.count; }) {
        --stage.count;
        const bool go_on = co_await push<I + 1, T>(static_cast<T&&>(value));
        co_return go_on&& stage.count != 0;
      } else {
        using next = typename passes_on<stage_type, T>::type;
        auto&& made = call(stage.fn, static_cast<T&&>(value));
        auto&& result = co_await std::forward<decltype(made)>(made);
        co_return co_await push<I + 1, next>(static_cast<next&&>(result));
      }
    }
  }

  static bool is_empty(const taking& stage) noexcept { return stage.count == 0; }
  static bool is_empty(const async_stage&) noexcept { return false; }

  std::tuple<Stages...> stages_;
  F f_;
};

template <class T, class F, class... Stages>
task<> merge_through(std::vector<async_generator<T>> sources, std::tuple<Stages...> stages, F f) {
  pushing<F, Stages...> all{std::move(stages), std::move(f)};
  if (!all.wants_any()) co_return;
  auto push = [&all](T&& value) { return all.template operator()<T>(static_cast<T&&>(value)); };
  co_await merge_into(std::move(sources), push);
}

template <class T, class... Stages>
task<std::vector<std::remove_cvref_t<typename behind<T, Stages...>::type>>> merge_collected(
    std::vector<async_generator<T>> sources, std::tuple<Stages...> stages) {
  using value_type = typename behind<T, Stages...>::type;
  std::vector<std::remove_cvref_t<value_type>> values;
  auto put = [&values](value_type&& value) { values.push_back(static_cast<value_type&&>(value)); };
  co_await merge_through(std::move(sources), std::move(stages), put);
  co_return values;
}

template <class T, class Result, class Fn, class... Stages>
task<Result> merge_accumulated(std::vector<async_generator<T>> sources, std::tuple<Stages...> stages,
                               accumulating<Result, Fn> self) {
  using value_type = typename behind<T, Stages...>::type;
  auto add = [&self](value_type&& value) -> task<> {
    auto&& next = call(self.fn, std::move(self.result), static_cast<value_type&&>(value));
    self.result = co_await std::forward<decltype(next)>(next);
  };
  co_await merge_through(std::move(sources), std::move(stages), add);
  co_return std::move(self.result);
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

/// Several sources, to be consumed as one, and what their values go through.
template <class T, class... Stages>
class [[nodiscard("merged sources run when they are consumed: merge(a, b) | for_each(f)")]] WEFT_CONTAINERS merged {
 public:
  explicit merged(std::vector<async_generator<T>>&& sources, Stages&&... stages)
      : sources_{std::move(sources)}, stages_{std::move(stages)...} {}

  template <class Stage>
    requires may_stand_between<Stage>
  friend merged<T, Stages..., Stage> operator|(merged sources, Stage stage) {
    return std::apply(
        [&](Stages&... before) {
          return merged<T, Stages..., Stage>{std::move(sources.sources_), std::move(before)..., std::move(stage)};
        },
        sources.stages_);
  }

  friend auto operator|(merged sources, collecting) {
    return merge_collected(std::move(sources.sources_), std::move(sources.stages_));
  }
  template <class Result, class Fn>
  WEFT_COROUTINE_TAKES_OVER friend task<Result> operator|(merged sources, accumulating<Result, Fn> stage) {
    return merge_accumulated(std::move(sources.sources_), std::move(sources.stages_), std::move(stage));
  }
  /// Behind all of them.
  template <class F>
  WEFT_COROUTINE_TAKES_OVER task<> into(F&& f) && {
    if constexpr (sizeof...(Stages) == 0)
      return merge_into<T, F>(std::move(sources_), std::forward<F>(f));
    else
      return merge_through<T, F>(std::move(sources_), std::move(stages_), std::forward<F>(f));
  }

 private:
  std::vector<async_generator<T>> sources_;
  std::tuple<Stages...> stages_;
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
  template <class T, class... Stages>
  WEFT_COROUTINE_TAKES_OVER friend task<> operator|(merged<T, Stages...> sources, for_each_stage&& self) {
    return std::move(sources).into(std::move(self.f_));
  }

 private:
  F f_;
};

}  // namespace weft::detail
