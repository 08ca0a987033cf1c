// Scopes: nothing outlives its block. A scope has a body and its forks; it cannot be left before all of them have ended,
// also when the body throws or is stopped. The first failure stops the others, joins them, and is then thrown.
//
//     co_await w::with_scope([](w::scope& s) -> w::task<> {
//       w::fork<int> a = s.fork(first());       // may run beside this from here on
//       w::fork<int> b = s.fork(second, 2, 3);  // the function and its arguments are moved into the frame
//       use(co_await std::move(a), co_await std::move(b));
//     });  // whatever has not ended is waited for here
//
// The body is a root of its own (so it can be stopped when a fork fails), and a fork is one too. How they are kept, and
// what ends a scope, stands in scope/scope_core.hpp; the handles of forks are in fork.hpp.
//
// A scope ends with its failure, if there was one; else stopped, if its body was stopped, or a stop from outside ended any
// part of it; else with its body's value. Outside is the task that awaits the scope, and its own `.stop` and `.deadline`;
// inside are its request_stop(), a handle's, and a failure. A scope that was told to stop tells body and forks, and waits for
// them as always. See docs/design/0018-stopped-from-outside.md.
//
// Rejected: a scope as an object that is made and joined by hand: whoever forgets the join, or leaves by an exception,
// has orphans; a destructor can't wait.
#pragma once

#include <source_location>
#include <type_traits>
#include <utility>
#include <weft/detail/scope/fork_call.hpp>
#include <weft/detail/scope/scope_body.hpp>
#include <weft/detail/scope/scope_core.hpp>
#include <weft/fork.hpp>
#include <weft/scope_options.hpp>
#include <weft/task.hpp>

namespace weft {

struct stack_options;

/// What with_scope() passes to its callable, which starts forks in it.
///
/// Threads   the body, what it awaits, and the forks of the scope may call all members, on any thread. request_stop() may be
///           called from elsewhere, too, while the scope has certainly not ended.
class scope : detail::scope_core {
 public:
  /// Starts a piece of work: a task, any other awaitable, or a function with its arguments, which are moved into the
  /// frame. The function may return something to await, or be a plain one.
  ///
  /// The fork may run at the same time as its parent from this call on, unless its executor runs one job at a time. When it
  /// begins is not specified: use fork_here() for work that has to begin before the call returns.
  ///
  ///     s.fork(serve(std::move(connection)));
  ///     auto total = s.fork(&sum, numbers);  // a plain function
  ///
  /// The fork inherits the environment of the scope, not that of a with_* between the two, which may end before it. What it
  /// refers to outlives it.
  ///
  /// Fails   throws std::bad_alloc where there is no memory for its frame, and errc::no_room beyond max_children; nothing has
  ///         started then. What the work throws is a failure of the scope, and is thrown to whoever awaits the fork.
  /// Cost    some 12 ns for a fork that never waits, and no allocation but its frame. One that waits, or that another thread
  ///         may take, needs a record of 232 bytes, which the scope reuses. Forks of forks nest on the machine's stack, at most
  ///         64 deep; of a loop of forks at most some dozens wait on a thread to be taken by others.
  template <class What, class... Args>
    requires detail::forkable<What, Args...>
  auto fork(What&& what, Args&&... args) {
    return start(as_work(std::forward<What>(what), std::forward<Args>(args)...));
  }
  template <class... Rest>
  void fork(detail::refused_work, Rest&&...);
  template <int = 0>
  detail::void_is_no_awaitable fork(...);

  /// Forks, and runs the fork at once on the caller's stack, up to its first wait: until then it does not run at the same time
  /// as its parent, on no executor. For work whose beginning must come before what the parent does next, such as getting in
  /// line.
  ///
  ///     auto first = s.fork_here(get_in_line, number);  // is in line when this returns
  ///
  /// Fails   as fork(); with errc::no_room also where 64 such forks nest, each before the first wait of the one around it.
  ///         Nothing has started then.
  /// Cost    as fork(), without what a pool adds.
  template <class What, class... Args>
    requires detail::forkable<What, Args...>
  auto fork_here(What&& what, Args&&... args) {
    return start_at_once(as_work(std::forward<What>(what), std::forward<Args>(args)...));
  }
  template <class... Rest>
  void fork_here(detail::refused_work, Rest&&...);
  template <int = 0>
  detail::void_is_no_awaitable fork_here(...);

  /// The same as fork(), but the work runs on `ex`, from its beginning.
  template <class What, class... Args>
    requires detail::forkable<What, Args...>
  auto fork_on(executor& ex, What&& what, Args&&... args) {
    return start_on(ex, as_work(std::forward<What>(what), std::forward<Args>(args)...));
  }
  template <class... Rest>
  void fork_on(executor&, detail::refused_work, Rest&&...);

