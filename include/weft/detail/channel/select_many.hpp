// A select of cases in a vector, however many: of one type, which may be any_case. Part of select.hpp.
//
// It waits as a select whose cases the types tell (channel/select_core.hpp), but looks for the chosen one by its index.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>
#include <weft/detail/channel/select_core.hpp>
#include <weft/detail/channel/select_wait.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/sync/gate.hpp>

namespace weft::detail {

/// What a select of many gives.
template <class Case>
struct selected_of_many {
  struct type {
    std::size_t index;
    typename Case::result_type value;
  };
  static type take(std::size_t chosen, typename Case::state& one) { return {chosen, one.take()}; }
};

template <class Case>
class WEFT_CONTAINERS select_range_awaiter : public gate_awaiter<select_range_awaiter<Case>> {
  // Only of cases of all kinds.
  static constexpr bool may_have_otherwise = requires(const typename Case::state& one) { one.is_otherwise(); };

 public:
  using result_type = typename selected_of_many<Case>::type;

  explicit select_range_awaiter(std::vector<Case>&& cases)
      : ready_(cases.size()), cases_(cases.size()), locks_(cases.size()) {
    states_.reserve(cases.size());
    for (Case& one : cases) states_.emplace_back(std::move(one));
    if constexpr (may_have_otherwise)
      for (std::size_t i = 0; i != states_.size(); ++i)
        if (states_[i].is_otherwise()) {
          WEFT_EXPECTS(otherwise_at_ == select_wait::none, "a select has one otherwise");
          otherwise_at_ = i;
        }
  }
  select_range_awaiter(const select_range_awaiter&) = delete;

  bool suspend(root& self) noexcept {
    if (self.sleeper::stop_requested()) [[unlikely]]
      return (end_stopped(self), true);
    if (!try_without_waiting()) {
      if (wait_.emplace(cases_.data(), locks_.data(), cases_.size()).suspend(self, *this)) return true;
      if (!chosen_ended_stopped()) return false;
      wait_->end(*this);
      return (end_stopped(self), true);
    }
    if (!chosen_ended_stopped()) return false;
    return (end_stopped(self), true);
  }
  // See detail::may_need_no_wait.
  bool seems_ready() const noexcept { return never_waits() || any_may_be_ready(); }
  bool done_at_once(const root& self) noexcept {
    return !self.sleeper::stop_requested() && try_without_waiting() && !chosen_ended_stopped();
  }
  result_type await_resume() {
    end_wait();
    return selected_of_many<Case>::take(chosen, states_[chosen]);
  }
  // False: it is awaited once more.
  bool is_settled() noexcept {
    end_wait();
    return !states_[chosen].must_wait_again();
  }
  // Before it is awaited. Whether others are to run first.
  bool begin() noexcept {
    if (never_waits()) each([](auto& one, std::size_t) { one.prepare_poll(); });
    return std::any_of(states_.begin(), states_.end(), [](const auto& one) { return one.turn_is_over(); });
  }

  // For its wait.
  template <class Function>
  void each(Function f) noexcept {
    for (std::size_t i = 0; i != states_.size(); ++i)
      if (i != otherwise_at_) f(states_[i], i);
  }
  // Any of those that may be ready, and if that one is not, any of the others.
  template <class Try>
  bool try_ready() noexcept {
    std::size_t count = 0;
    for (std::size_t i = 0; i != states_.size(); ++i)
      if (states_[i].may_be_ready()) ready_[count++] = static_cast<std::uint32_t>(i);
    for (; count != 0; --count) {
      std::uint32_t& drawn = ready_[count == 1 ? 0 : select_wait::any_of(count)];
      chosen = drawn;
      if (Try::now(states_[chosen])) return true;
      drawn = ready_[count - 1];
    }
    return false;
  }
  void finish_chosen() noexcept { states_[chosen].finish(); }
  static constexpr bool begins_several = Case::state::begins;
  static constexpr bool may_need_no_lock = true;  // there may be none
  std::size_t chosen;

 private:
  void end_wait() noexcept {
    if (wait_) {
      chosen = wait_->chosen;
      wait_->end(*this);
      wait_.reset();
    }
  }
  bool never_waits() const noexcept { return otherwise_at_ != select_wait::none; }
  bool any_may_be_ready() const noexcept {
    return std::any_of(states_.begin(), states_.end(), [](const auto& one) { return one.may_be_ready(); });
  }
  bool chosen_ended_stopped() const noexcept { return states_[chosen].ended_stopped(); }
  // As of a select whose cases are known. False: it has to wait.
  bool try_without_waiting() noexcept {
    if (!never_waits()) return try_ready<try_alone>();
    const std::uint32_t before = changes();
    const bool none_is_ready = !any_may_be_ready() && changes() == before;
    if (none_is_ready || (!try_ready<try_alone>() && !select_wait::try_all(locks_.data(), *this)))
      chosen = otherwise_at_;
    return true;
  }
  std::uint32_t changes() const noexcept {
    std::uint32_t sum = 0;
    for (const auto& one : states_) sum += one.changes();
    return sum;
  }

  std::size_t otherwise_at_ = select_wait::none;
  std::vector<typename Case::state> states_;
  std::vector<std::uint32_t> ready_;
  std::vector<select_place> cases_;
  std::vector<case_lock> locks_;
  std::optional<select_wait> wait_;
};

template <class Case>
class WEFT_TO_BE_AWAITED("nothing happens until it is awaited") WEFT_CONTAINERS selecting_of : public knows_roots {
 public:
  using is_select = void;
  explicit selecting_of(std::vector<Case>&& cases) noexcept : cases_(std::move(cases)) {}
  select_range_awaiter<Case> operator co_await() && { return select_range_awaiter<Case>{std::move(cases_)}; }

 private:
  std::vector<Case> cases_;
};

template <class Case>
auto select_many(std::vector<Case>&& cases) {
  if constexpr (Case::state::may_be_in_vain)
    return selecting_until_settled<select_range_awaiter<Case>, std::vector<Case>>{std::move(cases)};
  else
    return selecting_of<Case>{std::move(cases)};
}

}  // namespace weft::detail
