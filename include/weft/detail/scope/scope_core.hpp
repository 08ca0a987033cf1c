// The inside of a scope: its body, its forks, and the end that waits for them. Part of scope.hpp.
//
// A fork runs at once, within fork(), up to its first wait. One that ends there is private to whoever made it: nothing is
// linked, counted or atomic. Its frame holds the result, and its root was lent by the scope, which has a spare one and
// lends it to the next. Only a fork that waits keeps its record; then its handle refers to that and not to the frame.
//
// A handle is one word:
//
//   0          nothing: moved from
//   1 | record a fork that has waited, was stopped, or that a view sees
//   else       the frame of one that ran through
//
// What is shared lies under the scope's lock: the list of forks that run, who waits for them, how many holders a record
// has. A fork's end takes it once; so do a handle that goes, an await that waits, a stop for each child.
//
// On a pool of several threads a fork does not run at once: it keeps its record, is entered in the list, and goes on its
// worker's deque, where thieves find it, and its own worker when the forker waits. Who awaits it while it is the newest
// there takes it back and runs it on top of its own stack, as fork() would have. Some dozens may lie in a deque: then
// there is enough for others, and a fork runs at once. So forks are spread, and a loop of a billion holds no more.
//
//   live     the body, the forks that have waited, and one for whoever awaits the scope until that has parked. Who counts
//            the last one down ends the scope, and nobody touches it after that.
//   holders  of a record: its handle, its views, and the fork while it runs. The last one destroys the frame and gives
//            the record back; while a stopper has it in hand, the stopper does the second, and only that, since the
//            frame's memory may belong to another thread.
//
//   forker    runs the fork; links it under the lock if it has waited, unless it ended meanwhile; then looks at the stop
//   stopper   sets the stop; takes some forks at a time from the list under the lock, holds them, and tells them under no
//             lock. Those that go on wherever they are woken it unwinds itself, and enters their ends when it takes the lock
//             again. A fork that is linked later finds the stop set, since both went through the lock
//   ender     a fork that fails does so before it counts itself down, so the scope is there for its siblings' stop. One that
//             ends stopped looks, under the lock, whether a stop from outside is in force, and marks the scope as cut short;
//             who ends the scope reads that behind the countdown
//
// Long because a fork, its scope, and who may touch what of both are one protocol.
//
// Rejected: (a) a record in each frame: 232 bytes for a fork that needs none of it. (b) A list of the owner's without a
// lock: what ended elsewhere stays in it until the owner comes by, and an owner that waits for its next connection does
// not. (c) An atomic word in each record beside the count: two read-modify-writes at the end of a fork instead of one.
// (d) The forker's rest as what others take: fork() is a call, and what called it has not suspended.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <source_location>
#include <weft/clock.hpp>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/base/lock.hpp>
#include <weft/detail/base/narrow.hpp>
#include <weft/detail/base/standard.hpp>
#include <weft/detail/core/cause_list.hpp>
#include <weft/fork_status.hpp>
#include <weft/scope_options.hpp>
#include <weft/task.hpp>

namespace weft::detail {

class scope_core;
class room_wait;
class child_batch;
struct pool_worker;
struct scope_access;
struct walk_place;

/// The failure that a frame ended with; null if it has a value.
using failure_function = const std::exception_ptr* (*)(std::coroutine_handle<>) noexcept;

template <class T>
const std::exception_ptr* failure_of(std::coroutine_handle<> frame) noexcept {
  const auto& promise = std::coroutine_handle<task_promise<T>>::from_address(frame.address()).promise();
  return promise.is_exception() ? &promise.exception() : nullptr;
}

class fork_record;

/// What a scope does with a fork. It lies before the root, and is as large as a line of a cache, so that, where a record
/// begins with one, this and what a stop touches of the root are two, and what moves from one executor to another is one.
struct fork_in_scope {
  /// What fork_on made, which a record finds by its root's `env`. `users` are the records that have it, and the scope if it is
  /// the last one; under the lock.
  struct own_env : weft::env, frame_allocated {
    explicit own_env(const weft::env& of) noexcept : weft::env{of} {}
    mutable plain<std::size_t> users = 1;
  };

  enum class first_run { waits, ran_through, stopped };
  enum class verdict { none, go_on, fail };
  enum class in_hand { no, told, unwound };  // the last: its frames are gone, its end is not entered

