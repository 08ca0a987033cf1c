// Cases of a select that are not there now, and what never is. Part of select.hpp.
//
// Where it depends on the moment whether a select may do something, its case is on_if(), so that all keep their numbers. Go
// has nil channels for this: on_receive(pointer) and on_send(pointer, value) are the same.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <weft/channel.hpp>
#include <weft/detail/channel/select_cases.hpp>
#include <weft/sync.hpp>
#include <weft/task.hpp>

namespace weft {

namespace detail {

template <class Case>
class state_if;

}  // namespace detail

/// A case that is there, or not: see on_if().
template <class Case>
class case_if {
 public:
  using result_type = typename Case::result_type;
  using state = detail::state_if<Case>;
  explicit case_if(std::optional<Case> one) noexcept : one_{std::move(one)} {}

 private:
  friend state;
  std::optional<Case> one_;
};

namespace detail {

template <class Case>
class state_if final : public select_case {
  using inner = typename Case::state;

 public:
  explicit state_if(case_if<Case>&& from) noexcept {
    if (from.one_) of_.emplace(*std::move(from.one_));
  }
  state_if(state_if&& other) noexcept {  // before it is awaited
    if (other.of_) of_.emplace(*std::move(other.of_));
  }

  static constexpr bool begins = inner::begins;
  static constexpr bool may_need_no_lock = true;
  bool may_be_ready() const noexcept { return of_ && of_->may_be_ready(); }
  std::uint32_t changes() const noexcept { return of_ ? of_->changes() : 0; }
  case_lock its_lock() noexcept { return of_ ? case_lock{of_->its_lock()} : case_lock{}; }
  bool try_now() noexcept { return of_ && of_->try_now(); }
  void finish() noexcept { of_->finish(); }
  bool ended_stopped() const noexcept { return of_ && of_->ended_stopped(); }
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
};

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
};

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
class [[nodiscard("it is to be awaited")]] never_ending : public knows_roots {
 public:
  using may_be_a_case = void;
  never_awaiter<T> operator co_await() const noexcept { return {}; }
  never_case<T> as_case() const noexcept { return {}; }
};

}  // namespace detail

/// Never completes: `co_await never();` waits until it is stopped. `never<T>()` stands where a T would come.
///
/// Suspends  always.
/// Cancel    ends stopped. As a case of a select, on(never()), it is never chosen.
/// Cost      no allocation.
template <class T = void>
detail::never_ending<T> never() noexcept {
  return {};
}

/// A case that is there only if `holds`; else it is never ready, and the select has it all the same, by its index.
///
///     auto got = co_await select(on_receive(in), on_if(!queue.empty(), on_send(out, next)));
///
/// A vector of cases has holes so: `std::vector<case_if<receive_case<int>>>`. What runs beside its select, and `otherwise`,
/// can't stand in it.
///
/// Cost  a flag, and a look at it.
template <class Case>
case_if<Case> on_if(bool holds, Case one) {
  static_assert(detail::waits_in_a_line<Case>,
                "on_if() takes a case that waits in a line: leave out what runs beside its select, and otherwise");
  return case_if<Case>{holds ? std::optional<Case>{std::move(one)} : std::nullopt};
}

/// A receive from a channel that is there, or not: a null pointer is Go's nil channel, never ready.
template <class T>
case_if<receive_case<T>> on_receive(channel<T>* from) {
  using found = std::optional<receive_case<T>>;
  return case_if<receive_case<T>>{from != nullptr ? found{on_receive(*from)} : found{}};
}
/// The same of a send. The value ends with the select where there is no channel.
template <class T, class U = T>
  requires std::is_constructible_v<T, U&&>
case_if<send_case<T>> on_send(channel<T>* to, U&& value) {
  using found = std::optional<send_case<T>>;
  return case_if<send_case<T>>{to != nullptr ? found{on_send(*to, std::forward<U>(value))} : found{}};
}

}  // namespace weft