  /// Forks a fiber: a plain function that runs on its own stack, and waits by weft::await() at any depth of calls. Include
  /// fiber.hpp.
  ///
  ///     auto total = s.go([&] { return w::await(first()) + w::await(second()); });
  ///
  /// Fails   as fork(); also throws what stack_pool::take() throws where there is no stack, before anything has started. A
  ///         fiber that an error policy restarts, and that gets no stack then, fails.
  template <class F, class... Args>
    requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
  auto go(F&& f, Args&&... args);
  template <class F, class... Args>
    requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
  auto go(const stack_options& options, F&& f, Args&&... args);

  /// Tells the body and all forks to stop. They are joined as always. Gives false where they were told before.
  bool request_stop(stop_cause cause = {}) noexcept { return scope_core::request_stop(cause); }
  bool stop_requested() const noexcept { return scope_core::stop_requested(); }

  /// How many forks have suspended at least once and have not ended.
  std::size_t children() noexcept { return scope_core::children(); }

  /// Waits until fewer than max_children forks run, reserves a place, and forks. fork() itself does not wait, and fails
  /// instead.
  ///
  ///     w::fork<> one = co_await s.fork_when_room(serve, std::move(connection));  // in a fiber: w::await(…)
  ///
  /// Suspends  where there is no room. Waiters get places in the order in which they came, and fork() can't overtake them. Does
  ///           not suspend where max_children is not limited.
  /// Cancel    a call that is stopped while it waits destroys the work, which has not started. One that has got a place forks.
  /// Fails     with std::bad_alloc, as fork(); nothing has started then, and the place is free.
  template <class What, class... Args>
    requires detail::forkable<What, Args...>
  WEFT_COROUTINE_TAKES_OVER auto fork_when_room(What&& what, Args&&... args) {
    if constexpr (!awaitable<What>) WEFT_EXPECTS_NO_DOOMED_TEMPORARY(What);
    return start_when_room(as_work(std::forward<What>(what), std::forward<Args>(args)...));
  }
  template <class... Rest>
  void fork_when_room(detail::refused_work, Rest&&...);
  template <int = 0>
  detail::void_is_no_awaitable fork_when_room(...);

  /// `co_await s.room()` waits until fewer than max_children forks run. It reserves no place, so another fork may take it
  /// before this task goes on: fork_when_room() does reserve one.
  task<> room() {
    while (!has_room()) co_await detail::room{*this};
  }

  /// Frees what the scope keeps of ended forks for later ones: records, environments of fork_on(), and of the scope's memory
  /// one block of each size. (A fork's frame is freed once it has ended and its handle is gone.) Gives how many forks have
  /// ended and are still held by a handle or a view.
  std::size_t reclaim() noexcept { return scope_core::reclaim(); }

 private:
  friend detail::scope_access;

  using scope_core::scope_core;

  template <class What, class... Args>
  WEFT_COROUTINE_TAKES_OVER auto as_work(What&& what, Args&&... args) {
    if constexpr (sizeof...(Args) == 0 && awaitable<What>) {
      return detail::as_task(std::forward<What>(what));
    } else {
      using function = detail::callable<What>;
      if constexpr (std::is_copy_constructible_v<function> && (std::is_copy_constructible_v<std::decay_t<Args>> && ...))
        if (restarts())
          return detail::call_again_in_fork<function, std::decay_t<Args>...>(*this, std::forward<What>(what),
                                                                             std::forward<Args>(args)...);
      return detail::call_in_fork<function, std::decay_t<Args>...>(std::forward<What>(what),
                                                                   std::forward<Args>(args)...);
    }
  }