  // By the stopper: the first and the last under the lock.
  void transition_to_told() noexcept { in_hand_.store(in_hand::told, std::memory_order_relaxed); }        // as declared
  void transition_to_unwound() noexcept { in_hand_.store(in_hand::unwound, std::memory_order_relaxed); }  // as declared
  void transition_to_let_go() noexcept { in_hand_.store(in_hand::no, std::memory_order_relaxed); }        // as declared
  static constexpr unsigned nobody = ~0U;

  fork_record* next_ = nullptr;    // in the scope's list of running ones, or of free ones; under the lock
  fork_record** link_ = nullptr;   // what points to this one, while it is counted as running
  fork_record* ahead_ = nullptr;   // one that is told some time after it, for a prefetch: it may be gone
  std::coroutine_handle<> frame_;  // while it is linked, written under the lock, where a stopper reads it
  waiter_line line_;               // who awaits it; under the lock
  //   edge ended  the result, and all that the fork did  ->  who sees that it ended
  //               Watched by test/model/scope_model.cpp.
  atomic<narrow<fork_status>> status_{fork_status::running};  // written under the lock
  // Written by a stopper, which takes the fork in hand and lets go of it under the lock. Relaxed: others read under the lock
  // whether it is in hand, and which of the other two it is, only the stopper reads.
  atomic<narrow<in_hand>> in_hand_{in_hand::no};
  narrow<first_run> first_run_ = first_run::waits;  // by the thread that started it, while that runs fork()
  narrow<verdict> verdict_ = verdict::none;         // of starts_again(), for failed()
  // Written under the lock. `nobody`: and its frame is gone, too.
  //   edge gone  a holder's last use  ->  the fork that ends and, being the last holder, destroys the frame before that
  //              No model fails without it: what a holder does to a frame that runs, a stop, the claim of its wait orders.
  atomic<unsigned> holders_{2};  // itself, and its handle
  failure_function failure_of_ = nullptr;
};

/// The root of a fork, and what others know of it while it waits and afterwards.
class fork_record final : fork_in_scope, public root {
 public:
  explicit fork_record(scope_core& of) noexcept;

  scope_core& of() const noexcept;
  fork_status status() const noexcept { return status_.load(std::memory_order_acquire); }  // <- ended
  std::coroutine_handle<> frame() const noexcept { return frame_; }

  /// The code of its outermost frame.
  const void* function() const noexcept {
    return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(function_.load(std::memory_order_relaxed)) &
                                         ~id_is_known);
  }

  /// Tells it to stop, and why. By its handle.
  void request_stop_because(const stop_cause& cause) noexcept;
  /// Why, if it was told by its handle, or a part of it was and it has ended so; else null. When it has ended stopped.
  const stop_cause* own_cause() const noexcept { return cause_.reason != nullptr ? &cause_ : nullptr; }
  /// Why it was told by its handle, which others may do meanwhile; without a reason: it was not. Inside it.
  stop_cause told_cause() const noexcept;

 private:
  friend class scope_core;
  friend struct debug_scope;
  friend bool note_id_of_fork(root& fork) noexcept;

  void note_end() noexcept;

  static constexpr std::uintptr_t id_is_known = std::uintptr_t{1} << 63;

  // The code of its outermost frame, for who looks after that may be gone, and a mark: somebody has its id. Written as it
  // starts, before others know of it; the mark by whoever keeps it alive. Relaxed: it leads nowhere.
  atomic<const void*> function_{nullptr};
  stop_cause cause_{nullptr, {}};  // written under the lock, before its status, which publishes it
};

/// What a scope is, without the types of its results.
class scope_core : waiter, job {
 public:
  /// In a task's frame, which has `options`, too: takes over what the task inherits, changed by those. `exactly`: the env for
  /// all below, with the memory and stop of `options`. Throws std::bad_alloc.
  explicit scope_core(const scope_options& options, const weft::env* exactly = nullptr);
  scope_core(const scope_core&) = delete;
  ~scope_core();

  // ---- by with_scope

  frame_source* frames() const noexcept { return env_.frames; }
  /// The task that awaits the scope has suspended: runs the body, which was adopted, and joins the forks.
  void run_body(root& parent) noexcept;
  void adopt_body(std::coroutine_handle<> frame, promise_base& promise, failure_function failure_of) noexcept;
  /// Else the body's frame is there, with its value or its failure, also where the scope ends stopped.
  bool body_was_unwound() const noexcept { return body_was_stopped_; }
  /// After the end, and after the body's frame: throws what the scope ends with, if it failed.
  void throw_failure();

