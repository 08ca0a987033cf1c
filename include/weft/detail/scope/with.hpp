// Environments, stops and deadlines of a block. Part of with.hpp.
#pragma once

#include <source_location>
#include <type_traits>
#include <utility>
#include <weft/clock.hpp>
#include <weft/detail/base/config.hpp>
#include <weft/detail/base/duration.hpp>
#include <weft/detail/base/forward.hpp>
#include <weft/detail/base/standard.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/env.hpp>
#include <weft/scope.hpp>
#include <weft/task.hpp>

namespace weft::detail {

/// The env of the running root, changed until the end of the block that has this.
class changed_env {
 public:
  changed_env() noexcept;
  changed_env(const changed_env&) = delete;
  ~changed_env();

  weft::env now;  // a copy of the outer one, to be changed before apply()
  void apply() noexcept;

 private:
  root& self_;
  const weft::env* outer_;
};

/// The running root, shielded until the end of the block that has this.
class shield_guard {
 public:
  shield_guard() noexcept : self_{own_root()}, was_shielded_{self_.shield(true)} {}
  shield_guard(const shield_guard&) = delete;
  ~shield_guard() { self_.shield(was_shielded_); }

 private:
  root& self_;
  bool was_shielded_;
};

template <class F, class... Args>
using with_result = await_result<std::invoke_result_t<std::decay_t<F>, std::decay_t<Args>...>>;

template <class R, class F, class... Args>
task<R> run_with_memory(std::pmr::memory_resource* resource, bool shared, F f, Args... args) {
  frame_source frames{resource, shared};
  changed_env changed;
  changed.now.memory = resource;
  changed.now.memory_is_shared = shared;
  changed.now.frames = &frames;
  changed.apply();
  co_return co_await std::move(f)(std::move(args)...);
}

template <class R, class T, class F, class... Args>
task<R> run_with_local(const local<T>* key, T value, F f, Args... args) {
  changed_env changed;
  const binding here{key, &value, changed.now.locals};
  changed.now.locals = &here;
  changed.apply();
  co_return co_await std::move(f)(std::move(args)...);
}

/// A callable as the body of a scope that nobody forks in.
template <class F>
struct without_scope {
  F f;
  template <class... Args>
    requires std::is_invocable_v<F, Args...>
  WEFT_COROUTINE_TAKES_OVER auto operator()(scope&, Args&&... args) {
    return std::move(f)(std::forward<Args>(args)...);
  }
};

/// A time, and the line that names it.
struct deadline_here {
  template <class Duration>
  deadline_here(std::chrono::time_point<std::chrono::steady_clock, Duration> at,  // NOLINT: with_deadline(at, f)
                std::source_location named = std::source_location::current()) noexcept
      : when{saturated(at)}, where{named} {}
  template <class Rep, class Period>
  deadline_here(std::chrono::duration<Rep, Period> from_now,  // NOLINT: with_deadline(5s, f)
                std::source_location named = std::source_location::current()) noexcept
      : when{later(current_clock().now(), saturated(from_now))}, where{named} {}

  clock::time_point when;
  std::source_location where;
};

/// The source of the task outside, if it has no memory of its own, but is traced; else null.
frame_source* frames_that_only_count() noexcept;

/// What a scope is given for an env: the env itself, and what the scope has to make or to listen to.
scope_options options_for(const weft::env& wanted) noexcept;

template <class R, class F, class... Args>
task<R> run_with_env(weft::env wanted, F f, Args... args) {
  const scope_options options = options_for(wanted);
  if (options.memory == nullptr && wanted.memory == nullptr) wanted.frames = frames_that_only_count();
  without_scope<F> body{std::move(f)};
  auto work = scope_access::run<R, without_scope<F>, Args...>(options, &wanted, std::move(body), std::move(args)...);
  co_return co_await std::move(work);
}

template <class T>
task<T> run_shielded(task<T> work) {
  const shield_guard shielded;
  co_return co_await std::move(work);
}

struct WEFT_TO_BE_AWAITED("a task ends here when it awaits this") stop_point : knows_roots {
  bool await_ready() const noexcept;
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> self) const noexcept {
    end_stopped(suspending(self));
  }
  void await_resume() const noexcept {}
};

}  // namespace weft::detail
