// A case of any kind, for a select whose cases only the run knows. Part of select.hpp.
//
// Rejected: a value of any type as the result (as std::any), by the case's index. Who reads it has to know again, from a
// number, which case had which type; a function that stands beside its case can't be wrong about it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>
#include <weft/detail/base/invoke.hpp>
#include <weft/detail/channel/select_core.hpp>

namespace weft {

namespace detail {

/// Does nothing with what a case gives.
struct drops_it {
  template <class Value>
  void operator()(Value&&) const noexcept {}
};

/// A case and its function, without their types.
class some_case : public select_case {
 public:
  virtual ~some_case() = default;
  virtual bool is_otherwise() const noexcept = 0;
  virtual bool may_be_ready() const noexcept = 0;
  virtual std::uint32_t changes() const noexcept = 0;
  virtual case_lock lock() noexcept = 0;
  virtual bool try_now() noexcept = 0;
  virtual void finish() noexcept = 0;
  virtual void prepare(select_wait& of, std::size_t index, root& self) noexcept = 0;
  virtual bool has_ended_stopped() const noexcept = 0;
  virtual void take() = 0;
};

template <class Case, class Function>
class some_case_of final : public some_case {
  using state = typename Case::state;
  static constexpr bool is_select_case = std::is_base_of_v<select_case, state>;  // all but otherwise

 public:
  template <class F>
  some_case_of(Case&& one, F&& then) : state_(std::move(one)), then_(std::forward<F>(then)) {}

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
};

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

class any_state;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final, where it is defined

}  // namespace detail

/// A case of any kind, and what is done with what it gives, where only the run knows which cases there are.
///
///     std::vector<any_case> cases;
///     for (auto& one : inputs) cases.emplace_back(on_receive(one), [&](std::optional<int> n) { use(n); });
///     cases.emplace_back(on_send(log, line));
///     cases.emplace_back(on_stop(closing), [&] { closed = true; });
///     cases.emplace_back(after(1s));
///     std::size_t chosen = co_await select(std::move(cases));
///
/// The function of the one that was chosen is called with what that gives (with nothing for a send, a time, a stop and the
/// like), by the select's own task, before select returns. It gives nothing. With `otherwise` among them the select never
/// waits. What runs beside its select is none: fork it, and give the fork by its name.
///
/// Fails     with what the chosen case fails with, whose function is not called then, or what the function throws.
/// Lifetime  what the functions refer to outlives the select.
/// Cost      an allocation, by operator new.
class any_case {
 public:
  using result_type = std::monostate;
  using state = detail::any_state;

  template <class Case>
    requires(!std::is_same_v<std::remove_cvref_t<Case>, any_case>)
  explicit any_case(Case&& one) : any_case{std::forward<Case>(one), detail::drops_it{}} {}
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
  void take() { of_->take(); }
  void leave(bool was_in_line) noexcept override { of_->leave(was_in_line); }

 private:
  void tell(wait_subjects& into) const noexcept override { of_->tell(into); }

  std::unique_ptr<some_case> of_;
};

template <>
struct selected_of_many<any_case> {
  using type = std::size_t;
  static type take(std::size_t chosen, any_state& one) { return (one.take(), chosen); }
};

}  // namespace detail

/// The same of cases of any kind, each with its function: gives the index of the one that was done. See any_case.
///
/// Suspends, Cancel, Fails, Lifetime and Threads as above; never waits where `otherwise` is among them.
/// Cost      four allocations more, besides those of the cases.
inline auto select(std::vector<any_case> cases) { return detail::selecting_of<any_case>{std::move(cases)}; }

}  // namespace weft