  // ---- by forks' handles

  /// Starts a fork, here and now or for others to take. Its word. Throws std::bad_alloc or errc::no_room, and then has
  /// destroyed the frame.
  std::uintptr_t start(std::coroutine_handle<> frame, promise_base& promise, failure_function failure_of);
  /// The same, here and now; or, nested too deep, when the forkers have suspended.
  std::uintptr_t start_here(std::coroutine_handle<> frame, promise_base& promise, failure_function failure_of);
  /// The same, and errc::no_room where it is nested too deep.
  std::uintptr_t start_at_once(std::coroutine_handle<> frame, promise_base& promise, failure_function failure_of);
  std::uintptr_t start_on(executor& where, std::coroutine_handle<> frame, promise_base& promise,
                          failure_function failure_of);
  /// Who owns the frame of a fork without a record.
  root& body() noexcept { return body_; }
  /// The scope of such a fork.
  static scope_core& of_one_that_ran_through(root& owner) noexcept { return *static_cast<body_root&>(owner).of; }
  /// A record for a word without one.
  fork_record& share(std::uintptr_t word, failure_function failure_of);
  void retain(fork_record& one) noexcept;
  void drop(fork_record& one) noexcept;
  /// The same by an await that has taken the value: in no row of frames that go, see let_go().
  void drop_awaited(fork_record& one) noexcept;
  bool is_only_holder(const fork_record& one) noexcept;

  /// `self` has suspended to wait for `one`. False: it goes on at once.
  bool wait(fork_record& one, waiter& in, root& self) noexcept;
  /// Runs a fork that was left for others to take, if nobody has. False: somebody has, or it was not.
  bool take_back(fork_record& one) noexcept;
  on_stop leave(fork_record& one, waiter& in) noexcept;
  /// For a select: what a fork's end takes; and under it, in line, of one that runs.
  tiny_lock& lock_of_ends() noexcept { return lock_; }
  void enter_line(fork_record& one, waiter& in) noexcept;
  bool waits_for(const fork_record& one, const root& of, const waiter& like, unsigned& looks) const noexcept;

  /// `self` has suspended until there is room for one more child, or has its place. False: it goes on at once.
  bool wait_for_room(room_wait& in, root& self) noexcept;
  on_stop leave_room(room_wait& in) noexcept;
  bool has_room() noexcept;
  bool is_limited() const noexcept { return is_limited_; }
  /// Where children are limited: takes the place of one. Who has a place makes a fork of it, or leaves it.
  bool take_place() noexcept;
  /// As start(), in a place that was taken.
  std::uintptr_t start_in_place(std::coroutine_handle<> frame, promise_base& promise, failure_function failure_of);

  /// A fork has failed, and has not been counted down.
  void failed(fork_record& one, const std::exception_ptr& failure) noexcept;
  /// Inside a fork that fails: whether it is to start again.
  bool starts_again(const std::exception_ptr& failure) noexcept;

  // ---- by the scope's user

  bool request_stop(const stop_cause& cause) noexcept;
  bool stop_requested() const noexcept { return source_.stop_requested(); }
  /// Stops those scopes around `self`, which runs, whose deadline has passed: where it does not wait, no timer is armed.
  static void look_at_clock(root& self) noexcept;
  std::size_t children() noexcept;
  std::size_t reclaim() noexcept;
  bool restarts() const noexcept { return options_.on_error.what() == error_policy::kind::handle; }

 private:
  friend fork_record;
  friend struct debug_scope;

  class body_root final : public root {
   public:
    body_root(scope_core& scope, root* outside) noexcept : root{&scope.env_, outside, body_ended}, of{&scope} {}
    scope_core* of;
  };
  struct later_failure {
    std::exception_ptr failure;
    later_failure* next;
  };
  struct stop_it {
    scope_core* target;
    stop_token from;
    void operator()() const noexcept;
  };

  // What the clock of the scope is to tell it. Armed while the scope is counted as live; cancelled before it goes, which
  // waits where its function runs on another thread.
  class alarm final : timer {
   public:
    using rung_function = void (*)(scope_core&) noexcept;

    alarm(scope_core& of, rung_function rung) noexcept : timer{ring}, of_{of}, rung_{rung} {}
    void set(clock::time_point when) noexcept;
    void cancel() noexcept {
      if (clock_ != nullptr) clock_->cancel(*this);
    }

