// Waiting for whichever of several is first. Part of select.hpp.
//
// First it looks, without any lock, which cases seem to be ready, and tries one of those, whichever, under its own lock
// alone: what is ready is done there, and what is not needs nothing of the others. Where there is `otherwise`, and nothing
// was ready at that moment, that is all.
//
// If nothing was, it locks all its channels in the order of their addresses, looks once more, from any place on, and gets in
// line everywhere at once; whoever claims its one wait has chosen. So nobody is asked twice, and a select that meets a
// select is no different from one that meets a send.
//
// No case has an edge over another one: what is ready is tried in any order; those in one line get in there in any order, as
// the first of them is served; so do those that a clock or a stop_source serves in turn; and what ends all waits in several
// lines at once, a close, chooses any of them.
//
// What it waits with is in channel/select_wait.hpp, and what its cases do in channel/select_cases.hpp and select_on.hpp. What can
// only be run does so beside it: channel/select_beside.hpp. A select of a vector of cases is in channel/select_many.hpp.
//
// Source: the order of select is that of Go's runtime; there, too, all channels are locked.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <weft/detail/channel/select_cases.hpp>
#include <weft/detail/channel/select_on.hpp>
#include <weft/detail/channel/select_wait.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/sync/gate.hpp>
#include <weft/select_cases.hpp>

namespace weft {
template <class... Results>
struct selected;
}  // namespace weft

namespace weft::detail {

template <class Case>
struct select_case_of {
  using type = Case;
};
template <>
struct select_case_of<std::remove_const_t<decltype(otherwise)>> {
  using type = otherwise_case;
};

template <class Case>
typename select_case_of<Case>::type as_case(Case& one) {
  if constexpr (std::is_same_v<typename select_case_of<Case>::type, Case>)
    return std::move(one);
  else
    return {};
}

template <class... Cases>
class select_awaiter : public gate_awaiter<select_awaiter<Cases...>> {
  using indices = std::index_sequence_for<Cases...>;
  static constexpr std::size_t count = sizeof...(Cases);

 public:
  using result_type = selected<typename Cases::result_type...>;
  explicit select_awaiter(std::tuple<Cases...>&& cases) noexcept : states_(std::move(cases)) {}
  select_awaiter(const select_awaiter&) = delete;

  bool suspend(root& self) noexcept {
    if (self.sleeper::stop_requested()) [[unlikely]]
      return (end_stopped(self), true);
    if constexpr (never_waits)
      try_all_or_none();
    else if (!try_ready<try_alone>())
      return wait_for_all(self);
    if (!chosen_ended_stopped(indices{})) return false;
    return (end_stopped(self), true);
  }
  // See detail::may_need_no_wait.
  bool seems_ready() const noexcept { return never_waits || those_that_may_be_ready(indices{}) != 0; }
  bool done_at_once(const root& self) noexcept {
    if (self.sleeper::stop_requested()) return false;
    if constexpr (never_waits)
      try_all_or_none();
    else if (!try_ready<try_alone>())
      return false;
    return !chosen_ended_stopped(indices{});  // it stays so
  }
  result_type await_resume() {
    end_wait();
    return take<0>();
  }
  // False: it is awaited once more.
  bool is_settled() noexcept {
    end_wait();
    return !chosen_in_vain(indices{});
  }
  // Before it is awaited. Whether others are to run first.
  bool begin() noexcept {
    if constexpr (never_waits) each([](auto& one, std::size_t) { one.prepare_poll(); });
    return turn_is_over(indices{});
  }

  // For its wait.
  template <class Function>
  void each(Function f) noexcept {
    each(f, indices{});
  }
  template <class Try>
  bool try_ready() noexcept {
    for (std::uint64_t ready = those_that_may_be_ready(indices{}); ready != 0; ready &= ~(std::uint64_t{1} << chosen)) {
      std::uint64_t from = ready;
      if ((ready & (ready - 1)) != 0)
        for (std::size_t i = select_wait::any_of(static_cast<std::size_t>(std::popcount(ready))); i != 0; --i)
          from &= from - 1;
      chosen = static_cast<std::size_t>(std::countr_zero(from));
      if (try_at<Try>(indices{})) return true;
    }
    return false;
  }
  void finish_chosen() noexcept {
    each([this](auto& one, std::size_t i) {
      if (i == chosen) one.finish();
    });
  }
  static constexpr bool begins_several = (0 + ... + int{Cases::state::begins}) > 1;
  static constexpr bool may_need_no_lock = (Cases::state::may_need_no_lock && ...);
  std::size_t chosen;

 private:
  static constexpr bool never_waits = (std::is_same_v<Cases, otherwise_case> || ...);
  static_assert((0 + ... + int{std::is_same_v<Cases, otherwise_case>}) <= 1, "a select has one otherwise");
  static constexpr std::size_t otherwise_at = [] {
    constexpr bool is_otherwise[] = {std::is_same_v<Cases, otherwise_case>...};
    return static_cast<std::size_t>(std::find(is_otherwise, is_otherwise + count, true) - is_otherwise);
  }();
  static_assert(count <= 64, "a select of more than 64 cases is given them as a vector");

