// Any awaitable as a task. Part of task.hpp.
#pragma once

#include <coroutine>
#include <type_traits>
#include <utility>
#include <weft/detail/core/root.hpp>
#include <weft/detail/task/task_awaiter.hpp>

namespace weft {
template <class T>
class task;
template <class T>
class shared_task;
}  // namespace weft

namespace weft::detail {

template <class T>
inline constexpr bool is_task = false;
template <class T>
inline constexpr bool is_task<task<T>> = true;

/// Whether awaiting it gives a reference to a value that lives as long as it does: a shared_task, a fork_view.
template <class Awaitable>
inline constexpr bool keeps_its_value = false;
template <class T>
inline constexpr bool keeps_its_value<shared_task<T>> = true;

/// The result of a task that owns an awaitable and awaits it. The result must not refer to the awaitable, which is destroyed
/// with the task's frame. So an awaitable that keeps its value gives a copy (others may have the value, too), and an xvalue
/// is moved out. An awaitable given as an lvalue, `Awaitable&`, outlives the task: its result is passed on as it is.
template <class Awaitable>
struct awaited {
  using given = await_result_t<Awaitable>;
  using type = std::conditional_t<std::is_rvalue_reference_v<given>, std::remove_reference_t<given>, given>;
};
template <class T>
struct awaited<task<T>> {  // which has no awaiter outside of a task
  using type = T;
};
template <class Awaitable>
  requires keeps_its_value<Awaitable>
struct awaited<Awaitable> {
  using type = typename Awaitable::value_type;
  static_assert(
      std::is_void_v<type> || std::is_reference_v<type> || std::is_copy_constructible_v<type>,
      "the value of a temporary shared_task or fork_view is copied, since others may have it, too, and this one "
      "can't be copied: give the shared_task or the view a name, and pass that");
};

template <class Awaitable>
task<typename awaited<Awaitable>::type> await_in_task(Awaitable awaitable) {
  co_return co_await std::forward<Awaitable>(awaitable);
}
template <class Awaitable>
task<typename awaited<Awaitable&>::type> await_in_task_by_reference(Awaitable& awaitable) {
  co_return co_await awaitable;
}

/// A task is returned as it is, and an awaitable with as_task() gives that one. Any other awaitable is awaited in a new
/// task.
template <class Awaitable>
WEFT_COROUTINE_WRAPPER auto as_task(Awaitable&& awaitable) {
  using plain = std::remove_cvref_t<Awaitable>;
  static_assert(!(is_task<plain> && std::is_lvalue_reference_v<Awaitable>),
                "a task is awaited once, as an rvalue: pass std::move(t)");
  if constexpr (is_task<plain>)
    return std::forward<Awaitable>(awaitable);
  else if constexpr (requires { std::forward<Awaitable>(awaitable).as_task(); })
    return std::forward<Awaitable>(awaitable).as_task();
  else if constexpr (std::is_lvalue_reference_v<Awaitable>)
    return await_in_task_by_reference<std::remove_reference_t<Awaitable>>(awaitable);
  else
    return await_in_task<plain>(std::forward<Awaitable>(awaitable));
}

template <class Awaitable>
using task_of = decltype(as_task(std::declval<Awaitable>()));

/// Destroys a task's frame at the end of the block that ran it.
template <class T>
struct frame_guard {
  std::coroutine_handle<task_promise<T>> frame;
  ~frame_guard() {
    if (frame) frame.destroy();
  }
};

}  // namespace weft::detail