   private:
    static void ring(timer& self) noexcept;

    scope_core& of_;
    rung_function rung_;
    weft::clock* clock_ = nullptr;  // where it was armed; null: it was not
  };

  static void deadline_passed(scope_core& self) noexcept;
  static void is_overdue(scope_core& self) noexcept;
  overdue_scope look_at_children();
  void ask_those_that_run(overdue_scope& seen);
  weft::clock& its_clock() const noexcept { return env_.clock != nullptr ? *env_.clock : real_clock(); }

  static on_stop stop_with_parent(waiter& self) noexcept;
  static void run_deferred_stop(waiter& self) noexcept;
  bool request_stop_of_live(std::unique_lock<tiny_lock>& guard, const stop_cause& cause) noexcept;
  stop_cause cause_from_parent() const noexcept;
  bool is_stopped_from_outside() const noexcept;  // under the lock, as the next one
  void note_stopped_part() noexcept;
  static void tell(const waiter& self, const char* what, wait_subjects& into) noexcept {
    into.add(what, &static_cast<const scope_core&>(self));
  }
  static void fetch_children(const waiter& self) noexcept;
  static void why(const waiter& self, cause_list& into) noexcept;
  static const wait_layout seen;
  bool add_walked(walk_place& at, child_batch& into) noexcept;  // under the lock
  static const wait_children walk;
  static constexpr wait_type type{.leave = stop_with_parent,
                                  .name = "children of a scope",
                                  .tell = tell,
                                  .fetch = fetch_children,
                                  .run_deferred_stop = run_deferred_stop,
                                  .why = why,
                                  .layout = &seen,
                                  .children = &walk};
  static void body_waits(job& self) noexcept;
  static void body_ended(root& self, bool stopped) noexcept;
  static void fork_ended(root& self, bool stopped) noexcept;
  static void fork_returned(frame* end);

  void prepare_options();
  void park_parent() noexcept;
  void resume_parent() noexcept;
  wake_up how() const noexcept;
  void count_down(bool body = false) noexcept;

  fork_record& take_record();
  fork_record* start_in_free_record(executor& where, std::coroutine_handle<> frame, promise_base& promise,
                                    failure_function failure_of) noexcept;
  const fork_record::own_env& env_on(executor& where);
  const fork_record::own_env* let_go_of_env(
      const fork_record::own_env* one) const noexcept;  // under the lock, as the next one
  const fork_record::own_env* let_go_of_env(const fork_record& one) const noexcept;
  void give_back(fork_record& one) noexcept;  // under the lock
  std::size_t give_back_records() noexcept;
  void keep(fork_record& one, fork_status how) noexcept;
  template <bool in_row = false>
  void let_go(std::unique_lock<tiny_lock>& guard, fork_record& one) noexcept;  // under the lock
  void link(fork_record& one) noexcept;
  void count_in(fork_record& one) noexcept;     // under the lock
  void add_running(fork_record& one) noexcept;  // under the lock, as the next one
  void unlink(fork_record& one) noexcept;
  void ended(fork_record& one, bool stopped) noexcept;
  struct called_by_ends;
  bool enter_end(std::unique_lock<tiny_lock>& guard, fork_record& one, fork_status how,
                 called_by_ends& called) noexcept;  // under the lock
  fork_record& prepare(std::coroutine_handle<> frame, bool has_place);
  pool_worker* where_to_offer(const worker& here) const noexcept;
  bool runs_body(const worker& here) const noexcept;
  void begin(fork_record& one, std::coroutine_handle<> frame, promise_base& promise,
             failure_function failure_of) noexcept;
  void run_first_with_memory(worker& here, fork_record& one, std::coroutine_handle<> frame) noexcept;
  bool run_first(worker& here, fork_record& one, std::coroutine_handle<> frame) noexcept;
  std::uintptr_t start_in_another(std::coroutine_handle<> frame, promise_base& promise, failure_function failure_of,
                                  pool_worker* offered_by, bool has_place = false);
  std::uintptr_t settle(fork_record& one, std::coroutine_handle<> frame, bool is_spare) noexcept;
  std::uintptr_t settle_ended(fork_record& one, std::coroutine_handle<> frame, fork_record::first_run how) noexcept;
  bool is_room_free() const noexcept;  // under the lock, as the next one
  void give_room(called_by_ends& called) noexcept;
  void leave_place() noexcept;
  void leave_place(std::unique_lock<tiny_lock>& guard) noexcept;    // under the lock, of which it lets go
  void tell_children(std::unique_lock<tiny_lock>& guard) noexcept;  // under the lock
  std::size_t take_in_hand(fork_record** some) noexcept;            // under the lock, as the next one
  static void move_list(fork_record*& to, fork_record*& from) noexcept;
  void tell(fork_record* const* some, std::size_t count) noexcept;
  void end_here(fork_record** those, std::size_t count) noexcept;
  void enter_unwound(std::unique_lock<tiny_lock>& guard, fork_record* const* those, std::size_t count,
                     called_by_ends& called) noexcept;  // under the lock
  on_failure judge(const std::exception_ptr& failure) noexcept;
  void fail(const std::exception_ptr& failure) noexcept;

