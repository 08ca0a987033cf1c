// A type-erased case, for a select whose cases are known at run time only. Part of select.hpp.
//
// Rejected: a result of any type, such as std::any. Its reader would have to know from the index which case has which type; a
// function that is stored with its case can't get that wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>
#include <weft/detail/channel/select_many.hpp>
#include <weft/detail/channel/select_wait.hpp>
#include <weft/detail/channel/some_case.hpp>
#include <weft/detail/core/root.hpp>

namespace weft {

namespace detail {
class any_state;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final, where it is defined
}  // namespace detail

/// A case of any type with a function for its result, for a select whose cases are known at run time only.
///
///     std::vector<any_case> cases;
///     for (auto& one : inputs) cases.emplace_back(on_receive(one), [&](std::optional<int> n) { use(n); });
///     cases.emplace_back(on_send(log, line));
///     cases.emplace_back(on_stop(closing), [&] { closed = true; });
///     cases.emplace_back(after(1s));
///     std::size_t chosen = co_await select(std::move(cases));
///
/// The select's own task calls the function of the chosen case with what that gives (without an argument for a send, a time, a
/// stop and the like) before select() returns. The function returns void. With `otherwise` among the cases the select
/// never waits. A case that runs beside its select is not accepted: fork it, and pass the fork as an lvalue.
///
/// Fails     if the chosen case fails, with that, and does not call its function; or with what the function throws.
/// Lifetime  what the functions refer to outlives the select.
/// Cost      an allocation, by operator new.
class any_case {
 public:
  using result_type = std::monostate;
  using state = detail::any_state;

  /// A case whose result is dropped.
  template <class Case>
    requires(!std::is_same_v<std::remove_cvref_t<Case>, any_case>)
  explicit any_case(Case&& one) : any_case{std::forward<Case>(one), detail::drops_it{}} {}
  /// `then` is called with what the case gives.
  template <class Case, class Function>
  any_case(Case&& one, Function&& then) {
    using given = std::remove_cvref_t<Case>;
    using type = typename detail::select_case_of<given>::type;
    using function = std::decay_t<Function>;
    static_assert(!detail::runs_beside<given>,
                  "what runs beside its select is no any_case: fork it, and give the fork by its name, on(f)");
    if constexpr (!detail::runs_beside<given>) {
      static_assert(
          detail::takes_from_case<function, typename type::result_type>,
          "the function of an any_case takes what the case gives, and gives nothing: a task it gave would not run");
      given copy(std::forward<Case>(one));
      of_ = std::make_unique<detail::some_case_of<type, function>>(detail::as_case(copy), std::forward<Function>(then));
    }
  }

 private:
  friend state;
  std::unique_ptr<detail::some_case> of_;
};

namespace detail {

class any_state final : public select_case {
 public:
  explicit any_state(any_case&& from) noexcept : of_{std::move(from.of_)} {
    WEFT_EXPECTS(of_ != nullptr, "a case that was moved from was given to a select");
  }
  any_state(any_state&& other) noexcept : of_{std::move(other.of_)} {}  // before it is awaited

  bool is_otherwise() const noexcept { return of_->is_otherwise(); }
  bool may_be_ready() const noexcept { return of_->may_be_ready(); }
  std::uint32_t changes() const noexcept { return of_->changes(); }
  case_lock its_lock() noexcept { return of_->lock(); }
  bool try_now() noexcept { return of_->try_now(); }
  void finish() noexcept { of_->finish(); }
  void prepare(select_wait& of, std::size_t index, root& self) noexcept { of_->prepare(of, index, self); }
  static constexpr bool begins = true;  // perhaps
  void begin(root& self) noexcept override { of_->begin(self); }
  void enter(const waiter& parked) noexcept override { of_->enter(parked); }
  channel_waiter* place_at(const channel_core& one) noexcept override { return of_->place_at(one); }
  bool ended_stopped() const noexcept { return of_->has_ended_stopped(); }
  static constexpr bool may_be_in_vain = true;  // perhaps
  bool must_wait_again() noexcept { return of_->must_wait_again(); }
  bool turn_is_over() const noexcept { return of_->has_had_its_turn(); }
  void prepare_poll() noexcept { of_->prepare_poll(); }
  void take() { of_->take(); }
  void leave(bool was_in_line) noexcept override { of_->leave(was_in_line); }

 private:
  void tell(wait_subjects& into) const noexcept override { of_->tell(into); }

  std::unique_ptr<some_case> of_;  // lies where its pointer does

 public:
  static const case_layout seen;
};
WEFT_CASE_LAYOUT(any_state, of_pointer(offsetof(any_state, of_), offsetof(some_case, seen)));

template <>
struct selected_of_many<any_case> {
  using type = std::size_t;
  static type take(std::size_t chosen, any_state& one) { return (one.take(), chosen); }
};

}  // namespace detail

}  // namespace weft
