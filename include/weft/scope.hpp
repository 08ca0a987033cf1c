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

/// What with_scope gives to its callable: forks are started in it.
///
/// Threads   all members from the body and from what it awaits; also from its forks, on whatever thread. request_stop
///           from anywhere else, too, by whoever knows that the scope has not ended.
class scope : detail::scope_core {
 public:
  /// Starts a piece of work: a task, any other awaitable, or a function with its arguments, which are moved into the
  /// frame. The function may return something to await, or be a plain one.
  ///
  /// A fork may run at the same time as its parent, from the call on, unless its executor runs one job at a time. Nothing
  /// else is promised of when it begins: what must run here and now is forked by fork_here().
  ///
  ///     s.fork(serve(std::move(connection)));
  ///     auto total = s.fork(&sum, numbers);  // a plain function
  ///
  /// It inherits the env of the scope, not that of a with_* in between, which may end before it; and it must not refer to
  /// what ends before it.
  ///
  /// Fails   std::bad_alloc where there is no frame, errc::no_room beyond max_children; then nothing has started. What
  ///         the work throws is a failure of the scope, and of who awaits the fork.
  /// Cost    some 12 ns where it runs through, no allocation but its frame. One that waits, or is for others to take, needs
  ///         a record of 232 bytes, which the scope keeps for the next. Forks of forks nest on the machine's stack, 64 deep
  ///         at most; of a loop of forks, some dozens wait to be taken from a thread at most.
  template <class What, class... Args>
    requires detail::forkable<What, Args...>
  auto fork(What&& what, Args&&... args) {
    return start(as_work(std::forward<What>(what), std::forward<Args>(args)...));
  }
  template <class... Rest>
  void fork(detail::refused_work, Rest&&...);

  /// Forks, as fork() does, and runs the fork at once, on the caller's stack, up to its first wait. Until then it never runs
  /// beside its parent, on a pool of several threads neither. For work whose beginning has to come before what the parent
  /// does next: that takes a ticket, or gets in line.
  ///
  ///     auto first = s.fork_here(get_in_line, number);  // is in line when this returns
  ///
  /// Fails   as fork(); errc::no_room also 64 deep, where each is in the first run of the one before. Then it has not started.
  /// Cost    as fork(), without a pool's part in it.
  template <class What, class... Args>
    requires detail::forkable<What, Args...>
  auto fork_here(What&& what, Args&&... args) {
    return start_at_once(as_work(std::forward<What>(what), std::forward<Args>(args)...));
  }
  template <class... Rest>
  void fork_here(detail::refused_work, Rest&&...);

  /// The same as fork(), but `ex` runs it, from its beginning.
  template <class What, class... Args>
    requires detail::forkable<What, Args...>
  auto fork_on(executor& ex, What&& what, Args&&... args) {
    return start_on(ex, as_work(std::forward<What>(what), std::forward<Args>(args)...));
  }
  template <class... Rest>
  void fork_on(executor&, detail::refused_work, Rest&&...);

  /// Starts a fiber: the function is a plain one, has a stack of its own, and waits by weft::await, at any depth of calls.
  /// A fork like any other. In fiber.hpp, which is to be included.
  ///
  ///     auto total = s.go([&] { return w::await(first()) + w::await(second()); });
  ///
  /// Fails   as fork(); also throws what stack_pool::take does where there is no stack, and nothing has started. One that is
  ///         started again, where there is none for it then, fails.
  template <class F, class... Args>
    requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
  auto go(F&& f, Args&&... args);
  template <class F, class... Args>
    requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
  auto go(const stack_options& options, F&& f, Args&&... args);

  /// Tells the body and all forks to stop; false: they were told before. They are joined as always.
  bool request_stop(stop_cause cause = {}) noexcept { return scope_core::request_stop(cause); }
  bool stop_requested() const noexcept { return scope_core::stop_requested(); }

  /// How many forks have waited and not ended.
  std::size_t children() noexcept { return scope_core::children(); }

  /// Waits until fewer than max_children run, takes the place of one, and forks in it, as fork() does, which can't wait, and
  /// refuses instead.
  ///
  ///     w::fork<> one = co_await s.fork_when_room(serve, std::move(connection));  // in a fiber: w::await(…)
  ///
  /// Suspends  where there is no room; who waits gets it in order, and nobody else in between. Not where nothing limits
  ///           max_children.
  /// Cancel    while it waits: the work is destroyed, and has not started. A place that it was given it takes.
  /// Fails     std::bad_alloc, as fork(); then nothing has started, and the place is free.
  template <class What, class... Args>
    requires detail::forkable<What, Args...>
  WEFT_COROUTINE_TAKES_OVER auto fork_when_room(What&& what, Args&&... args) {
    if constexpr (!awaitable<What>) WEFT_EXPECTS_NO_DOOMED_TEMPORARY(What);
    return start_when_room(as_work(std::forward<What>(what), std::forward<Args>(args)...));
  }
  template <class... Rest>
  void fork_when_room(detail::refused_work, Rest&&...);

  /// `co_await s.room()` waits until fewer than max_children run. It takes no place: where others fork meanwhile, there may be
  /// none any more. See fork_when_room().
  task<> room() {
    while (!has_room()) co_await detail::room{*this};
  }

  /// Gives back what forks that ended have left with the scope for the next ones: records, and of the scope's memory one
  /// block of each size, and environments of fork_on. Frames went back when fork and handle were gone. Returns how many forks have ended and are kept
  /// by a handle or a view.
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
