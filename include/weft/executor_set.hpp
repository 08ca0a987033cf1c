// Several executors for one piece of work, each of a type of its own, by which it is found: a pool for computation, a worker
// for data that belongs to one thread, and the like.
//
//     w::executor_set places{compute, disk};
//     co_await w::with_executors(places, serve);
//     co_await w::resume_on(w::executor_of<disk_pool>());  // in serve, and all that it calls
//
// Work still runs on the one executor of its env; a set says where else it may go by resume_on().
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <weft/detail/base/invoke.hpp>
#include <weft/detail/pool/typed_executors.hpp>
#include <weft/env.hpp>
#include <weft/executor.hpp>
#include <weft/with.hpp>

namespace weft {

namespace detail { struct executor_set_access; }

/// An executor, or a class that has one, as a pool does.
template <class E>
concept executor_or_owner = (std::derived_from<E, executor> && !std::is_const_v<E>) || requires(E& one) {
  { one.executor() } -> std::same_as<executor&>;
};

/// A set of executors, one of each type. For two of the same kind, derive types of their own: `struct disk_pool : w::pool {
/// using pool::pool; };`.
///
///     w::executor_set places{compute, disk};
///     co_await w::with_executors(places, serve);  // in serve, and below: co_await w::resume_on(w::executor_of<disk_pool>())
///
/// Lifetime  refers to the executors, which outlive it and its copies.
template <executor_or_owner... E>
class executor_set {
  template <class Other>
  static constexpr std::size_t how_many =
      (std::size_t{std::same_as<std::remove_const_t<Other>, std::remove_const_t<E>>} + ... + 0);
  static_assert(((how_many<E> == 1) && ...),
                "an executor_set has one executor of each type: give the second one a type of its own");

 public:
  /// Refers to these executors, one of each type.
  explicit executor_set(E&... each) noexcept
      : all_{detail::typed_executor{detail::type_of_executor<E>(), &detail::as_executor(each)}...} {}

  /// The executor of type `Wanted`, which is one of `E`.
  template <class Wanted>
    requires(how_many<Wanted> == 1)
  executor& get() const noexcept {
    for (const detail::typed_executor& one : all_)
      if (one.type == detail::type_of_executor<Wanted>()) return *one.one;
    return *all_.front().one;  // not reached
  }

 private:
  friend struct detail::executor_set_access;
  std::array<detail::typed_executor, sizeof...(E)> all_;
};

namespace detail {

struct executor_set_access {
  template <class Set>
  static typed_executors list(const Set& set) noexcept {
    return {set.all_.data(), set.all_.size(), bound_executors()};
  }
};

template <class R, class Set, class F, class... Args>
task<R> run_with_executors(Set set, F f, Args... args) {
  const typed_executors bound = executor_set_access::list(set);
  changed_env changed;
  const binding here{&executors_key, &bound, changed.now.locals};
  changed.now.locals = &here;
  changed.apply();
  co_return co_await std::move(f)(std::move(args)...);
}

}  // namespace detail

/// Awaits `callable(args...)`, and has executor_of<E>() give the executors of `set` to all work below it. Where that runs does
/// not change.
///
/// Cost  that of two awaits.
template <class... E, class F, class... Args>
  requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
WEFT_COROUTINE_TAKES_OVER auto with_executors(const executor_set<E...>& set, F&& callable, Args&&... args) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
  return detail::run_with_executors<detail::with_result<F, Args...>, executor_set<E...>, detail::callable<F>,
                                    std::decay_t<Args>...>(set, std::forward<F>(callable), std::forward<Args>(args)...);
}

/// The executor of type E that the innermost with_executors() around the running task has bound, of those with that type. If
/// there is none, it ends the program with a sentence. Cost: a call, and a step for each type in the sets that are searched.
template <executor_or_owner E>
executor& executor_of() noexcept {
  return detail::bound_executor(detail::type_of_executor<E>());
}

/// The same, but gives null if none is bound.
template <executor_or_owner E>
executor* find_executor() noexcept {
  return detail::find_typed_executor(detail::type_of_executor<E>());
}

}  // namespace weft
