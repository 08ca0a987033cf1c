// The root, which is the unit that weft schedules, stops, lists and names in messages; and the frames inside it.
//
// A root is one line of execution: a sync_wait, a start, a child of when_all, a fork. Inside it coroutines call each
// other by transfer; exactly one frame is innermost. A frame's promise knows its continuation and its root, no more.
//
//   who        reads and writes                       when
//   top        the thread that runs the root          see below
//   env        the thread that runs the root          changed by with_* and hops
//   sleeper    see waiter.hpp                         any thread, through its word
//
// `top` is the frame that started last, and where a suspended root resumes. A task stores itself when it starts, a leaf when
// it suspends; code that destroys a frame stores the frame that awaited it. `top` may be a callee that has ended and is not
// destroyed yet, since the awaiting expression has not ended or the callee lies in its caller's frame. Readers skip such a
// frame: its resume function is null. Stores at both start and return cost 11 % of the chain workload where the caller made
// them, since it then could not jump to its callee directly, and 7 % where the callee did. The one store at the start costs
// 1 %.
//
// Stopped is the third completion, and no exception. A leaf that ends stopped leaves its frame suspended and tells the
// run loop, which destroys frames from the innermost outward, in a loop: a frame whose callee was just destroyed finds
// that in its worker (`unwound`) and does not destroy it again. The loop ends at a boundary, a frame made by hand that
// catches the stop: the end of a root, as_result, a cleanup.
//
// Long because what a root is, and what each await in it goes through, are one mechanism.
//
// Rejected: (a) stop as an exception: over 1 us a level, and `catch (...)` swallows it. (b) A link {parent, child} in
// the awaiter, so that the loop could flag the owner directly: it lies between every return and its target, and cost
// 24.1 -> 50.2 ns a level where frames are not elided.
#pragma once

#include <coroutine>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <weft/detail/core/waiter.hpp>
#include <weft/detail/memory/frame_memory.hpp>
#include <weft/env.hpp>

namespace weft::detail {

class root;

/// What both compilers put at the front of a coroutine's frame, and what a frame made by hand must have there.
struct frame {
  void (*resume)(frame*);
  void (*destroy)(frame*);

  std::coroutine_handle<> handle() noexcept { return std::coroutine_handle<>::from_address(this); }
};

/// A coroutine_handle as an integer. The compiler must assume that a store of a pointer changes any other pointer: after a
/// task has stored itself in `top`, it would load `owner` again at its next call (chain: 6 % with a pointer here, 1 % with
/// this).
class frame_address {
 public:
  frame_address() = default;
  template <class Promise>
  frame_address(std::coroutine_handle<Promise> of) noexcept : number_{reinterpret_cast<std::uintptr_t>(of.address())} {}

  operator std::coroutine_handle<>() const noexcept {
    return std::coroutine_handle<>::from_address(reinterpret_cast<void*>(number_));
  }

 private:
  std::uintptr_t number_ = 0;
};

/// Base of the promise of every coroutine that runs in a root. It stands right behind the two words of the frame
/// (promises are aligned to 16 at most), so any frame's can be found without knowing its type.
struct promise_base : promise_allocated {
  std::coroutine_handle<> continuation;
  root* owner = nullptr;  // null: not started

  static promise_base& of(std::coroutine_handle<> any) noexcept {
    return *reinterpret_cast<promise_base*>(static_cast<char*>(any.address()) + sizeof(frame));
  }
};
static_assert(sizeof(promise_base) == 2 * sizeof(void*));

/// A frame made by hand, at which a stop ends. `returned` is called when a coroutine returns into the boundary. Both
/// `returned` and `stopped_here` tell the run loop, by run_next(), what to resume next.
struct boundary : frame {
  boundary(void (*returned)(frame*), void (*stopped)(boundary&) noexcept, std::coroutine_handle<> then,
           root* in) noexcept
      : frame{returned, arrive_stopped}, continuation{then}, owner{in}, stopped_here{stopped} {}
  /// A boundary at which no stop ends. Its continuation and its root are set later.
  explicit boundary(void (*returned)(frame*)) noexcept : frame{returned, arrive_stopped}, stopped_here{nullptr} {}
  boundary(const boundary&) = delete;

