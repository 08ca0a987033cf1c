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
// what ends a scope, stands in scope/fork.hpp.
//
// A scope ends with its failure, if there was one; else stopped, if its body was stopped, or a stop from outside ended any
// part of it; else with its body's value. Outside is the task that awaits the scope, and its own `.stop` and `.deadline`;
// inside are its request_stop(), a handle's, and a failure. A scope that was told to stop tells body and forks, and waits for
// them as always. See docs/design/0018-stopped-from-outside.md.
//
// Long because a scope, its forks and their handles name each other.
//
// Rejected: a scope as an object that is made and joined by hand: whoever forgets the join, or leaves by an exception,
// has orphans; a destructor can't wait.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>
#include <vector>
#include <weft/detail/base/invoke.hpp>
#include <weft/detail/scope/fork.hpp>

namespace weft {

class scope;
struct stack_options;
template <class T>
class fork;
template <class T>
class fork_view;

namespace detail {

struct scope_access;

// ---- what a handle refers to ----------------------------------------------------------------------------------------

/// The word of a handle: see scope/fork.hpp.
class fork_word {
 public:
  explicit fork_word(std::uintptr_t word = 0) noexcept : word_{word} {}

  explicit operator bool() const noexcept { return word_ != 0; }
  bool has_record() const noexcept { return (word_ & 1) != 0; }
  /// Where it has one.
  fork_record& record() const noexcept { return *reinterpret_cast<fork_record*>(word_ - 1); }
  std::coroutine_handle<> frame() const noexcept {
    if (has_record()) [[unlikely]]
      return record().frame();
    return std::coroutine_handle<>::from_address(reinterpret_cast<void*>(word_));
  }
  std::uintptr_t value() const noexcept { return word_; }

 private:
  std::uintptr_t word_;
};

[[noreturn]] void fail_empty_fork() noexcept;
[[noreturn]] void fail_shared_fork() noexcept;

template <class T>
task_promise<T>& promise_of(fork_word of) noexcept {
  return std::coroutine_handle<task_promise<T>>::from_address(of.frame().address()).promise();
}

/// A handle is gone; `awaited`: by an await that has taken the value.
template <bool awaited = false>
inline void release(fork_word of) noexcept {
  if (!of) return;
  if (of.has_record()) [[unlikely]]
    awaited ? of.record().of().drop_awaited(of.record()) : of.record().of().drop(of.record());
  else
    std::coroutine_handle<>::from_address(reinterpret_cast<void*>(of.value())).destroy();
}

/// Waits for a fork to end. Most have, and then there is nothing of a wait but the word.
class fork_wait {
 public:
  explicit fork_wait(fork_word of) noexcept : of_{of} {
    if (!of_) [[unlikely]]
      fail_empty_fork();
  }
  fork_wait(const fork_wait&) = delete;

  bool await_ready() const noexcept {
    if (!of_.has_record()) [[likely]]
      return true;
    fork_record& one = of_.record();
    return has_result(one) || (one.of().take_back(one) && has_result(one));
  }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    return suspend(suspending(caller));
  }

 protected:
  fork_word of_;

 private:
  static bool has_result(const fork_record& of) noexcept {
    const fork_status seen = of.status();
    return seen == fork_status::succeeded || seen == fork_status::failed;
  }

  class sleeping : public waiter {
   public:
    explicit sleeping(fork_record& what) noexcept : waiter{type}, of{what} {}
    static on_stop leave(waiter& self) noexcept;
    static void tell(const waiter& self, const char* what, wait_subjects& into) noexcept {
      const sleeper& runs = static_cast<const sleeping&>(self).of;
      into.add(what, &runs, &runs);
    }
    static constexpr wait_type type{.leave = leave, .name = "fork", .tell = tell};
    fork_record& of;
  };

  bool suspend(root& self) noexcept;

  std::optional<sleeping> in_line_;  // from suspend() on
};

/// `co_await std::move(f)`: moves the value out.
template <class T>
class fork_taker : public fork_wait {
 public:
  using fork_wait::fork_wait;
#if WEFT_DESTROYS_TEMPORARIES_TWICE
  WEFT_PER_AWAIT ~fork_taker() { release<true>(std::exchange(this->of_, fork_word{})); }
#else
  WEFT_PER_AWAIT ~fork_taker() { release<true>(this->of_); }
#endif

  T await_resume() {
    if (!this->of_.has_record()) [[likely]]
      return std::coroutine_handle<task_promise<T>>::from_address(reinterpret_cast<void*>(this->of_.value()))
          .promise()
          .take();
    fork_record& one = this->of_.record();
    task_promise<T>& promise = promise_of<T>(this->of_);
    if (one.status() == fork_status::failed) rethrow(promise.exception());  // others get it, too
    if (!one.of().is_only_holder(one)) fail_shared_fork();
    return promise.take();
  }
};

/// `co_await f`, of a fork that stays, or of a view.
template <class T, bool constant>
class fork_reader : public fork_wait {
 public:
  using fork_wait::fork_wait;

