// Calling what a user gives, as std::invoke does: a function, an object with an operator(), a pointer to a member.
//
// Rejected: std::invoke itself. <functional> would be half of what task.hpp costs to compile, and with WEFT_CHECK_LIFETIMES
// clang refuses a function that returns a task and is not marked as a wrapper.
#pragma once

#include <type_traits>
#include <utility>
#include <weft/detail/base/config.hpp>

#if defined(__GLIBCXX__) && !_GLIBCXX_INLINE_VERSION
namespace std {
template <class T>
class reference_wrapper;
}  // namespace std
#else
#include <functional>
#endif

namespace weft::detail {

template <class T>
inline constexpr bool is_reference_wrapper = false;
template <class T>
inline constexpr bool is_reference_wrapper<std::reference_wrapper<T>> = true;

/// Calls a member of an object, or gives a data member of it. The object is itself, or what refers to it.
template <class Member, class Class, class Object, class... Args>
WEFT_COROUTINE_TAKES_OVER constexpr decltype(auto) invoke_member(Member Class::* member, Object&& object,
                                                                 Args&&... args) {
  using plain = std::remove_cvref_t<Object>;
  if constexpr (is_reference_wrapper<plain>)
    return invoke_member(member, object.get(), static_cast<Args&&>(args)...);
  else if constexpr (!std::is_same_v<Class, plain> && !std::is_base_of_v<Class, plain>)
    return invoke_member(member, *static_cast<Object&&>(object), static_cast<Args&&>(args)...);
  else if constexpr (std::is_function_v<Member>)
    return (static_cast<Object&&>(object).*member)(static_cast<Args&&>(args)...);
  else
    return (static_cast<Object&&>(object).*member);  // in parentheses: a reference, as std::invoke gives
}

template <class F, class... Args>
WEFT_COROUTINE_TAKES_OVER WEFT_ALWAYS_INLINE constexpr decltype(auto) invoke(F&& f, Args&&... args) {
  if constexpr (std::is_member_pointer_v<std::remove_cvref_t<F>>)
    return invoke_member(f, static_cast<Args&&>(args)...);
  else
    return static_cast<F&&>(f)(static_cast<Args&&>(args)...);
}

/// What a call gives, to be kept: a value where it returns an rvalue reference, whose object may be gone by then.
template <class Returned>
struct kept {
  using type = Returned;
};
template <class Returned>
struct kept<Returned&&> {
  using type = std::remove_cv_t<Returned>;
};
template <class F, class... Args>
using kept_result = typename kept<std::invoke_result_t<F, Args...>>::type;

/// A pointer to a member that is called like a function.
template <class Member>
struct member_call {
  member_call(Member of) noexcept : member{of} {}  // NOLINT: stands for it

  template <class... Args>
    requires std::is_invocable_v<Member, Args...>
  WEFT_COROUTINE_TAKES_OVER decltype(auto) operator()(Args&&... args) const {
    return invoke_member(member, static_cast<Args&&>(args)...);
  }

  Member member;
};

template <class F>
struct callable_of {
  using type = F;
};
template <class F>
  requires std::is_member_pointer_v<F>
struct callable_of<F> {
  using type = member_call<F>;
};
/// What is kept of a callable whose call is awaited in place, as f(args...), which clang elides, where it does not elide
/// what invoke() gives.
template <class F>
using callable = typename callable_of<std::decay_t<F>>::type;

}  // namespace weft::detail