  static void arrive_stopped(frame* self);  // stored in place of destroy
  static void go_on(frame* self);           // for `returned`: resumes the continuation, which destroys its callee

  std::coroutine_handle<> continuation;  // as in a promise_base: for whoever walks the frames
  root* owner;
  void (*stopped_here)(boundary&) noexcept;
};

/// One line of execution. Lives where it was started, until its end was reached.
class root : public sleeper, public job {
 public:
  using end_function = void (*)(root&, bool stopped) noexcept;

  /// `done` is called once, by the run loop, when the outermost frame has returned or was unwound.
  root(const weft::env* environment, root* part_of, end_function done) noexcept;

  /// Makes `outermost` this root's outermost frame.
  void adopt(std::coroutine_handle<> outermost, promise_base& promise) noexcept {
    promise.continuation = end_.handle();
    promise.owner = this;
    top = outermost;
  }

  /// Runs it here, now, until it waits or ends. May be gone when this returns.
  void run_here() noexcept;

  /// Runs a job, a root or not, by a pool's worker that runs nothing else: there is nothing to be put back afterwards.
  static void run_outermost(worker& here, job& work) noexcept;

  /// Whether `work` is a root whose `top` has this resume function, whose frames come from the worker, and which needs
  /// nothing else before it runs.
  static bool goes_on_by(job& work, void (*resume)(frame*)) noexcept {
    if (work.run != run_job) return false;
    const root& self = static_cast<root&>(work);
    return static_cast<const frame*>(std::coroutine_handle<>{self.top}.address())->resume == resume &&
           !self.needs_a_look() && (self.env == nullptr || self.env->frames == nullptr);
  }

  /// Prefetches what goes_on_by() reads of `work`, if that is a root. fetch_frame(), called later, prefetches the begin of
  /// its `top` and, if that is a fiber's frame, the next line of the fiber's control block.
  static void fetch(const job& work) noexcept {
    const auto* const at = reinterpret_cast<const char*>(&work);
    __builtin_prefetch(at - (sizeof(sleeper)), 1);
    __builtin_prefetch(at + (sizeof(job) + 3 * sizeof(void*)), 1);
  }
  static void fetch_frame(job& work) noexcept {
    if (work.run != run_job) return;
    const auto* const frame = static_cast<const char*>(std::coroutine_handle<>{static_cast<root&>(work).top}.address());
    __builtin_prefetch(frame, 1);
    __builtin_prefetch(frame + 64, 1);
  }

  /// Called by a pool's worker that is about to run this root: counts it as begun there, once.
  void count_in(worker& here) noexcept;
  /// The same with a job.
  static void count_in(worker& here, job& work) noexcept;
  /// Whether `one`, which runs this root or runs beside it, has the same executor and is counted in.
  bool is_counted_like(const root* one) const noexcept;
  /// Counts this root in if is_counted_like(one).
  void count_in_like(const root* one, worker& here) noexcept;
  /// Called by the root's thread as the root ends: counts it as ended there, if it was counted in.
  void count_out(worker& here) noexcept;
  /// The same as the root leaves for another executor.
  void leave_pool(worker& here) noexcept;

  /// Has its executor run it. May be gone when this returns.
  void schedule() noexcept;

  /// The same, but behind the jobs that its executor has already. Called by the root itself, to let others run.
  void schedule_behind() noexcept;

  /// By an executor that is about to run `work`: tells it to stop, if it is a root.
  static void tell_to_stop(job& work) noexcept;

  /// The deadline of the task that is posted as `work`; time_point::max(): none, or `work` is no task.
  static std::chrono::steady_clock::time_point deadline_of(job& work) noexcept;