  decltype(auto) await_resume() {
    task_promise<T>& promise = promise_of<T>(this->of_);
    if (promise.is_exception()) rethrow(promise.exception());
    if constexpr (std::is_reference_v<T>)
      return static_cast<T>(*promise.value());
    else if constexpr (!std::is_void_v<T>)
      return static_cast<std::conditional_t<constant, const T&, T&>>(promise.value());
  }
};

}  // namespace detail

// ---- fork -------------------------------------------------------------------------------------------------------------

/// A piece of work that a scope runs beside its body. Move-only; dropped, it runs on, and its scope waits for it.
///
///     int n = co_await std::move(f);  // the value, moved out
///     int& n = co_await f;            // the value, which stays in the fork
///     w::fork_view<int> v = f.view(); // for any number of others: co_await v gives a const int&
///
/// Suspends  until it has ended.
/// Cancel    whoever waits leaves; the fork runs on. If the fork ended stopped, so does who awaits it.
/// Fails     throws what the fork threw: everybody who awaits it gets the same exception.
/// Lifetime  inside its scope; one that is kept beyond that ends the program with a sentence where it is seen.
/// Threads   a handle is used by one thread at a time; request_stop, done and status also while the fork runs elsewhere.
/// Cost      its frame is given back when it has ended and its handle is gone.
template <class T = void>
class fork : public detail::knows_roots {
 public:
  using value_type = T;

  fork() noexcept = default;  ///< empty: not to be awaited
  fork(fork&& other) noexcept : word_{std::exchange(other.word_, detail::fork_word{})} {}
  fork& operator=(fork&& other) noexcept {
    std::swap(word_, other.word_);
    return *this;
  }
  ~fork() { release(std::exchange(word_, detail::fork_word{})); }

  /// Whether there is something to await.
  explicit operator bool() const noexcept { return static_cast<bool>(word_); }

  /// Whether it has ended. It may have been a moment ago that it had not.
  bool done() const noexcept { return status() != fork_status::running; }

  fork_status status() const noexcept {
    if (!word_) detail::fail_empty_fork();
    if (word_.has_record()) return word_.record().status();
    return detail::promise_of<T>(word_).is_exception() ? fork_status::failed : fork_status::succeeded;
  }

  /// Tells it to stop: now if it waits, else at its next wait.
  void request_stop(stop_cause cause = {}) noexcept {
    if (!word_) detail::fail_empty_fork();
    if (word_.has_record()) word_.record().request_stop_because(cause);
  }

  /// Another look at its result, to be copied at will. Throws std::bad_alloc. Cost: the first one needs a record, if the
  /// fork has none.
  fork_view<T> view();

 private:
  friend scope;
  friend detail::scope_access;

  explicit fork(std::uintptr_t word) noexcept : word_{word} {}

  detail::fork_word word_;
};

/// Looks at the result of a fork: `const T& value = co_await view`. Copyable; for work that several others need.
///
///     auto parsed = s.fork(parse, file).view();
///     s.fork(index, parsed);  s.fork(check, parsed);  // both await the one
///
/// As a fork, otherwise. Lifetime: inside its scope, which ends the program with a sentence if a view is left.
template <class T = void>
class fork_view : public detail::knows_roots {
 public:
  using value_type = T;

  fork_view() noexcept = default;  ///< empty
  fork_view(const fork_view& other) noexcept : of_{other.of_} {
    if (of_ != nullptr) of_->of().retain(*of_);
  }
  fork_view(fork_view&& other) noexcept : of_{std::exchange(other.of_, nullptr)} {}
  fork_view& operator=(fork_view other) noexcept {
    std::swap(of_, other.of_);
    return *this;
  }
  ~fork_view() {
    if (auto* mine = std::exchange(of_, nullptr)) mine->of().drop(*mine);
  }

  explicit operator bool() const noexcept { return of_ != nullptr; }
  bool done() const noexcept { return status() != fork_status::running; }
  fork_status status() const noexcept {
    if (of_ == nullptr) detail::fail_empty_fork();
    return of_->status();
  }

 private:
  friend class fork<T>;
  friend detail::scope_access;

  explicit fork_view(detail::fork_record& of) noexcept : of_{&of} { of.of().retain(of); }

  detail::fork_record* of_ = nullptr;
};

namespace detail {

template <class T>
inline constexpr bool keeps_its_value<fork_view<T>> = true;

struct scope_access {
  template <class R, class F, class... Args>
  static task<R> run(scope_options options, const env* exactly, F f, Args... args);

  /// A fork that runs here and now, also on a pool; where scope::fork_here throws, when the forkers have suspended.
  template <class T>
  static weft::fork<T> fork_here(scope& in, task<T> work);

