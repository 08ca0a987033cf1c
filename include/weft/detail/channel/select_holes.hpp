// What a case that may be missing waits with, and one that never is. Part of select_holes.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <weft/detail/channel/case_layout.hpp>
#include <weft/detail/channel/select_wait.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/core/waiter.hpp>
#include <weft/detail/join/group.hpp>
#include <weft/detail/sync/gate.hpp>

namespace weft {
template <class Case>
class case_if;
}  // namespace weft

namespace weft::detail {

template <class Case>
class state_if final : public select_case {
  using inner = typename Case::state;

 public:
  explicit state_if(case_if<Case>&& from) noexcept : is_there_{from.one_.has_value()} {
    if (from.one_) of_.emplace(*std::move(from.one_));
  }
  state_if(state_if&& other) noexcept : is_there_{other.is_there_} {  // before it is awaited
    if (other.of_) of_.emplace(*std::move(other.of_));
  }

  static constexpr bool begins = inner::begins;
  static constexpr bool may_be_in_vain = inner::may_be_in_vain;
  static constexpr bool may_need_no_lock = true;
  bool may_be_ready() const noexcept { return of_ && of_->may_be_ready(); }
  std::uint32_t changes() const noexcept { return of_ ? of_->changes() : 0; }
  case_lock its_lock() noexcept { return of_ ? case_lock{of_->its_lock()} : case_lock{}; }
  bool try_now() noexcept { return of_ && of_->try_now(); }
  void finish() noexcept { of_->finish(); }
  bool ended_stopped() const noexcept { return of_ && of_->ended_stopped(); }
  bool must_wait_again() noexcept { return of_->must_wait_again(); }
  bool turn_is_over() const noexcept { return of_ && of_->turn_is_over(); }
  void prepare_poll() noexcept {
    if (of_) of_->prepare_poll();
  }
  auto take() { return of_->take(); }
  void prepare(select_wait& of, std::size_t index, root& self) noexcept {
    if (of_) of_->prepare(of, index, self);
  }
  void begin(root& self) noexcept override {
    if (of_) of_->begin(self);
  }
  void enter(const waiter& parked) noexcept override {
    if (of_) of_->enter(parked);
  }
  channel_waiter* place_at(const channel_core& one) noexcept override {
    return of_ ? static_cast<select_case&>(*of_).place_at(one) : nullptr;
  }
  void leave(bool was_in_line) noexcept override {
    if (of_) static_cast<select_case&>(*of_).leave(was_in_line);
  }
  void tell(wait_subjects& into) const noexcept override {
    if (of_) static_cast<const select_case&>(*of_).tell(into);
  }

 private:
  std::optional<inner> of_;
  bool is_there_;  // for readers from outside, who do not know where an optional says so

 public:
  static const case_layout seen;
};
// An optional has its value first.
WEFT_CASE_LAYOUT_IN(
    Case, state_if<Case>,
    of_inner(offsetof(state_if, of_), layout_of_case<typename Case::state>()).if_there(offsetof(state_if, is_there_)));

template <class Case>
inline constexpr bool waits_in_a_line = false;
template <class Case>
  requires requires { typename Case::state; }
inline constexpr bool waits_in_a_line<Case> = std::is_base_of_v<select_case, typename Case::state>;

/// What never is.
template <class T>
class never_case final : public select_case {
 public:
  using result_type = element<T>;
  using state = never_case;
  static constexpr bool may_need_no_lock = true;

  bool may_be_ready() const noexcept { return false; }
  std::uint32_t changes() const noexcept { return 0; }
  case_lock its_lock() noexcept { return {}; }
  bool try_now() noexcept { return false; }
  void finish() noexcept {}
  [[noreturn]] result_type take() noexcept { fail("what never is was chosen by a select"); }  // uncounted
  void prepare(select_wait&, std::size_t, root&) noexcept {}
  void enter(const waiter&) noexcept override {}
  void leave(bool) noexcept override {}
  void tell(wait_subjects&) const noexcept override {}

  static const case_layout seen;
};
WEFT_CASE_LAYOUT_IN(T, never_case<T>, of_none());

template <class T>
class never_awaiter : waiter, public gate_awaiter<never_awaiter<T>> {
 public:
  never_awaiter() noexcept : waiter{type} {}
  bool suspend(root& self) noexcept {
    if (self.sleeper::stop_requested() || !self.park(*this)) end_stopped(self);
    return true;  // the task may be gone since the line before
  }
  [[noreturn]] T await_resume() noexcept { fail("a wait for what never is has ended"); }

 private:
  static on_stop leave(waiter&) noexcept { return on_stop::left; }
  static constexpr wait_type type{.leave = leave, .name = "never"};
};

template <class T>
class WEFT_TO_BE_AWAITED("it is to be awaited") never_ending : public knows_roots {
 public:
  using may_be_a_case = void;
  never_awaiter<T> operator co_await() const noexcept { return {}; }
  never_case<T> as_case() const noexcept { return {}; }
};

}  // namespace weft::detail