  /// By its group, which is about to tell it to stop: notes that, unless it was told before.
  void note_told_by_group() noexcept {
    if (!was_told_to_stop()) told_by.fetch_or(told_by_group, std::memory_order_relaxed);  // as declared
  }
  bool was_told_by(std::uint8_t whom) const noexcept {
    return (told_by.load(std::memory_order_relaxed) & whom) != 0;  // as declared
  }

  /// Whether it, or one that it is part of, was told to stop.
  bool stop_requested() const noexcept;

  bool is_end(std::coroutine_handle<> frame) const noexcept { return frame.address() == &end_; }
  /// The root whose end this is; null: it is a frame in one.
  static const root* ended_by(std::coroutine_handle<> frame) noexcept;
  /// The frame that control goes to after its end, for walks over frames; null: where its parent waits.
  std::coroutine_handle<> after_end() const noexcept { return end_.continuation; }
  std::coroutine_handle<> end() noexcept { return end_.handle(); }
  void ends_in(std::coroutine_handle<> outside) noexcept { end_.continuation = outside; }
  bool ends_by(end_function done) const noexcept { return done_ == done; }

  /// The root that is this sleeper; null if it is none, but a thread or the like.
  static root* of(sleeper& one) noexcept { return one.wakes_by(woken) ? static_cast<root*>(&one) : nullptr; }

  /// The frame that runs, or where the root suspended. By the root's thread, or while its wait is held.
  std::coroutine_handle<> innermost() const noexcept;

  // All that a switch to it reads is on one line, up to the flags.
  frame_address top;  // the innermost frame, or one that it awaited and that has ended
  const weft::env* env;
  std::uint8_t transfers = 0;  // where those are bounded; one layout for both compilers
  // True: `env` is known to name no memory for frames. So the thread that runs the root need not read `env`, which may lie
  // in cache lines that another thread writes. Set by code that sends the root elsewhere; cleared by code that sets an `env`
  // which may name such memory.
  bool has_default_memory = false;
  // It was woken to be unwound: from a wait, or where an awaitable of another library has dropped it.
  static constexpr std::uint8_t by_wait = 1, dropped = 2;
  std::uint8_t ends_stopped = 0;
  bool is_uncounted = true;  // it has not run yet on its pool, or has no pool; read with ends_stopped
  bool is_fork = false;      // its parent, the body of a scope, does not wait while this runs
  // What is to be looked at before it waits: one load and one branch for all of it. is_lent: a child of a when_all borrows this
  // root, until that child needs its own. is_traced: a hint, which it may have lost, and which is set as a turn begins.
  static constexpr std::uint8_t is_lent = 1, is_traced = 2;
  static constexpr std::uint8_t was_posted = 4;  // `traced_since` is when it was posted for its first turn
  std::uint8_t before_wait = 0;
  // Who has told it to stop for a reason that is noted elsewhere: its executor, which ends, or the group that it is a child of,
  // which has decided. Written before the stop bit, whose edge carries it; relaxed for two who tell it at the same time.
  static constexpr std::uint8_t told_by_executor = 1, told_by_group = 2;
  std::atomic<std::uint8_t> told_by{0};
  std::atomic<bool> has_id{false};  // somebody has asked for its id; under the lock of those (task_ids)
  root* parent;
  // Of a traced root, when its present turn, wait or time in a queue began; see core/turns.hpp. Else nobody reads or writes it.
  std::uint64_t traced_since;

 protected:
  /// Sets the function that the outermost frame returns into, for an end that `done` does not lead to.
  void ends_in(void (*there)(frame* end)) noexcept { end_.resume = there; }

 private:
  friend struct debug_core;

