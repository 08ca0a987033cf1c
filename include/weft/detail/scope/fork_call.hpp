// What runs in a fork of a function, and the wait for room for one. Part of scope.hpp.
#pragma once

#include <coroutine>
#include <exception>
#include <type_traits>
#include <utility>
#include <weft/detail/base/invoke.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/core/waiter.hpp>
#include <weft/detail/scope/scope_core.hpp>
#include <weft/task.hpp>

namespace weft::detail {

/// Whether a scope can fork it: an awaitable, or a function and what it is called with, all of which are moved or copied.
template <class What, class... Args>
concept forkable = (sizeof...(Args) == 0 && awaitable_argument<What>) ||
                   std::is_invocable_v<std::decay_t<What>, std::decay_t<Args>...>;

/// Why a scope does not fork it.
struct work_is_forked {
  template <class T>
  static constexpr refusal why() {
    return is_task<std::remove_cvref_t<T>> && !awaitable_argument<T> ? refusal::kept_task : refusal::work;
  }
  static constexpr bool converts_others = false;
};
using refused_work = refused<work_is_forked>;

/// What the function of a fork gives: what it returns, or what awaiting that gives.
template <class F, class... Args>
struct forked {
  using type = kept_result<F, Args...>;
};
template <class F, class... Args>
  requires weft::awaitable<std::invoke_result_t<F, Args...>>
struct forked<F, Args...> {
  using type = await_result<std::invoke_result_t<F, Args...>>;
};
template <class F, class... Args>
using forked_t = typename forked<std::decay_t<F>, std::decay_t<Args>...>::type;

template <class F, class... Args>
task<forked_t<F, Args...>> call_in_fork(F f, Args... args) {
  if constexpr (weft::awaitable<std::invoke_result_t<F, Args...>>)
    co_return co_await std::move(f)(std::move(args)...);
  else
    co_return detail::invoke(std::move(f), std::move(args)...);
}

/// The same where a failure may start it again: the function is called with copies.
template <class F, class... Args>
task<forked_t<F, Args...>> call_again_in_fork(scope_core& in, F f, Args... args) {
  for (;;) {
    try {
      auto once = call_in_fork<F, Args...>(f, args...);
      co_return co_await std::move(once);
    } catch (...) {  // thrown on, unless the policy says otherwise
      if (!in.starts_again(std::current_exception())) throw;
    }
  }
}

/// Waits for room for one more child; `takes`: and has its place then, which others don't get.
class room_wait final : public waiter {
 public:
  room_wait(scope_core& of, bool takes) noexcept : waiter{type}, takes_place{takes}, of_{of} {}
  room_wait(const room_wait&) = delete;
  bool await_ready() const noexcept { return takes_place && of_.take_place(); }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    return of_.wait_for_room(*this, suspending(caller));
  }
  void await_resume() const noexcept {}

  const bool takes_place;

 private:
  static on_stop leave(waiter& self) noexcept {
    auto& mine = static_cast<room_wait&>(self);
    return mine.of_.leave_room(mine);
  }
  static void tell(const waiter& self, const char* what, wait_subjects& into) noexcept {
    into.add(what, &static_cast<const room_wait&>(self).of_);
  }
  static const wait_layout seen;
  static constexpr wait_type type{
      .leave = leave, .name = "room for one more fork in a scope", .tell = tell, .layout = &seen};
  scope_core& of_;
};
WEFT_LAYOUT(room_wait, stored_at(WEFT_BEHIND_WAITER(room_wait, of_)));
struct room : knows_roots {
  scope_core& of;
  bool takes_place;
  explicit room(scope_core& scope, bool takes = false) noexcept : of{scope}, takes_place{takes} {}
  room_wait operator co_await() const noexcept { return room_wait{of, takes_place}; }
};

}  // namespace weft::detail
