// What when_any, when_some and when are made of. Part of race.hpp.
//
// Who ends first, with a value or by throwing, decides; a child that was stopped has not taken part. The others are
// stopped and joined, so the outcome is there when they all have ended. A child that has a value all the same has come
// too late, and its value is dropped; one that fails then has failed for nobody, and its failure is told to the
// process's handler of lost errors (error.hpp): an error is never swallowed.
//
// That a failure decides, too, is what makes `when_any(serve(), interrupted())` end where serve() fails. Whoever wants the
// first success of several, and has a use for failures, awaits as_result of each.
//
// Rejected: (a) the first success: a failure then waits for ever beside what never ends. (b) A failure of a loser thrown
// in the place of the winner's value, or nested into it: the value was there first, and may be what must not be lost.
#pragma once

#include <atomic>
#include <cstddef>
#include <source_location>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>
#include <weft/detail/base/standard.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/join/group.hpp>
#include <weft/error.hpp>
#include <weft/task.hpp>

namespace weft {
template <class Value>
struct any_result;
}  // namespace weft

namespace weft::detail {

[[noreturn]] void throw_too_few(const char* operation);

/// Whose outcome it is.
class winner {
 public:
  std::size_t index() const noexcept { return index_; }  // once it is decided, and all have ended
  bool is_set() const noexcept { return index_ != nobody; }
  void set(std::size_t index) noexcept { index_ = index; }

  /// Tells of the failures that nobody gets.
  template <class T>
  void lose(std::size_t index, const char* operation, outcome<T>& slot) const noexcept {
    if (index != index_ && slot.is_exception()) lose_error(operation, slot.exception());
  }

 private:
  static constexpr std::size_t nobody = static_cast<std::size_t>(-1);
  std::size_t index_ = nobody;  // written by the one who decides, before it counts down
};

template <class Awaiter>
struct decided_by_first {
  static void child_ended(group& self, child& one, bool) noexcept { static_cast<Awaiter&>(self).first(one.index); }
  static constexpr group::deciding kind{Awaiter::prepare, child_ended, nullptr,
                                        "another part of the when_any was first"};
};

// ---- when_any of some -----------------------------------------------------------------------------------------------

template <class... Ts>
class any_of_tuple_awaiter : public tuple_group<Ts...> {
  using value_type = std::variant<element<Ts>...>;
  using result_type = any_result<value_type>;

 public:
  any_of_tuple_awaiter(std::tuple<task<Ts>...>&& tasks, std::source_location where) noexcept
      : tuple_group<Ts...>{std::move(tasks), decided_by_first<any_of_tuple_awaiter>::kind, where} {}

  result_type await_resume() {
    return [&]<std::size_t... I>(std::index_sequence<I...>) -> result_type {
      if (this->any_failed()) (winner_.lose(I, "when_any", std::get<I>(this->slots_)), ...);
      static constexpr result_type (*take[])(any_of_tuple_awaiter&) = {take_one<I>...};
      return take[winner_.index()](*this);
    }(std::index_sequence_for<Ts...>{});
  }

 private:
  friend decided_by_first<any_of_tuple_awaiter>;
  void first(std::size_t index) noexcept {
    if (this->decide()) winner_.set(index);
  }
  template <std::size_t I>
  static result_type take_one(any_of_tuple_awaiter& self) {
    return {I, value_type{std::in_place_index<I>, take_element(std::get<I>(self.slots_))}};
  }

  winner winner_;
};

template <class... Ts>
class WEFT_TO_BE_AWAITED("when_any does nothing until it is awaited") WEFT_ELIDABLE any_of_tuple : public knows_roots {
 public:
  explicit any_of_tuple(std::source_location where, task<Ts>&&... tasks) noexcept
      : tasks_{std::move(tasks)...}, where_{where} {}
  any_of_tuple_awaiter<Ts...> operator co_await() && noexcept {
    return any_of_tuple_awaiter<Ts...>{std::move(tasks_), where_};
  }