  // Whether it must be unwound or counted when it runs next. One branch and one load: compilers load the adjacent flags
  // together.
  bool needs_a_look() const noexcept { return (unsigned{ends_stopped} | unsigned{is_uncounted} << 8) != 0; }
  static void run_job(job& self) noexcept;
  void run_in(worker& here) noexcept;
  WEFT_SELDOM std::coroutine_handle<> where_it_ends_stopped() noexcept;
  void schedule_on(worker& here) noexcept;
  static void woken(sleeper& self, wake_up how) noexcept;
  WEFT_SELDOM void look_at_wake(wake_up how) noexcept;
  WEFT_SELDOM void run_in_with_memory(worker& here) noexcept;
  [[gnu::noinline]] static void run_outermost_with_memory(worker& here, root& self) noexcept;
  static void returned(frame* end);
  static void stopped_at_end(boundary& end) noexcept;

  boundary end_;
  end_function done_;
};

/// The root that runs on this thread; null outside.
root* current_root() noexcept;

/// Leaves the root that has just ended: code that runs from here on, until the run loop goes on, is no part of it.
void leave_root() noexcept;

/// What the run loop resumes when the coroutine that runs now has suspended; in the same root, or in `other`.
void run_next(std::coroutine_handle<> next) noexcept;
void run_next(std::coroutine_handle<> next, root& other) noexcept;

/// The running coroutine, which suspends now, ends stopped, since it was told to.
void end_stopped(root& self) noexcept;
/// The same, since what it was to wait for in `in` has ended so.
WEFT_SELDOM void end_stopped_by(root& self, const waiter& in) noexcept;
/// The same, where why that is was noted (core/end_causes.hpp).
void end_stopped_as_noted(root& self) noexcept;

/// Goes on unwinding where a boundary has held it up: `ended` was destroyed; `outer` owns it, or is the next boundary.
void unwind_on(root& self, std::coroutine_handle<> ended, std::coroutine_handle<> outer) noexcept;

/// Where control goes by symmetric transfer: to `next`, but to the run loop every now and then where a transfer may be
/// a call.
WEFT_PER_AWAIT inline std::coroutine_handle<> transfer([[maybe_unused]] root& self,
                                                       std::coroutine_handle<> next) noexcept {
#if WEFT_BOUNDED_TRANSFER
  if (++self.transfers % 64 == 0) [[unlikely]] {
    run_next(next);
    return std::noop_coroutine();
  }
#endif
  return next;
}

/// Destroys the frame of a task whose owner goes away: one that was never started, one that ended, or none if it was
/// just unwound.
void destroy_frame(std::coroutine_handle<> frame) noexcept;

/// Destroys the frame of a coroutine that was never started, or has ended, and the frames that it owns: a chain of any
/// length in bounded stack.
void let_go(std::coroutine_handle<> frame) noexcept;

/// Gives the children that borrow `self` roots of their own (join/join.hpp). By whoever runs in `self`. Returns the root of
/// the innermost child, which is current from then on.
root& promote_borrowers(root& self) noexcept;
/// The same for a root that is about to wait, if it is lent. Says so to the flight recorder, if it is traced. Called by what is
/// inlined into programs, and so no WEFT_SELDOM.
[[gnu::cold]] root& look_before_wait(root& self) noexcept;

/// Called by code that runs in `self` and changes what belongs to a root.
inline root& take_over_root(root& self) noexcept {
  if ((self.before_wait & root::is_lent) != 0) [[unlikely]]
    return promote_borrowers(self);
  return self;
}
/// Called by code that runs in `self` and is about to wait, which needs a root of its own.
inline root& take_root(root& self) noexcept {
  if (self.before_wait != 0) [[unlikely]]
    return look_before_wait(self);
  return self;
}
/// take_over_root() of the one that runs on this thread.
root& own_root() noexcept;

/// By an awaiter in which `self` suspends: its root, which goes on there.
template <class Promise>
root& suspending(std::coroutine_handle<Promise> self) noexcept {
  root& mine = *self.promise().owner;
  mine.top = self;
  return take_root(mine);
}

/// Base of a promise, and its initial awaiter, which so needs no room in the frame. When a coroutine begins, this stores the
/// coroutine in its root's `top`. g++ would copy the awaiter into each frame, so there enter_root() makes that store.
template <class Promise>
struct initial_awaiter {
#if WEFT_COPIES_AWAITERS
  WEFT_PER_AWAIT std::suspend_always initial_suspend() const noexcept { return {}; }
#else
  WEFT_PER_AWAIT initial_awaiter& initial_suspend() noexcept { return *this; }
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  WEFT_PER_AWAIT void await_resume() noexcept {
#if WEFT_ASYNC_STACK
    auto& promise = static_cast<Promise&>(*this);
    promise.owner->top = std::coroutine_handle<Promise>::from_promise(promise);
#endif
  }
#endif
};

/// Hands `callee` its place in `self`, where `caller` awaits it.
template <class Promise>
WEFT_PER_AWAIT inline void enter_root(root& self, std::coroutine_handle<Promise> callee,
                                      std::coroutine_handle<> caller) noexcept {
  promise_base& promise = callee.promise();
  promise.continuation = caller;
  promise.owner = &self;
#if WEFT_COPIES_AWAITERS && WEFT_ASYNC_STACK
  self.top = callee;
#endif
}

/// Where a coroutine inside a root suspends for good. Its root still has it for the innermost one.
struct final_awaiter {
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  WEFT_PER_AWAIT std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> self) const noexcept {
    promise_base& promise = self.promise();
    return transfer(*promise.owner, promise.continuation);
  }
  void await_resume() const noexcept {}
};

