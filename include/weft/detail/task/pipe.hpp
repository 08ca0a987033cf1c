// What the adaptors of pipe.hpp are made of, and the calls of functions that may give something to await.
//
// Each adaptor is a coroutine around what stands before it: nothing runs before the whole is awaited, and what a
// function gives is awaited, too, if it can be.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>
#include <weft/detail/base/invoke.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/task.hpp>

namespace weft::detail {

// ---- what the functions take and give -------------------------------------------------------------------------------

/// A value that stands for an awaitable which is ready.
template <class R>
struct immediate : knows_roots {
  explicit immediate(R&& from) : value(std::forward<R>(from)) {}
  bool await_ready() const noexcept { return true; }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  R await_resume() { return std::forward<R>(value); }
  R value;
};
template <>
struct immediate<void> : knows_roots {
  bool await_ready() const noexcept { return true; }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  void await_resume() const noexcept {}
};

/// Calls `f`; gives what it returned, if that can be awaited, else an `immediate` around it.
template <class F, class... Args>
WEFT_COROUTINE_TAKES_OVER decltype(auto) call(F&& f, Args&&... args) {
  using returned = std::invoke_result_t<F, Args...>;
  if constexpr (weft::awaitable<returned>) {
    return detail::invoke(std::forward<F>(f), std::forward<Args>(args)...);
  } else if constexpr (std::is_void_v<returned>) {
    detail::invoke(std::forward<F>(f), std::forward<Args>(args)...);
    return immediate<void>{};
  } else {
    return immediate<kept_result<F, Args...>>{detail::invoke(std::forward<F>(f), std::forward<Args>(args)...)};
  }
}

template <class F, class... Args>
using called = decltype(call(std::declval<F>(), std::declval<Args>()...));
template <class F, class... Args>
using outcome_of_call = await_result<called<F, Args...>>;

/// The same for a function that takes the value of type T, or nothing if T is void.
template <class F, class T>
struct on_value_of {
  static constexpr bool fits = std::is_invocable_v<F, T>;
  template <class G = F>
  using outcome = outcome_of_call<G, T>;
};
template <class F>
struct on_value_of<F, void> {
  static constexpr bool fits = std::is_invocable_v<F>;
  template <class G = F>
  using outcome = outcome_of_call<G>;
};

/// The type of the one parameter of a function that is not overloaded.
template <class F>
struct parameter : parameter<decltype(&F::operator())> {};
template <class R, class A>
struct parameter<R (*)(A)> {
  using type = A;
};
template <class R, class A>
struct parameter<R (*)(A) noexcept> : parameter<R (*)(A)> {};
template <class R, class C, class A>
struct parameter<R (C::*)(A)> : parameter<R (*)(A)> {};
template <class R, class C, class A>
struct parameter<R (C::*)(A) const> : parameter<R (*)(A)> {};
template <class R, class C, class A>
struct parameter<R (C::*)(A) noexcept> : parameter<R (*)(A)> {};
template <class R, class C, class A>
struct parameter<R (C::*)(A) const noexcept> : parameter<R (*)(A)> {};

/// A member of an error, as its handler.
template <class R, class C>
struct parameter<R C::*> {
  using type = const C&;
};
template <class R, class C>
struct parameter<R (C::*)()> {
  using type = C&;
};
template <class R, class C>
struct parameter<R (C::*)() noexcept> : parameter<R (C::*)()> {};

/// What a handler of errors takes: any, as a std::exception_ptr, or one type.
template <class G, bool any = std::is_invocable_v<G, std::exception_ptr>>
struct error_taken_by {
  using type = std::exception_ptr;
};
template <class G>
struct error_taken_by<G, false> : parameter<G> {};

/// Whether R can stand for a T.
template <class R, class T>
inline constexpr bool replaces =
    std::is_void_v<T> ? std::is_void_v<R> : (!std::is_void_v<R> && std::is_convertible_v<R, T>);

/// The type of a T or an R in its place: T. But where T is a reference and R gives a value, it is T without the reference,
/// since a reference to R's value would dangle.
template <class T, class R>
struct either {
  using type = T;
};
template <class T, class R>
  requires(!std::is_lvalue_reference_v<R> || !std::is_convertible_v<std::remove_reference_t<R>*, T*>)
struct either<T&, R> {
  using type = std::remove_cv_t<T>;
};
template <class Awaitable, class Call>
using given_or = typename either<await_result<Awaitable>, Call>::type;

// ---- the coroutines -------------------------------------------------------------------------------------------------
// What they await and call lies in their frames. Nothing that has a destructor is made inside a co_await.

template <class Awaitable, class F>
task<typename on_value_of<F, await_result<Awaitable>>::template outcome<>> on_value_in_task(Awaitable before, F f) {
  if constexpr (std::is_void_v<await_result<Awaitable>>) {
    co_await static_cast<Awaitable&&>(before);
    auto&& next = call(std::move(f));
    co_return co_await std::forward<decltype(next)>(next);
  } else {
    await_result<Awaitable> value = co_await static_cast<Awaitable&&>(before);
    auto&& next = call(std::move(f), std::forward<await_result<Awaitable>>(value));
    co_return co_await std::forward<decltype(next)>(next);
  }
}

template <class Awaitable, class F>
task<outcome_of_call<F, result<await_result<Awaitable>>>> on_result_in_task(Awaitable before, F f) {
  auto&& next = call(std::move(f), co_await as_result(static_cast<Awaitable&&>(before)));
  co_return co_await std::forward<decltype(next)>(next);
}

template <class Awaitable, class G>
task<given_or<Awaitable, outcome_of_call<G, std::exception_ptr>>> on_any_error_in_task(Awaitable before, G g) {
  std::exception_ptr failure;
  try {
    co_return co_await static_cast<Awaitable&&>(before);
  } catch (...) {  // g gets it
    failure = std::current_exception();
  }
  auto&& next = call(std::move(g), std::move(failure));
  co_return co_await std::forward<decltype(next)>(next);
}

template <class Error, class Awaitable, class G>
task<given_or<Awaitable, outcome_of_call<G, Error>>> on_one_error_in_task(Awaitable before, G g) {
  std::exception_ptr alive;  // what `next` may refer to
  std::optional<called<G, Error>> next;
  try {
    co_return co_await static_cast<Awaitable&&>(before);
  } catch (std::remove_reference_t<Error>& failure) {
    alive = std::current_exception();
    next.emplace(call(std::move(g), static_cast<Error>(failure)));
  }
  co_return co_await *std::move(next);
}

template <class Awaitable, class H>
task<given_or<Awaitable, outcome_of_call<H>>> on_stop_in_task(Awaitable before, H h) {
  auto how = co_await as_result(static_cast<Awaitable&&>(before));
  if (!how.is_stopped()) co_return std::move(how).value();
  auto&& next = call(std::move(h));
  co_return co_await std::forward<decltype(next)>(next);
}

// ---- the adaptors ---------------------------------------------------------------------------------------------------

struct on_value_kind {
  template <class Awaitable, class F>
  WEFT_COROUTINE_TAKES_OVER static auto around(Awaitable&& before, F&& f) {
    static_assert(on_value_of<F, await_result<Awaitable>>::fits, "on_value(f): f takes the value");
    return on_value_in_task<Awaitable, F>(std::forward<Awaitable>(before), std::forward<F>(f));
  }
};

struct then_kind {
  template <class Awaitable, class F>
  WEFT_COROUTINE_TAKES_OVER static auto around(Awaitable&& before, F&& f) {
    using value_type = await_result<Awaitable>;
    static_assert(on_value_of<F, value_type>::fits || std::is_invocable_v<F, result<value_type>>,
                  "then(f): f takes the value, or the weft::result");
    if constexpr (on_value_of<F, value_type>::fits)
      return on_value_in_task<Awaitable, F>(std::forward<Awaitable>(before), std::forward<F>(f));
    else
      return on_result_in_task<Awaitable, F>(std::forward<Awaitable>(before), std::forward<F>(f));
  }
};

struct on_error_kind {
  template <class Awaitable, class G>
  WEFT_COROUTINE_TAKES_OVER static auto around(Awaitable&& before, G&& g) {
    using error = typename error_taken_by<G>::type;
    static_assert(replaces<outcome_of_call<G, error>, await_result<Awaitable>>,
                  "on_error(g): what g gives takes the place of the value, and must convert to its type");
    if constexpr (std::is_same_v<error, std::exception_ptr>)
      return on_any_error_in_task<Awaitable, G>(std::forward<Awaitable>(before), std::forward<G>(g));
    else
      return on_one_error_in_task<error, Awaitable, G>(std::forward<Awaitable>(before), std::forward<G>(g));
  }
};

struct on_stop_kind {
  template <class Awaitable, class H>
  WEFT_COROUTINE_TAKES_OVER static auto around(Awaitable&& before, H&& h) {
    static_assert(replaces<outcome_of_call<H>, await_result<Awaitable>>,
                  "on_stop(h): what h gives takes the place of the value, and must convert to its type");
    return on_stop_in_task<Awaitable, H>(std::forward<Awaitable>(before), std::forward<H>(h));
  }
};

/// The right side of a `|`.
template <class Kind, class F>
class [[nodiscard("an adaptor stands behind an awaitable: t | then(f)")]] adaptor {
 public:
  template <class G>
  explicit adaptor(std::in_place_t, G&& f) : f_(std::forward<G>(f)) {}

  template <awaitable_argument Awaitable>
  WEFT_COROUTINE_TAKES_OVER friend auto operator|(Awaitable&& before, adaptor&& self) {
    return Kind::template around<Awaitable, F>(std::forward<Awaitable>(before), std::move(self.f_));
  }
  template <int = 0>
  friend void operator|(refused<>, given<adaptor>) {}  // a friend's default needs a body

 private:
  F f_;
};

template <class Kind, class F>
adaptor<Kind, std::decay_t<F>> make_adaptor(F&& f) {
  return adaptor<Kind, std::decay_t<F>>{std::in_place, std::forward<F>(f)};
}

}  // namespace weft::detail