 private:
  std::tuple<task<Ts>...> tasks_;
  std::source_location where_;
};

/// What a when_any of some gives. More than so many leave no place for the line of the call behind them.
inline constexpr std::size_t most_with_line = 6;
template <class... Awaitables>
auto any_of(std::source_location where, Awaitables&&... awaitables) {
  return any_of_tuple<await_result<Awaitables>...>{where, as_task(std::forward<Awaitables>(awaitables))...};
}

// ---- of a range -----------------------------------------------------------------------------------------------------

template <class T>
class WEFT_CONTAINERS any_of_range_awaiter : public range_group<T> {
 public:
  any_of_range_awaiter(std::vector<task<T>>&& tasks, std::source_location where)
      : range_group<T>{std::move(tasks), decided_by_first<any_of_range_awaiter>::kind, where} {}

  any_result<element<T>> await_resume() {
    if (this->slots_.empty()) throw_too_few("when_any");
    if (this->any_failed())
      for (std::size_t i = 0; i != this->slots_.size(); ++i) winner_.lose(i, "when_any", this->slots_[i]);
    return {winner_.index(), take_element(this->slots_[winner_.index()])};
  }

 private:
  friend decided_by_first<any_of_range_awaiter>;
  void first(std::size_t index) noexcept {
    if (this->decide()) winner_.set(index);
  }

  winner winner_;
};

template <class T>
class WEFT_TO_BE_AWAITED("when_any does nothing until it is awaited") WEFT_CONTAINERS any_of_range
    : public knows_roots {
 public:
  any_of_range(std::vector<task<T>>&& tasks, std::source_location where) noexcept
      : tasks_{std::move(tasks)}, where_{where} {}
  any_of_range_awaiter<T> operator co_await() && { return any_of_range_awaiter<T>{std::move(tasks_), where_}; }

 private:
  std::vector<task<T>> tasks_;
  std::source_location where_;
};

template <class T>
class WEFT_CONTAINERS some_of_range_awaiter : public range_group<T> {
 public:
  some_of_range_awaiter(std::size_t wanted, std::vector<task<T>>&& tasks, std::source_location where)
      : range_group<T>{std::move(tasks), kind, where},
        wanted_{wanted},
        order_{std::make_unique<std::size_t[]>(wanted)} {}

  bool await_ready() const noexcept { return wanted_ == 0; }

  std::vector<std::pair<std::size_t, element<T>>> await_resume() {
    if (this->any_failed()) {
      for (std::size_t i = 0; i != this->slots_.size(); ++i) failed_.lose(i, "when_some", this->slots_[i]);
      if (failed_.is_set()) throw_failure(this->slots_[failed_.index()]);
    }
    std::vector<std::pair<std::size_t, element<T>>> values;
    values.reserve(wanted_);
    for (std::size_t i = 0; i != wanted_; ++i) values.emplace_back(order_[i], take_element(this->slots_[order_[i]]));
    return values;
  }

 private:
  static void child_ended(group& self, child& one, bool failed) noexcept {
    auto& mine = static_cast<some_of_range_awaiter&>(self);
    if (failed) {
      if (mine.decide()) mine.failed_.set(one.index);
      return;
    }
    const std::size_t rank = mine.arrived_.fetch_add(1, std::memory_order_relaxed);
    if (rank < mine.wanted_) mine.order_[rank] = one.index;
    if (rank + 1 == mine.wanted_) mine.decide();
  }
  static constexpr group::deciding kind{some_of_range_awaiter::prepare, child_ended, nullptr,
                                        "enough other parts of the when_some have come, or one has failed"};

  std::size_t wanted_;
  std::unique_ptr<std::size_t[]> order_;  // each place written by the child that has it, before it counts down
  std::atomic<std::size_t> arrived_{0};   // hands out places, no more: relaxed
  winner failed_;                         // who, if a failure decided
};

template <class T>
class WEFT_TO_BE_AWAITED("when_some does nothing until it is awaited") WEFT_CONTAINERS some_of_range
    : public knows_roots {
 public:
  some_of_range(std::size_t wanted, std::vector<task<T>>&& tasks, std::source_location where)
      : wanted_{wanted}, tasks_{std::move(tasks)}, where_{where} {
    if (wanted_ > tasks_.size()) throw_too_few("when_some");
  }
  some_of_range_awaiter<T> operator co_await() && {
    return some_of_range_awaiter<T>{wanted_, std::move(tasks_), where_};
  }

 private:
  std::size_t wanted_;
  std::vector<task<T>> tasks_;
  std::source_location where_;
};

}  // namespace weft::detail