// ---- co_await inside a root -----------------------------------------------------------------------------------------------

/// Marks an awaitable that knows roots. Its awaiter's await_suspend takes a coroutine_handle of a promise_base's heir.
struct knows_roots {};

template <class Awaitable>
decltype(auto) get_awaiter(Awaitable&& awaitable) {
  if constexpr (requires { std::forward<Awaitable>(awaitable).operator co_await(); })
    return std::forward<Awaitable>(awaitable).operator co_await();
  else if constexpr (requires { operator co_await(std::forward<Awaitable>(awaitable)); })
    return operator co_await(std::forward<Awaitable>(awaitable));
  else
    return std::forward<Awaitable>(awaitable);
}

template <class Awaiter>
concept awaiter = requires(Awaiter& a) {
  a.await_ready() ? 1 : 0;
  a.await_resume();
};

template <class Awaitable>
concept awaitable = requires(Awaitable&& a) {
  requires awaiter<std::remove_reference_t<decltype(get_awaiter(std::forward<Awaitable>(a)))>>;
};

/// What `co_await` of it gives.
template <class Awaitable>
using await_result_t = decltype(get_awaiter(std::declval<Awaitable>()).await_resume());

/// Stands between a root and an awaitable of another library, which gets this frame instead of the task's. Whichever thread
/// resumes this frame, the task resumes on its own executor. Not a stop point. If the other library destroys the frame, the
/// task ends stopped.
class foreign_frame : frame {
 protected:
  explicit foreign_frame() noexcept : frame{resumed, dropped} {}
  std::coroutine_handle<> stand_in(root& self) noexcept {
    root_ = &self;
    return handle();
  }

 private:
  static void resumed(frame* self);
  static void dropped(frame* self);
  root* root_ = nullptr;
};

template <class Awaitable>
class foreign_awaiter : foreign_frame {
  using inner = decltype(get_awaiter(std::declval<Awaitable>()));

 public:
  explicit foreign_awaiter(Awaitable&& awaitable) : inner_(get_awaiter(std::forward<Awaitable>(awaitable))) {}

  decltype(auto) await_ready() { return inner_.await_ready(); }

  template <class Promise>
  auto await_suspend(std::coroutine_handle<Promise> self) {
    static_assert(
        requires { inner_.await_suspend(std::coroutine_handle<>{}); },
        "this awaitable demands a promise of its own library, so a weft task cannot await it");
    return inner_.await_suspend(stand_in(suspending(self)));  // self may run elsewhere, or be gone, after this line
  }
  decltype(auto) await_resume() { return inner_.await_resume(); }