  template <class T>
  static weft::fork<T> make(std::uintptr_t word) noexcept {
    return weft::fork<T>{word};
  }
  template <class T>
  static fork_word take(weft::fork<T>& from) noexcept {
    return std::exchange(from.word_, fork_word{});
  }
  template <class T>
  static fork_word word_of(const weft::fork<T>& of) noexcept {
    return of.word_;
  }
  template <class T>
  static fork_word word_of(const fork_view<T>& of) noexcept {
    return fork_word{of.of_ != nullptr ? reinterpret_cast<std::uintptr_t>(of.of_) + 1 : 0};
  }
};

}  // namespace detail

template <class T>
detail::fork_taker<T> operator co_await(fork<T>&& work) noexcept {
  return detail::fork_taker<T>{detail::scope_access::take(work)};
}
template <class T>
detail::fork_reader<T, false> operator co_await(fork<T>& work) noexcept {
  return detail::fork_reader<T, false>{detail::scope_access::word_of(work)};
}
template <class T>
detail::fork_reader<T, true> operator co_await(const fork_view<T>& view) noexcept {
  return detail::fork_reader<T, true>{detail::scope_access::word_of(view)};
}

template <class T>
fork_view<T> fork<T>::view() {
  if (!word_) detail::fail_empty_fork();
  if (!word_.has_record()) {
    detail::scope_core& in = detail::scope_core::of_one_that_ran_through(*detail::promise_of<T>(word_).owner);
    word_ = detail::fork_word{reinterpret_cast<std::uintptr_t>(&in.share(word_.value(), detail::failure_of<T>)) + 1};
  }
  return fork_view<T>{word_.record()};
}

// ---- scope ------------------------------------------------------------------------------------------------------------

namespace detail {

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
  static constexpr wait_type type{.leave = leave, .name = "room for one more fork in a scope", .tell = tell};
  scope_core& of_;
};
struct room : knows_roots {
  scope_core& of;
  bool takes_place;
  explicit room(scope_core& scope, bool takes = false) noexcept : of{scope}, takes_place{takes} {}
  room_wait operator co_await() const noexcept { return room_wait{of, takes_place}; }
};

}  // namespace detail

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
  ///         a record of 224 bytes, which the scope keeps for the next. Forks of forks nest on the machine's stack, 64 deep
  ///         at most; of a loop of forks, some dozens wait to be taken from a thread at most.
  template <class What, class... Args>
    requires(sizeof...(Args) == 0 && awaitable<What>) || std::is_invocable_v<std::decay_t<What>, std::decay_t<Args>...>
  auto fork(What&& what, Args&&... args) {
    return start(as_work(std::forward<What>(what), std::forward<Args>(args)...));
  }

  /// Forks, as fork() does, and runs the fork at once, on the caller's stack, up to its first wait. Until then it never runs
  /// beside its parent, on a pool of several threads neither. For work whose beginning has to come before what the parent
  /// does next: that takes a ticket, or gets in line.
  ///
  ///     auto first = s.fork_here(get_in_line, number);  // is in line when this returns
  ///
  /// Fails   as fork(); errc::no_room also 64 deep, where each is in the first run of the one before. Then it has not started.
  /// Cost    as fork(), without a pool's part in it.
  template <class What, class... Args>
    requires(sizeof...(Args) == 0 && awaitable<What>) || std::is_invocable_v<std::decay_t<What>, std::decay_t<Args>...>
  auto fork_here(What&& what, Args&&... args) {
    return start_at_once(as_work(std::forward<What>(what), std::forward<Args>(args)...));
  }

  /// The same as fork(), but `ex` runs it, from its beginning.
  template <class What, class... Args>
    requires(sizeof...(Args) == 0 && awaitable<What>) || std::is_invocable_v<std::decay_t<What>, std::decay_t<Args>...>
  auto fork_on(executor& ex, What&& what, Args&&... args) {
    return start_on(ex, as_work(std::forward<What>(what), std::forward<Args>(args)...));
  }

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
    requires(sizeof...(Args) == 0 && awaitable<What>) || std::is_invocable_v<std::decay_t<What>, std::decay_t<Args>...>
  WEFT_COROUTINE_TAKES_OVER auto fork_when_room(What&& what, Args&&... args) {
    if constexpr (!awaitable<What>) WEFT_EXPECTS_NO_DOOMED_TEMPORARY(What);
    return start_when_room(as_work(std::forward<What>(what), std::forward<Args>(args)...));
  }

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

template <class T>
weft::fork<T> detail::scope_access::fork_here(scope& in, task<T> work) {
  return in.start_here(std::move(work));
}

// ---- with_scope -------------------------------------------------------------------------------------------------------

namespace detail {

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

}  // namespace weft
