// Why a function does not take what it is to await, in a sentence instead of a list of candidates. Part of task.hpp.
//
// Each such function has one overload more, without a body, whose argument is a refused<…>: what fits no other overload is
// converted to that, by a constructor that is deleted with the sentence. A conversion is worse than any other match but an
// ellipsis, so a program's own function of the same name is called; where that converts all arguments, too, it wins if it is
// no template, since the overload is one: hence `template <int = 0>`. And since the constructor is deleted,
// `requires { w::sync_wait(x); }` is false, as without it.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>
#include <weft/detail/core/root.hpp>
#include <weft/detail/task/as_task.hpp>

namespace weft::detail {

/// What a function takes that awaits it: an awaitable, but no task that its caller keeps, as an lvalue or as const.
template <class Awaitable>
concept awaitable_argument =
    (is_task<std::remove_cvref_t<Awaitable>> ? std::is_same_v<Awaitable&&, std::remove_cvref_t<Awaitable>&&>
                                             : detail::awaitable<Awaitable>);

/// A function that was not called. No template, whose body might not be valid without arguments.
template <class F>
concept gives_awaitable = (std::is_function_v<std::remove_pointer_t<std::remove_cvref_t<F>>> || requires {
                            &std::remove_cvref_t<F>::operator();
                          }) && std::is_invocable_v<F> && awaitable_argument<std::invoke_result_t<F>>;

/// Why something is not taken. `kept`: it would be, as an rvalue that is not const.
enum class refusal {
  none,
  kept_task,
  kept,
  sender,
  function,
  not_awaitable,  // of one awaitable
  kept_tasks,
  elements,
  not_a_range,
  range_beside_others,  // of a range
  make,
  work
};

/// What refused<> says, where one awaitable is wanted.
struct one_is_awaited {
  /// `T`: an argument of `T&&` was deduced so.
  template <class T>
  static constexpr refusal why() {
    if constexpr (awaitable_argument<T>)
      return refusal::none;
    else if constexpr (is_task<std::remove_cvref_t<T>>)
      return refusal::kept_task;
    else if constexpr (is_kept<T>)
      return refusal::kept;
    else if constexpr (is_sender<T>)
      return refusal::sender;
    else if constexpr (gives_awaitable<T>)
      return refusal::function;
    else
      return refusal::not_awaitable;
  }
  static constexpr bool converts_others = false;
};

/// Says that an argument was left out. An argument of its own, so that `{}` is none.
enum class not_given { it_is };

#if defined(__clang__) && __clang_major__ >= 19
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wc++26-extensions"
#define WEFT_REFUSES(sentence) = delete (sentence)
#else
#define WEFT_REFUSES(sentence) = delete  // the compiler quotes the line
#endif

/// An argument of such an overload. `Wanted` says why it does not take a type. Where there are several arguments, those that
/// would be taken convert, so that the compiler points to the one that would not.
template <class Wanted = one_is_awaited>
class refused {
  template <class T, refusal Why>
  static constexpr bool why_is = Wanted::template why<T>() == Why;

 public:
  refused(not_given);  // NOLINT(google-explicit-constructor)
  template <class T>
    requires(Wanted::converts_others && why_is<T, refusal::none>)
  refused(T&&);  // NOLINT(google-explicit-constructor)

  // clang-format off: each sentence stands on the line of its constructor
  template <class T> requires why_is<T, refusal::kept_task>
  refused(T&&) WEFT_REFUSES("a task is awaited once, as an rvalue: pass std::move(t)");
  template <class T> requires why_is<T, refusal::kept>
  refused(T&&) WEFT_REFUSES("this is awaited as an rvalue that is not const: pass std::move(x)");
  template <class T> requires why_is<T, refusal::sender>
  refused(T&&) WEFT_REFUSES("a sender is no awaitable: pass weft::from_sender(s), of weft/senders.hpp");
  template <class T> requires why_is<T, refusal::function>
  refused(T&&) WEFT_REFUSES("a function is no awaitable, but what it gives is: call it, f()");
  template <class T> requires why_is<T, refusal::not_awaitable>
  refused(T&&) WEFT_REFUSES("this can't be awaited: it has neither operator co_await nor await_ready() and await_resume()");
  template <class T> requires why_is<T, refusal::kept_tasks>
  refused(T&&) WEFT_REFUSES("tasks are awaited once, as rvalues: pass std::move(tasks)");
  template <class T> requires why_is<T, refusal::elements>
  refused(T&&) WEFT_REFUSES("the elements of this range can't be awaited");
  template <class T> requires why_is<T, refusal::not_a_range>
  refused(T&&) WEFT_REFUSES("a range of awaitables is taken here, and this is no range");
  template <class T> requires why_is<T, refusal::range_beside_others>
  refused(T&&) WEFT_REFUSES("a range of awaitables stands alone, or before where its values go");
  template <class T> requires why_is<T, refusal::make>
  refused(T&&) WEFT_REFUSES("make(0) to make(n - 1) are awaited, and what this function gives can't be");
  template <class T> requires why_is<T, refusal::work>
  refused(T&&) WEFT_REFUSES("a fork takes an awaitable, or a function with arguments that it takes as rvalues");
  // clang-format on
};
#undef WEFT_REFUSES
#if defined(__clang__) && __clang_major__ >= 19
#pragma clang diagnostic pop
#endif

/// Other arguments of such an overload: whatever it is, and what converts to `To`.
struct whatever {
  whatever(not_given);  // NOLINT(google-explicit-constructor)
  template <class T>
  whatever(T&&);  // NOLINT(google-explicit-constructor)
};
template <class To>
struct given {
  template <class T>
    requires std::is_convertible_v<T, To>
  given(T&&);  // NOLINT(google-explicit-constructor)
};

/// What such a function gives where an argument is of type void, which no other overload can take: only an ellipsis does.
/// Without that overload clang lists all candidates. The type is incomplete, so the call is no valid expression either.
struct void_is_no_awaitable;  // a call that gives void can't be awaited. Or another argument is not what it takes
/// Likewise what when_any() gives.
struct race_of_nothing;  // when_any of nothing would never end

}  // namespace weft::detail
