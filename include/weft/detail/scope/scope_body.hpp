// What runs as the body of a scope: with_scope's callable. Part of scope.hpp.
#pragma once

#include <type_traits>
#include <utility>
#include <weft/detail/base/invoke.hpp>
#include <weft/task.hpp>

namespace weft { class scope; }

namespace weft::detail {

/// A member function as the body of a scope, which is given its object before the scope.
template <class Member>
struct member_body {
  member_body(Member of) noexcept : member{of} {}  // NOLINT: stands for it

  template <class Object, class... Args>
    requires std::is_invocable_v<Member, Object, scope&, Args...>
  WEFT_COROUTINE_TAKES_OVER decltype(auto) operator()(scope& here, Object&& object, Args&&... args) const {
    return invoke_member(member, static_cast<Object&&>(object), here, static_cast<Args&&>(args)...);
  }

  Member member;
};
template <class F>
using scope_body =
    std::conditional_t<std::is_member_pointer_v<std::decay_t<F>>, member_body<std::decay_t<F>>, std::decay_t<F>>;

/// What the body of a scope gives.
template <class F, class... Args>
using body_result = await_result<std::invoke_result_t<scope_body<F>, scope&, std::decay_t<Args>...>>;

/// The body: the callable is called in it, since it may fork, or throw, before it returns something to await.
template <class R, class F, class... Args>
task<R> call_body(scope& here, F& f, Args&... args) {
  co_return co_await std::move(f)(here, std::move(args)...);
}

}  // namespace weft::detail
