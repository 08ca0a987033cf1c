// A case and its function, without their types. Part of any_case.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <variant>
#include <weft/detail/base/invoke.hpp>
#include <weft/detail/channel/select_core.hpp>
#include <weft/detail/channel/select_wait.hpp>
#include <weft/detail/core/root.hpp>

namespace weft::detail {

/// Does nothing with what a case gives.
struct drops_it {
  template <class Value>
  void operator()(Value&&) const noexcept {}
};

/// A case and its function, without their types.
class some_case : public select_case {
 public:
  explicit some_case(const case_layout* what) noexcept : seen{what} {}
  virtual ~some_case() = default;
  virtual bool is_otherwise() const noexcept = 0;
  virtual bool may_be_ready() const noexcept = 0;
  virtual std::uint32_t changes() const noexcept = 0;
  virtual case_lock lock() noexcept = 0;
  virtual bool try_now() noexcept = 0;
  virtual void finish() noexcept = 0;
  virtual void prepare(select_wait& of, std::size_t index, root& self) noexcept = 0;
  virtual bool has_ended_stopped() const noexcept = 0;
  virtual bool must_wait_again() noexcept = 0;
  virtual bool has_had_its_turn() const noexcept = 0;
  virtual void prepare_poll() noexcept = 0;
  virtual void take() = 0;

  const case_layout* const seen;  // of what it is in truth
};

template <class Case, class Function>
class some_case_of final : public some_case {
  using state = typename Case::state;
  static constexpr bool is_select_case = std::is_base_of_v<select_case, state>;  // all but otherwise

 public:
  template <class F>
  some_case_of(Case&& one, F&& then) : some_case{&its_layout}, state_(std::move(one)), then_(std::forward<F>(then)) {}

  bool is_otherwise() const noexcept override { return !is_select_case; }
  bool may_be_ready() const noexcept override { return state_.may_be_ready(); }
  std::uint32_t changes() const noexcept override { return state_.changes(); }
  case_lock lock() noexcept override {
    if constexpr (is_select_case)
      return state_.its_lock();
    else
      return {};
  }
  bool try_now() noexcept override {
    if constexpr (is_select_case) return state_.try_now();
    return false;
  }
  void finish() noexcept override {
    if constexpr (is_select_case) state_.finish();
  }
  void prepare(select_wait& of, std::size_t index, root& self) noexcept override {
    if constexpr (is_select_case) state_.prepare(of, index, self);
  }
  void begin([[maybe_unused]] root& self) noexcept override {
    if constexpr (is_select_case) state_.begin(self);
  }
  void enter([[maybe_unused]] const waiter& parked) noexcept override {
    if constexpr (is_select_case) state_.enter(parked);  // one with otherwise never waits
  }
  channel_waiter* place_at([[maybe_unused]] const channel_core& one) noexcept override {
    if constexpr (is_select_case) return static_cast<select_case&>(state_).place_at(one);
    return nullptr;
  }
  bool has_ended_stopped() const noexcept override { return state_.ended_stopped(); }
  bool must_wait_again() noexcept override { return state_.must_wait_again(); }
  bool has_had_its_turn() const noexcept override { return state_.turn_is_over(); }
  void prepare_poll() noexcept override {
    if constexpr (is_select_case) state_.prepare_poll();
  }
  void take() override { take_of<typename Case::result_type>(); }
  void leave(bool was_in_line) noexcept override {
    if constexpr (is_select_case) static_cast<select_case&>(state_).leave(was_in_line);
  }
  void tell(wait_subjects& into) const noexcept override {
    if constexpr (is_select_case) static_cast<const select_case&>(state_).tell(into);
  }

 private:
  template <class Value>
  void take_of() {
    if constexpr (std::is_same_v<Value, std::monostate> && std::is_invocable_v<Function&>)
      static_cast<void>(state_.take()), then_();
    else
      detail::invoke(then_, state_.take());
  }

  state state_;
  Function then_;

  static const case_layout its_layout;
};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
template <class Case, class Function>
inline constexpr case_layout some_case_of<Case, Function>::its_layout =
    case_layout::of_inner(offsetof(some_case_of, state_), layout_of_case<typename Case::state>());
#pragma GCC diagnostic pop

/// Whether a function can be called with what a case gives, or with nothing where it gives std::monostate; and gives nothing.
template <class Function, class Value>
inline constexpr bool takes_from_case = [] {
  if constexpr (std::is_same_v<Value, std::monostate> && std::is_invocable_v<Function&>)
    return std::is_void_v<std::invoke_result_t<Function&>>;
  else if constexpr (std::is_invocable_v<Function&, Value>)
    return std::is_void_v<std::invoke_result_t<Function&, Value>>;
  else
    return false;
}();

}  // namespace weft::detail