  // What the end of a fork and a stop touch lies together, and first.
  tiny_lock lock_;
  // All of these under the lock.
  bool body_is_over_ = false;
  bool is_walked_ = false;             // telling_ holds those that a walk has still to look at
  plain<bool> past_deadline_ = false;  // its own: also where it was told to stop before
  plain<bool> cut_short_ = false;      // a part ended stopped while a stop from outside was in force
  plain<std::size_t> live_ = 2;        // the body, the parent until it has parked, and the children
  plain<std::size_t> children_ = 0;    // forks that have waited and not ended
  plain<std::size_t> held_ = 0;        // records that are neither spare nor free
  fork_record* running_ = nullptr;
  fork_record* telling_ = nullptr;  // those that a stopper has still to tell, or a walk to look at
  fork_record* free_ = nullptr;
  const fork_record::own_env* last_env_ = nullptr;  // of the last fork_on: the next one is mostly for the same executor
  waiter_line room_;
  std::exception_ptr failure_;  // the first; it needs no memory, so it is not lost when there is none

  // Those of the running ones that were entered last, in no order, to be fetched before they are told: they may be gone.
  // Written under the lock. Relaxed: nobody follows them without it.
  atomic<fork_record*> newest_[8]{};
  stop_source source_;
  fork_record* spare_;  // for the next fork of the body; null: take one. The body's
  plain<bool> body_was_stopped_ = false;
  bool has_deadline_ = false;  // that is nearer than those further out, which others watch
  bool is_limited_ = false;    // by max_children
  // Places that are taken by forks in their first run, and by who has waited for one. Under the lock; 0 where not limited.
  plain<std::uint32_t> places_ = 0;
  struct by_option;
  by_option* by_option_ = nullptr;  // what few scopes need; null: nothing of it. Set as the scope is made
  later_failure* later_ = nullptr;  // newest first; under the lock
  root* parent_;
  weft::env env_;
  const scope_options& options_;
  std::source_location where_;
  std::size_t restarts_ = 0;  // under the lock, as the next one
  std::chrono::steady_clock::time_point restarts_since_{};
  body_root body_;
  // Of a body that was stopped they are gone, and a part of it may be why.
  union {
    failure_function body_failure_of_ = nullptr;
    const char* body_reason_;  // null: it is not known
  };
  union {
    std::coroutine_handle<> body_frame_{};
    std::source_location body_cause_at_;
  };
  const void* body_function_ = nullptr;
  const root* parents_start_ = nullptr;  // what worker::starting was

  fork_record first_;  // the first spare, so that a scope whose forks run through allocates nothing
};

/// What a scope needs that was given memory, a deadline, a token or a time to stop within: a third of what the others need.
struct scope_core::by_option {
  explicit by_option(scope_core& of) noexcept : deadline{of, deadline_passed}, overdue{of, is_overdue} {}

  std::optional<frame_source> frames;
  alarm deadline;
  alarm overdue;
  std::optional<stop_callback<stop_it>> stop_with_token;
};

// A fork's parent is always the body.
inline scope_core& fork_record::of() const noexcept { return *static_cast<scope_core::body_root*>(parent)->of; }

/// `co_await` of the running of a scope, by the coroutine that has it.
struct scope_run : knows_roots {
  explicit scope_run(scope_core& scope) noexcept : of{&scope} {}
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> self) const noexcept {
    of->run_body(suspending(self));
  }
  void await_resume() const noexcept {}
  scope_core* of;
};

}  // namespace weft::detail