 private:
  inner inner_;
};

/// Whether an awaitable owns the frames that it awaits. They are destroyed at the end of the awaiting expression, even if
/// the awaitable is a named object.
template <class Awaitable>
inline constexpr bool owns_callees = false;

/// Whether it is a sender of std::execution, or of a library that says so in its way. No concept: compilers explain those.
template <class T>
inline constexpr bool is_sender = requires { typename std::remove_cvref_t<T>::sender_concept; };

/// Whether it can't be awaited, but could if its owner gave it away.
template <class T>
inline constexpr bool is_kept = !detail::awaitable<T> && detail::awaitable<std::remove_cvref_t<T>>;

/// The awaiter of what can't be awaited, of which a sentence tells: the compiler says no more of what it gives.
struct refused_awaiter : knows_roots {
  struct [[maybe_unused]] anything {
    template <class T>
    operator T() const;  // NOLINT(google-explicit-constructor)
  };
  bool await_ready() const noexcept;
  void await_suspend(std::coroutine_handle<>) const noexcept;
  anything await_resume() const noexcept;
};
template <class T>
refused_awaiter refuse_await() {
  static_assert(!is_kept<T>, "this is awaited as an rvalue that is not const: co_await std::move(x)");
  static_assert(is_kept<T> || !is_sender<T>,
                "a sender is no awaitable: co_await weft::from_sender(s), of weft/senders.hpp");
  static_assert(is_kept<T> || is_sender<T>,
                "this can't be awaited: it has neither operator co_await nor await_ready() and await_resume()");
  return {};
}

/// What is awaited in a root: weft's own awaitables as they are, all others behind a foreign_frame.
template <class Awaitable>
WEFT_PER_AWAIT inline decltype(auto) known_to_root(Awaitable&& awaitable) {
  if constexpr (requires { awaiter_in_root(std::forward<Awaitable>(awaitable)); })
    return awaiter_in_root(std::forward<Awaitable>(awaitable));
  else if constexpr (std::is_base_of_v<knows_roots, std::remove_cvref_t<Awaitable>>)
    return std::forward<Awaitable>(awaitable);
  else
    return foreign_awaiter<Awaitable>(std::forward<Awaitable>(awaitable));
}

/// Base of promises whose coroutines co_await.
struct awaiting_promise : promise_base {
  // An awaitable that owns frames is passed by value: a named one is moved from, and a temporary is the parameter itself, at
  // no cost. The parameter is also the awaiter: by the Itanium C++ ABI it lives until the whole expression has ended. (An
  // awaiter made from it would be a second word in each frame, beside an empty task whose destructor asks whether it is
  // empty: 97.6 -> 103.6 instructions a level where callees are not elided.)
  template <class Owner>
    requires owns_callees<Owner>
  WEFT_PER_AWAIT decltype(auto) await_transform(Owner whole) noexcept {
    return known_to_root(std::move(whole));
  }
  template <template <class...> class Owner, class... Args>
    requires owns_callees<Owner<Args...>>
  WEFT_PER_AWAIT decltype(auto) await_transform(Owner<Args...>& named) noexcept {
    return known_to_root(named);
  }
  template <class Awaitable>
    requires(!owns_callees<Awaitable>)
  decltype(auto) await_transform(Awaitable&& awaitable) {
    if constexpr (detail::awaitable<Awaitable> || requires { awaiter_in_root(std::forward<Awaitable>(awaitable)); })
      return known_to_root(std::forward<Awaitable>(awaitable));
    else
      return refuse_await<Awaitable>();
  }
  // Of `co_await f()` where f gives void, clang then says that, and no more; g++ does so without it.
  refused_awaiter await_transform(...);
};

}  // namespace weft::detail