  template <class T>
  weft::fork<T> start(task<T> work) {
    const auto frame = detail::task_access::release(std::move(work));
    return started<T>(frame.promise(), scope_core::start(frame, frame.promise(), detail::failure_of<T>));
  }
  template <class T>
  weft::fork<T> start_here(task<T> work) {
    const auto frame = detail::task_access::release(std::move(work));
    return started<T>(frame.promise(), scope_core::start_here(frame, frame.promise(), detail::failure_of<T>));
  }
  template <class T>
  weft::fork<T> start_at_once(task<T> work) {
    const auto frame = detail::task_access::release(std::move(work));
    return started<T>(frame.promise(), scope_core::start_at_once(frame, frame.promise(), detail::failure_of<T>));
  }
  template <class T>
  task<weft::fork<T>> start_when_room(task<T> work) {
    if (!is_limited()) co_return start(std::move(work));
    co_await detail::room{*this, true};
    const auto frame = detail::task_access::release(std::move(work));
    co_return started<T>(frame.promise(), scope_core::start_in_place(frame, frame.promise(), detail::failure_of<T>));
  }
  template <class T>
  weft::fork<T> started(detail::task_promise<T>& promise, std::uintptr_t word) {
    if ((word & 1) == 0) {
      if (promise.is_exception()) [[unlikely]]
        failed(static_cast<detail::fork_record&>(*promise.owner), promise.exception());
      promise.owner = &body();  // the record that it ran in is others' now
    }
    return detail::scope_access::make<T>(word);
  }
  template <class T>
  weft::fork<T> start_on(executor& ex, task<T> work) {
    const auto frame = detail::task_access::release(std::move(work));
    return detail::scope_access::make<T>(scope_core::start_on(ex, frame, frame.promise(), detail::failure_of<T>));
  }
};

// ---- with_scope -------------------------------------------------------------------------------------------------------

/// Runs `callable(scope&, args...)`, which returns something to await, and joins what was forked in the scope.
///
///     co_await with_scope({.memory = &arena}, [](scope& s, request r) -> task<> { … }, std::move(request));
///
/// Gives what the body gives. A member function is given its object first: `with_scope(&server::run, this)` calls
/// `this->run(scope&)`.
///
/// Suspends  until body and forks have ended, however they end.
/// Cancel    a stop goes to the body and to all forks, and they are joined. One from outside (of the task that awaits this, by
///           `.stop` or `.deadline`) that ended a fork or the body ends this stopped, and the body's value is destroyed; one
///           from inside (by request_stop, a handle, a failure) that ended forks alone leaves the value. Who wants what there
///           is by then forks `as_result(…)`.
/// Fails     throws the first failure of the body or of a fork, if there is one (see error_policy.hpp for
///           other policies); later ones are in `.errors`. Else ends stopped if the body did, or as said above.
/// Memory    with `.memory`, all frames below come from there, the body's and the records of forks, too. One that is
///           alive at the end ends the program with a sentence.
/// Cost      its frame has 1 KiB; no atomic read-modify-write but its lock, once, where body and forks run through.
template <class F, class... Args>
  requires(!std::is_same_v<std::remove_cvref_t<F>, scope_options>)
WEFT_COROUTINE_TAKES_OVER task<detail::body_result<F, Args...>> with_scope(scope_options options, F&& callable,
                                                                           Args&&... args) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
  WEFT_EXPECTS(options.max_children != 0, "a scope with max_children = 0 was asked for: it could fork nothing");
  WEFT_EXPECTS(options.stop_within >= options.stop_within.zero(), "a scope was given a stop_within below zero");
  return detail::scope_access::run<detail::body_result<F, Args...>, detail::scope_body<F>, std::decay_t<Args>...>(
      options, nullptr, std::forward<F>(callable), std::forward<Args>(args)...);
}
template <class F>
  requires std::is_invocable_v<detail::scope_body<F>, scope&>
WEFT_COROUTINE_TAKES_OVER task<detail::body_result<F>> with_scope(
    F&& callable, std::source_location where = std::source_location::current()) {
  WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
  return detail::scope_access::run<detail::body_result<F>, detail::scope_body<F>>({.where = where}, nullptr,
                                                                                  std::forward<F>(callable));
}
template <class F, class Arg, class... Args>
  requires std::is_invocable_v<detail::scope_body<F>, scope&, std::decay_t<Arg>, std::decay_t<Args>...>
WEFT_COROUTINE_TAKES_OVER task<detail::body_result<F, Arg, Args...>> with_scope(F&& callable, Arg&& arg,
                                                                                Args&&... args) {
  return with_scope(scope_options{}, std::forward<F>(callable), std::forward<Arg>(arg), std::forward<Args>(args)...);
}

// ---- implementation -----------------------------------------------------------------------------------------------------

namespace detail {

template <class R, class F, class... Args>
task<R> scope_access::run(scope_options options, const env* exactly, F f, Args... args) {
  scope here{options, exactly};
  scope_core& core = here;
  struct guard {
    scope_core& of;
    std::coroutine_handle<task_promise<R>> frame{};
    ~guard() {  // also where a stop unwinds this coroutine
      if (frame && !of.body_was_unwound()) frame.destroy();
    }
  } body{core};
  {
    const ambient_memory of_scope{core.frames()};
    body.frame = task_access::release(call_body<R, F, Args...>(here, f, args...));
  }
  core.adopt_body(body.frame, body.frame.promise(), failure_of<R>);
  co_await scope_run{core};
  core.throw_failure();
  co_return body.frame.promise().take();
}

}  // namespace detail

template <class T>
weft::fork<T> detail::scope_access::fork_here(scope& in, task<T> work) {
  return in.start_here(std::move(work));
}

}  // namespace weft
