// The start of a fork: at once, within fork(), or by another worker that takes it from the deque. Forks on other executors are
// in scope/fork_on.cpp. The state of a fork, and who may read and write it, is described in scope/scope_core.hpp.
#include <weft/detail/core/async_stack.hpp>
#include <weft/scope.hpp>

#include "core/letting_go.hpp"
#include "core/run_loop.hpp"
#include "core/turns.hpp"
#include "core/worker.hpp"
#include "sched/pool_worker.hpp"
#include "scope/fork_end.hpp"

namespace weft::detail {
namespace {

// With so many jobs in a worker's deque there are enough for idle workers: further forks run at once.
constexpr std::size_t enough_offered = 32;

// Whether a stop destroys frames on this thread now, or this runs on a fiber. One branch for both.
bool is_unwound_or_fiber(const worker& here) noexcept {
  return (static_cast<std::uintptr_t>(here.unwinds) | reinterpret_cast<std::uintptr_t>(here.fiber)) != 0;
}

}  // namespace

// ---- records --------------------------------------------------------------------------------------------------------

// Takes a free record, or allocates one. Throws std::bad_alloc.
fork_record& scope_core::take_record() {
  void* room;
  const fork_record::own_env* unused = nullptr;
  {
    std::lock_guard guard{lock_};
    room = free_;
    if (free_ != nullptr) {
      unused = let_go_of_env(*free_);
      free_ = free_->next_;
    }
  }
  delete unused;
  if (room == nullptr) {
    const ambient_memory records{env_.frames};
    room = allocate_frame(sizeof(fork_record));
  }
  return *::new (room) fork_record{*this};
}

fork_record& scope_core::share(std::uintptr_t word, failure_function failure_of) {
  fork_record& one = take_record();
  one.frame_ = std::coroutine_handle<>::from_address(reinterpret_cast<void*>(word));
  keep(one, failure_of(one.frame_) != nullptr ? fork_status::failed : fork_status::succeeded);
  return one;
}

// Enters the outcome of a fork that ended in its first run into its record, which others may see from here on.
void scope_core::keep(fork_record& one, fork_status how) noexcept {
  one.status_.store(how, std::memory_order_relaxed);  // published by the lock
  one.holders_.store(1, std::memory_order_relaxed);   // published by the lock
  std::lock_guard guard{lock_};
  ++held_;
  if (how == fork_status::stopped) {
    one.note_end();
    note_stopped_part();
  }
}

std::size_t scope_core::reclaim() noexcept {
  const std::size_t kept = give_back_records();
  if (env_.frames != nullptr) env_.frames->trim();
  return kept;
}

std::size_t scope_core::give_back_records() noexcept {
  fork_record* unused;
  const fork_record::own_env* env = nullptr;
  std::size_t kept;
  {
    std::lock_guard guard{lock_};
    unused = std::exchange(free_, nullptr);
    kept = held_ - children_;
    if (last_env_ != nullptr) env = let_go_of_env(std::exchange(last_env_, nullptr));
  }
  delete env;
  while (unused != nullptr) {
    fork_record* const one = std::exchange(unused, unused->next_);
    {
      std::lock_guard guard{lock_};
      env = let_go_of_env(*one);
      one->env = &env_;
      if (one == &first_) {  // it is a member of the scope, and not allocated
        one->next_ = free_;
        free_ = one;
      }
    }
    delete env;
    if (one != &first_) free_frame(one, sizeof(fork_record));
  }
  return kept;
}

// ---- starting a fork ------------------------------------------------------------------------------------------------

// Whether the code of the body itself runs here. A fork in its first run may call back into the program after it has left its
// root, as a function that cancels does. Then the body is current, too, but it is inside start(), which uses the spare
// record.
inline bool scope_core::runs_body(const worker& here) const noexcept {
  return here.current == &body_ && here.outer != &body_;
}

// The fast path: the body forks, a spare record is there, and the fork runs through. It calls nothing but the fork, and saves
// and restores as little as it can: the current memory is the scope's already, nothing is being unwound, and no fiber runs; a
// fork that runs through leaves all three as it found them.
std::uintptr_t scope_core::start(std::coroutine_handle<> frame, promise_base& promise, failure_function failure_of) {
  worker& here = this_worker();
  if (!runs_body(here) || spare_ == nullptr || here.nested_forks == deepest_nesting || here.of_pool != nullptr ||
      source_.stop_requested() || here.frames.memory != env_.frames || is_unwound_or_fiber(here)) [[unlikely]]
    return start_in_another(frame, promise, failure_of, where_to_offer(here));
  fork_record* const one = spare_;
  begin(*one, frame, promise, failure_of);
  const run_place before = here;
  static_cast<run_place&>(here) = {.current = one, .outer = &body_, .starting = one};
  ++here.nested_forks;
  frame.resume();  // as the run loop would; mostly nothing is left to run after it
  const bool is_through = !is_any(here.next.address(), here.local, here.deferred.first) &&
                          one->first_run_ == fork_record::first_run::ran_through;
  if (!is_through) [[unlikely]] {
    detail::run(here, std::exchange(here.next, {}));
    here.frames.memory = env_.frames;
    here.unwound = nullptr;
    here.fiber = nullptr;
  }
  --here.nested_forks;
  static_cast<run_place&>(here) = before;
  if (!is_through && one->first_run_ != fork_record::first_run::ran_through) [[unlikely]]
    return settle(*one, frame, true);
  one->first_run_ = fork_record::first_run::waits;
  return reinterpret_cast<std::uintptr_t>(frame.address());
}

std::uintptr_t scope_core::start_here(std::coroutine_handle<> frame, promise_base& promise,
                                      failure_function failure_of) {
  return start_in_another(frame, promise, failure_of, nullptr);
}

std::uintptr_t scope_core::start_at_once(std::coroutine_handle<> frame, promise_base& promise,
                                         failure_function failure_of) {
  worker& here = this_worker();
  if (here.nested_forks == deepest_nesting) [[unlikely]] {
    frame.destroy();
    throw error{make_error_code(errc::no_room), "fork_here"};
  }
  return here.of_pool == nullptr ? start(frame, promise, failure_of) : start_here(frame, promise, failure_of);
}

std::uintptr_t scope_core::start_in_place(std::coroutine_handle<> frame, promise_base& promise,
                                          failure_function failure_of) {
  return start_in_another(frame, promise, failure_of, where_to_offer(this_worker()), true);
}

// Starts a fork that is not on the fast path. `offered_by`: the worker in whose deque it is put for others to take; null: it
// starts here.
[[gnu::noinline]] std::uintptr_t scope_core::start_in_another(std::coroutine_handle<> frame, promise_base& promise,
                                                              failure_function failure_of, pool_worker* offered_by,
                                                              bool has_place) {
  worker& here = this_worker();
  fork_record& one = prepare(frame, has_place);
  begin(one, frame, promise, failure_of);
  const bool is_spare = runs_body(here) && &one == spare_;
  if (offered_by != nullptr) {
    if (is_spare) spare_ = nullptr;
    link(one);
    if (env_.frames != nullptr) [[unlikely]]
      note_post(one);
    if (!offered_by->offer(one)) one.schedule();
    return reinterpret_cast<std::uintptr_t>(&one) | has_record;
  }
  if (here.nested_forks == deepest_nesting) {
    link(one);
    one.count_in_like(here.current, here);
    here.deferred.push(one);
    return reinterpret_cast<std::uintptr_t>(&one) | has_record;
  }
  if (!run_first(here, one, frame) || !is_spare) return settle(one, frame, is_spare);
  one.first_run_ = fork_record::first_run::waits;
  return reinterpret_cast<std::uintptr_t>(frame.address());
}

// Begins the first run of a fork that may be traced, and what that leaves to be run.
[[gnu::noinline]] void scope_core::run_first_with_memory(worker& here, fork_record& one,
                                                         std::coroutine_handle<> frame) noexcept {
  const outer_turn outer{here};
  if (request_trace* const trace = env_.frames->trace()) begin_turn(here, one, *trace, false);
  frame.resume();
  if (has_more(here)) detail::run(here, std::exchange(here.next, {}));
  outer.go_on(here);
}

// Runs a fork until it first waits. True: it ran to its end.
[[gnu::always_inline]] inline bool scope_core::run_first(worker& here, fork_record& one,
                                                         std::coroutine_handle<> frame) noexcept {
  // A fork that runs through is not counted as a task of its own. One that waits is counted as begun here, after its first
  // run, and not in its root, which other threads may use by then.
  const bool counts = one.is_counted_like(here.current);
  one.is_uncounted = !counts;
  const run_scope first{here};
  here.current = &one;
  here.starting = &one;
  here.frames.memory = env_.frames;
  ++here.nested_forks;
  if (env_.frames != nullptr) [[unlikely]]
    run_first_with_memory(here, one, frame);
  else
    frame.resume();  // as the run loop would; mostly nothing is left to run after it
  if (has_more(here)) [[unlikely]]
    detail::run(here, std::exchange(here.next, {}));
  --here.nested_forks;
  const bool is_through = one.first_run_ == fork_record::first_run::ran_through;
  if (is_through) [[likely]]
    one.is_uncounted = true;
  else if (counts)
    here.of_pool->begun.add();
  return is_through;
}

// The worker in whose deque a fork is put for others to take; null: it is not put there. That is the worker of this thread,
// if the scope's tasks may run on its pool and its deque is not full enough.
inline pool_worker* scope_core::where_to_offer(const worker& here) const noexcept {
  pool_worker* const mine = here.of_pool;
  if (mine == nullptr || !mine->has_others || current_env().executor != env_.executor) return nullptr;
  if (env_.frames != nullptr && !env_.frames->is_shared()) return nullptr;
  return mine->shares(env_.executor) && mine->forks.size() < enough_offered ? mine : nullptr;
}

// Not on a fiber's stack, whose size is chosen for the calls of that fiber: the fiber waits, and its thread runs the fork.
bool scope_core::take_back(fork_record& one) noexcept {
  worker& here = this_worker();
  if (here.of_pool == nullptr || here.nested_forks == deepest_nesting || here.fiber != nullptr) return false;
  if (!here.of_pool->forks.pop(one)) return false;
  ++here.nested_forks;
  one.count_in_like(here.current, here);
  one.run_here();
  --here.nested_forks;
  return true;
}

// The record for a fork that is not on the fast path: the spare one, if the body forks, or one taken for this fork.
// Destroys the frame where it throws.
fork_record& scope_core::prepare(std::coroutine_handle<> frame, bool has_place) {
  try {
    worker& here = this_worker();
    const bool is_traced = env_.frames != nullptr && env_.frames->trace() != nullptr;
    const bool by_body = runs_body(here) && here.nested_forks != deepest_nesting && !is_traced;
    if (is_limited_ && !has_place) {
      if (!take_place()) throw error{make_error_code(errc::no_room), "fork"};
      has_place = true;
    }
    if (by_body && !is_limited_ && !source_.stop_requested())
      return spare_ != nullptr ? *spare_ : *(spare_ = &take_record());
    fork_record& one = take_record();
    if (source_.stop_requested()) one.request_stop();
    return one;
  } catch (...) {
    frame.destroy();
    if (has_place) leave_place();
    throw;
  }
}

// After the first run of a fork that waits, was stopped, or was not forked by the body.
std::uintptr_t scope_core::settle(fork_record& one, std::coroutine_handle<> frame, bool is_spare) noexcept {
  const fork_record::first_run how = one.first_run_;
  one.first_run_ = fork_record::first_run::waits;
  if (how == fork_record::first_run::waits) {
    if (is_spare) spare_ = nullptr;
    link(one);
    return reinterpret_cast<std::uintptr_t>(&one) | has_record;
  }
  if (is_spare && how == fork_record::first_run::stopped) spare_ = nullptr;
  const std::uintptr_t word = settle_ended(one, frame, how);
  if (is_limited_) leave_place();
  return word;
}

std::uintptr_t scope_core::settle_ended(fork_record& one, std::coroutine_handle<> frame,
                                        fork_record::first_run how) noexcept {
  if (how == fork_record::first_run::stopped) {
    one.frame_ = nullptr;  // unwound
    keep(one, fork_status::stopped);
    return reinterpret_cast<std::uintptr_t>(&one) | has_record;
  }
  // It ran through, and was not forked by the body.
  if (const std::exception_ptr* failure = one.failure_of_(frame)) {
    failed(one, *failure);
    keep(one, fork_status::failed);
    return reinterpret_cast<std::uintptr_t>(&one) | has_record;
  }
  std::lock_guard guard{lock_};
  ++held_;
  give_back(one);
  return reinterpret_cast<std::uintptr_t>(frame.address());
}

// Enters a fork that has waited into the list of running ones, unless it has ended meanwhile on another thread. Where
// children are limited, it leaves its place, since it counts as a child now.
void scope_core::link(fork_record& one) noexcept {
  {
    std::unique_lock guard{lock_};
    count_in(one);
    if (is_limited_) [[unlikely]]
      leave_place(guard);
  }
  if (source_.stop_requested()) one.request_stop();  // a stopper may have told the others before
}

}  // namespace weft::detail