  template <std::size_t... I>
  std::uint64_t those_that_may_be_ready(std::index_sequence<I...>) const noexcept {
    return (... | (std::uint64_t{std::get<I>(states_).may_be_ready()} << I));
  }
  void try_all_or_none() noexcept {
    if (!none_is_ready() && !try_ready<try_alone>() && !select_wait::try_all(locks_.data(), *this))
      chosen = otherwise_at;
  }
  // None was at the moment at which this looked at the first one: each was not when it was looked at, and none has
  // ceased to be ready meanwhile. Then `otherwise` is chosen.
  bool none_is_ready() noexcept {
    const std::uint32_t before = changes(indices{});
    chosen = otherwise_at;
    return those_that_may_be_ready(indices{}) == 0 && changes(indices{}) == before;
  }
  template <std::size_t... I>
  std::uint32_t changes(std::index_sequence<I...>) const noexcept {
    return (... + std::get<I>(states_).changes());
  }
  template <class Try, std::size_t... I>
  bool try_at(std::index_sequence<I...>) noexcept {
    return (... || (I == chosen && try_state<Try>(std::get<I>(states_))));
  }
  template <class Try, class State>
  static bool try_state(State& one) noexcept {
    if constexpr (std::is_same_v<State, otherwise_case>)
      return false;
    else
      return Try::now(one);
  }
  template <class Function, std::size_t... I>
  void each(Function& f, std::index_sequence<I...>) noexcept {
    (each_of(f, std::get<I>(states_), I), ...);
  }
  template <class Function, class State>
  static void each_of(Function& f, State& one, std::size_t i) noexcept {
    if constexpr (!std::is_same_v<State, otherwise_case>) f(one, i);
  }
  void end_wait() noexcept {
    if constexpr (!never_waits)
      if (waiting_.wait) {
        chosen = waiting_.wait->chosen;
        waiting_.wait->end(*this);
        waiting_.wait.reset();
      }
  }
  template <std::size_t... I>
  bool chosen_in_vain(std::index_sequence<I...>) noexcept {
    return ((I == chosen && std::get<I>(states_).must_wait_again()) || ...);
  }
  template <std::size_t... I>
  bool turn_is_over(std::index_sequence<I...>) const noexcept {
    return (std::get<I>(states_).turn_is_over() || ...);
  }
  template <std::size_t... I>
  bool chosen_ended_stopped(std::index_sequence<I...>) const noexcept {
    return ((I == chosen && std::get<I>(states_).ended_stopped()) || ...);
  }
  [[gnu::noinline]] bool wait_for_all(root& self) noexcept {
    if (waiting_.wait.emplace(waiting_.cases.data(), locks_.data(), count).suspend(self, *this)) return true;
    if (!chosen_ended_stopped(indices{})) return false;
    waiting_.wait->end(*this);
    return (end_stopped(self), true);
  }
  template <std::size_t I>
  result_type take() {
    if constexpr (I + 1 != count)
      if (chosen != I) return take<I + 1>();
    return result_type{I, decltype(result_type::value){std::in_place_index<I>, std::get<I>(states_).take()}};
  }

  struct waits {
    std::array<select_place, count> cases;
    std::optional<select_wait> wait;
  };
  struct waits_not {};

  std::tuple<typename Cases::state...> states_;
  std::array<case_lock, count> locks_;
  [[no_unique_address]] std::conditional_t<never_waits, waits_not, waits> waiting_;
};

template <class... Cases>
class WEFT_TO_BE_AWAITED("nothing happens until it is awaited") selecting : public knows_roots {
 public:
  using is_select = void;
  explicit selecting(Cases&&... cases) noexcept : cases_(std::move(cases)...) {}
  select_awaiter<Cases...> operator co_await() && noexcept { return select_awaiter<Cases...>{std::move(cases_)}; }

 private:
  std::tuple<Cases...> cases_;
};

/// One wait of a select that may have to wait several times.
template <class Awaiter>
class waits_once : public knows_roots {
 public:
  explicit waits_once(Awaiter& all) noexcept : all_{all} {}
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    return all_.await_suspend(caller);
  }
  bool await_resume() noexcept { return all_.is_settled(); }

 private:
  Awaiter& all_;
};

/// Where a case may be chosen in vain.
template <class Awaiter, class Cases>
task<typename Awaiter::result_type> select_until_settled(Cases cases) {
  Awaiter all{std::move(cases)};
  if (all.begin()) co_await yield();
  while (!co_await waits_once{all}) {
  }
  co_return all.await_resume();
}
template <class Awaiter, class Cases>
class WEFT_TO_BE_AWAITED("nothing happens until it is awaited") WEFT_CONTAINERS selecting_until_settled
    : public task_inside<selecting_until_settled<Awaiter, Cases>, typename Awaiter::result_type> {
 public:
  using is_select = void;
  using value_type = typename Awaiter::result_type;
  explicit selecting_until_settled(Cases&& cases) noexcept : cases_(std::move(cases)) {}
  WEFT_COROUTINE_WRAPPER task<value_type> as_task() && {
    return select_until_settled<Awaiter, Cases>(std::move(cases_));
  }

 private:
  Cases cases_;
};

/// Of cases of which none runs beside it.
template <class... Cases>
auto select_each(Cases... cases) {
  if constexpr ((select_case_of<Cases>::type::state::may_be_in_vain || ...))
    return selecting_until_settled<select_awaiter<typename select_case_of<Cases>::type...>,
                                   std::tuple<typename select_case_of<Cases>::type...>>{
        std::tuple<typename select_case_of<Cases>::type...>{as_case(cases)...}};
  else
    return selecting<typename select_case_of<Cases>::type...>{as_case(cases)...};
}

}  // namespace weft::detail
