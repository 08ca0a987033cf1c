// What scopes and forks do; their state and who may touch it stands in scope/fork.hpp.
//
// Long because start, end and stop of a fork are one protocol, under one lock.
#include <algorithm>
#include <memory>
#include <new>
#include <weft/detail/core/async_stack.hpp>
#include <weft/scope.hpp>

#include "core/claim.hpp"
#include "core/held_locks.hpp"
#include "core/letting_go.hpp"
#include "core/run_loop.hpp"
#include "core/stop_turn.hpp"
#include "core/worker.hpp"
#include "sched/pool_worker.hpp"

namespace weft::detail {
namespace {

// So many jobs in a worker's deque are enough for those who have none: what is forked beyond runs at once.
constexpr std::size_t enough_offered = 32;

// So many children are told to stop together.
constexpr std::size_t told_at_once = 16;

constexpr std::uintptr_t has_record = 1;

constexpr const char* has_ended = "fork or go was called on a scope that has ended";

const env& inherited() noexcept { return current_env(); }

// Of a coroutine that has not run.
const void* code_of(std::coroutine_handle<> of) noexcept {
  return reinterpret_cast<const void*>(static_cast<const frame*>(of.address())->resume);
}

// Whether any of the pointers is not null, in one branch.
template <class... Pointers>
bool is_any(Pointers*... pointers) noexcept {
  return (reinterpret_cast<std::uintptr_t>(pointers) | ...) != 0;
}

// Whether frames are destroyed by a stop here, or this is a fiber, in one branch.
bool is_unwound_or_fiber(const worker& here) noexcept {
  return (static_cast<std::uintptr_t>(here.unwinds) | reinterpret_cast<std::uintptr_t>(here.fiber)) != 0;
}

constexpr unsigned most_looked_at = 64;  // waits of forks for each other, in search of a ring of them

// Has these bytes fetched, for who is about to change them. Null: nothing.
void prefetch(const void* at, std::size_t bytes) noexcept {
  if (at == nullptr) return;
  for (std::size_t offset = 0; offset < bytes; offset += 64)
    __builtin_prefetch(static_cast<const std::byte*>(at) + offset, 1);
}

// Of the frame of a fork that waits: those of a small one, or what lies at the front of a large one.
constexpr std::size_t bytes_of_frame = 192;

// Of its record: up to the root's flags.
constexpr std::size_t bytes_of_record = 128;

// Of what such a fork waits in.
constexpr std::size_t bytes_of_wait = 256;

}  // namespace

// ---- records ------------------------------------------------------------------------------------------------------------

fork_record::fork_record(scope_core& of) noexcept : root{&of.env_, &of.body_, scope_core::fork_ended} {
  is_fork = true;
  ends_in(scope_core::fork_returned);
}

void fork_record::request_stop_because(const stop_cause& cause) noexcept {
  if (cause_.reason == nullptr) cause_ = cause;
  request_stop();
}

// One to run a fork in. Throws std::bad_alloc.
fork_record& scope_core::take_record() {
  void* room;
  fork_record::own_env* unused = nullptr;
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

// Records have nothing to destroy but the env of a fork_on. By this it is not looked for where a stop has no line of it.
// Not null: nobody has it any more.
inline fork_record::own_env* scope_core::let_go_of_env(fork_record& one) const noexcept {
  return one.env != &env_ ? let_go_of_env(one.env_of_fork_on_) : nullptr;
}
inline fork_record::own_env* scope_core::let_go_of_env(fork_record::own_env* one) const noexcept {
  const std::size_t users = one->users - 1;
  one->users = users;
  return users == 0 ? one : nullptr;
}

void scope_core::give_back(fork_record& one) noexcept {
  --held_;
  one.next_ = free_;
  free_ = &one;
}

// A holder goes. Whoever is the last destroys the frame, under no lock; that may be one of a row, if what held it was a frame
// that goes.
template <bool in_row>
void scope_core::let_go(std::unique_lock<tiny_lock>& guard, fork_record& one) noexcept {
  const unsigned holders = one.holders_.load(std::memory_order_relaxed) - 1;  // under the lock
  one.holders_.store(holders, std::memory_order_release);                     // -> gone (no model: see its declaration)
  if (holders != 0) return;
  if (one.frame_) {
    guard.unlock();
    if constexpr (in_row)
      letting_go::destroy(this_worker(), one.frame_);
    else
      one.frame_.destroy();
    guard.lock();
  }
  one.holders_.store(fork_record::nobody, std::memory_order_relaxed);  // under the lock, as what asks for it
  if (one.in_hand_.load(std::memory_order_relaxed) == fork_record::in_hand::no) give_back(one);
}

void scope_core::retain(fork_record& one) noexcept {
  std::lock_guard guard{lock_};
  one.holders_.store(one.holders_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);  // under the lock
}

void scope_core::drop(fork_record& one) noexcept {
  std::unique_lock guard{lock_};
  let_go<true>(guard, one);
}

void scope_core::drop_awaited(fork_record& one) noexcept {
  std::unique_lock guard{lock_};
  let_go(guard, one);
}

bool scope_core::is_only_holder(const fork_record& one) noexcept {
  std::lock_guard guard{lock_};
  return one.holders_.load(std::memory_order_relaxed) == 1;  // under the lock
}

fork_record& scope_core::share(std::uintptr_t word, failure_function failure_of) {
  fork_record& one = take_record();
  one.frame_ = std::coroutine_handle<>::from_address(reinterpret_cast<void*>(word));
  keep(one, failure_of(one.frame_) != nullptr ? fork_status::failed : fork_status::succeeded);
  return one;
}

// A fork that ended in its first run, and was private until now, gets a record.
void scope_core::keep(fork_record& one, fork_status how) noexcept {
  one.status_.store(how, std::memory_order_relaxed);  // the lock publishes both
  one.holders_.store(1, std::memory_order_relaxed);
  std::lock_guard guard{lock_};
  ++held_;
  if (how == fork_status::stopped) note_stopped_part();
}

// Who is to be woken because forks have ended, when the lock is free.
struct scope_core::called_by_ends {
  waiter_line awaited, with_room;

  bool any() const noexcept { return !awaited.empty() || !with_room.empty(); }
  void wake(wake_up how) noexcept {
    while (waiter* in = awaited.pop()) in->wake_as_ended(how);
    while (waiter* in = with_room.pop()) in->wake();
  }
};

// ---- starting a fork --------------------------------------------------------------------------------------------------------

// Whether what runs here is the body's own code. What a fork's first run calls when its root has been left, as a function
// that cancels, runs on top of the body, which is in start() and has lent its spare record.
inline bool scope_core::runs_body(const worker& here) const noexcept {
  return here.current == &body_ && here.outer != &body_;
}

// Mostly the body forks, its spare record is there, and the fork runs through: that way calls nothing but the fork, and
// saves and puts back no more than it must. The memory is the scope's already, nothing is being unwound, and there is no
// fiber: where a fork runs through, it leaves those as it found them.
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
  frame.resume();  // as the run loop does, which has mostly nothing left to do
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

// Null: it is not for others to take.
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

inline void scope_core::begin(fork_record& one, std::coroutine_handle<> frame, promise_base& promise,
                              failure_function failure_of) noexcept {
  one.adopt(frame, promise);
  one.frame_ = frame;
  one.failure_of_ = failure_of;
  one.function_ = code_of(frame);
}

// Runs a fork up to its first wait. True: it ran through.
[[gnu::always_inline]] inline bool scope_core::run_first(worker& here, fork_record& one,
                                                         std::coroutine_handle<> frame) noexcept {
  // What runs through is no task of its own; else it is counted as begun when it is back, since others may have it by then.
  const bool counts = one.is_counted_like(here.current);
  one.is_uncounted = !counts;
  const run_scope first{here};
  here.current = &one;
  here.starting = &one;
  here.frames.memory = env_.frames;
  ++here.nested_forks;
  frame.resume();  // as the run loop does, which has mostly nothing left to do
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

// Where others take forks from, if this one is for them: a pool's worker that runs tasks of ours, and has not enough there.
inline pool_worker* scope_core::where_to_offer(const worker& here) const noexcept {
  pool_worker* const mine = here.of_pool;
  if (mine == nullptr || !mine->has_others || current_env().executor != env_.executor) return nullptr;
  if (env_.frames != nullptr && !env_.frames->is_shared()) return nullptr;
  return mine->shares(env_.executor) && mine->forks.size() < enough_offered ? mine : nullptr;
}

// Not on a fiber's stack, which is as large as the fiber's own calls need: that one waits, and its thread comes to the fork.
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

// The record for a fork that is not one of many that the body makes: the next spare, or one for this fork alone.
fork_record& scope_core::prepare(std::coroutine_handle<> frame, bool has_place) {
  try {
    worker& here = this_worker();
    const bool by_body = runs_body(here) && here.nested_forks != deepest_nesting;
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

// After the first run of a fork that did not simply run through.
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
  // It ran through, and whoever made it is not the body.
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

std::uintptr_t scope_core::start_on(executor& where, std::coroutine_handle<> frame, promise_base& promise,
                                    failure_function failure_of) {
  WEFT_EXPECTS(env_.frames == nullptr || env_.frames->is_shared() || &where == env_.executor,
               "fork_on to another executor below a scope with memory that was not declared shared: set "
               ".memory_is_shared, and give a resource that is");
  fork_record* one = is_limited_ ? nullptr : start_in_free_record(where, frame, promise, failure_of);
  if (one == nullptr) {
    bool has_place = false;
    try {
      if (is_limited_ && !(has_place = take_place())) throw error{make_error_code(errc::no_room), "fork_on"};
      fork_record::own_env& its = env_on(where);
      try {
        one = &take_record();
      } catch (...) {
        std::unique_lock guard{lock_};
        fork_record::own_env* const unused = let_go_of_env(&its);
        guard.unlock();
        delete unused;
        throw;
      }
      one->env_of_fork_on_ = &its;
    } catch (...) {
      frame.destroy();
      if (has_place) leave_place();
      throw;
    }
    one->env = &one->env_of_fork_on_->env;
    one->has_default_memory = env_.frames == nullptr;
    begin(*one, frame, promise, failure_of);
    link(*one);
  } else if (source_.stop_requested()) {
    one->request_stop();  // as link() does
  }
  one->schedule();
  return reinterpret_cast<std::uintptr_t>(one) | has_record;
}

// Where a record is free and the last fork_on was for the same executor, the lock is taken once for all of it.
inline fork_record* scope_core::start_in_free_record(executor& where, std::coroutine_handle<> frame,
                                                     promise_base& promise, failure_function failure_of) noexcept {
  fork_record::own_env* unused;
  fork_record* one;
  {
    std::lock_guard guard{lock_};
    fork_record::own_env* const its = last_env_;
    if (free_ == nullptr || its == nullptr || its->env.executor != &where) return nullptr;
    one = free_;
    free_ = one->next_;
    its->users = its->users + 1;
    unused = let_go_of_env(*one);
    ::new (static_cast<void*>(one)) fork_record{*this};
    one->env_of_fork_on_ = its;
    one->env = &its->env;
    one->has_default_memory = env_.frames == nullptr;
    begin(*one, frame, promise, failure_of);
    count_in(*one);
  }
  delete unused;
  return one;
}

// That of the last fork_on, if it is for this executor; else a new one. One user more.
fork_record::own_env& scope_core::env_on(executor& where) {
  {
    std::lock_guard guard{lock_};
    if (last_env_ != nullptr && last_env_->env.executor == &where) {
      last_env_->users = last_env_->users + 1;
      return *last_env_;
    }
  }
  const ambient_memory of_scope{env_.frames};
  auto* const made = new fork_record::own_env;
  made->env = env_;
  made->env.executor = &where;
  made->users = 2;
  fork_record::own_env* unused = nullptr;
  {
    std::lock_guard guard{lock_};
    if (last_env_ != nullptr) unused = let_go_of_env(last_env_);
    last_env_ = made;
  }
  delete unused;
  return *made;
}

// Enters a fork that has waited, unless it has ended meanwhile on another thread. A child needs no place besides.
void scope_core::link(fork_record& one) noexcept {
  {
    std::unique_lock guard{lock_};
    count_in(one);
    if (is_limited_) [[unlikely]]
      leave_place(guard);
  }
  if (source_.stop_requested()) one.request_stop();  // whoever told the others may have come before
}

inline void scope_core::count_in(fork_record& one) noexcept {
  WEFT_EXPECTS(live_ != 0, has_ended);
  ++held_;
  if (one.status_.load(std::memory_order_relaxed) != fork_status::running) return;  // under the lock
  atomic<fork_record*>& entered = newest_[children_ % std::size(newest_)];
  one.ahead_ = entered.load(std::memory_order_relaxed);  // as declared
  entered.store(&one, std::memory_order_relaxed);
  ++live_, ++children_;
  add_running(one);
}

void scope_core::add_running(fork_record& one) noexcept {
  one.next_ = running_;
  one.link_ = &running_;
  if (running_ != nullptr) running_->link_ = &one.next_;
  running_ = &one;
}

void scope_core::unlink(fork_record& one) noexcept {
  if (one.link_ == nullptr) return;
  *one.link_ = one.next_;
  if (one.next_ != nullptr) one.next_->link_ = one.link_;
  one.link_ = nullptr;
}

// ---- the end of a fork ------------------------------------------------------------------------------------------------------

// A fork that ends in its first run: only start(), further down this stack, knows of it.
void scope_core::fork_ended(root& self, bool stopped) noexcept {
  auto& one = static_cast<fork_record&>(self);
  if (running_worker().starting != &one) return one.of().ended(one, stopped);
  one.first_run_ = stopped ? fork_record::first_run::stopped : fork_record::first_run::ran_through;
}

// The same for a return, without the way through fork_ended().
void scope_core::fork_returned(frame* end) {
  auto& one = static_cast<fork_record&>(*static_cast<boundary*>(end)->owner);
  worker& here = running_worker();
  if (here.starting != &one) {
    one.count_out(here);
    return one.of().ended(one, false);
  }
  one.first_run_ = fork_record::first_run::ran_through;
}

void scope_core::ended(fork_record& one, bool stopped) noexcept {
  fork_status how = fork_status::stopped;
  bool has_frame = false;
  if (!stopped) {
    const std::exception_ptr* failure = one.failure_of_(one.frame_);
    how = failure != nullptr ? fork_status::failed : fork_status::succeeded;
    if (failure != nullptr) failed(one, *failure);
    // Nobody can become one.
    has_frame = one.holders_.load(std::memory_order_acquire) != 1;  // <- gone (no model: as declared)
    if (!has_frame) one.frame_.destroy();
  }
  leave_root();

  called_by_ends called;
  bool last;
  {
    std::unique_lock guard{lock_};
    if (!has_frame) one.frame_ = nullptr;
    if (stopped) {
      cut_short_ = cut_short_ || one.was_told_by_executor;
      note_stopped_part();
    }
    last = enter_end(guard, one, how, called);
  }
  // The scope may be gone from here on, but for who waits in it.
  called.wake(stopped ? wake_up::stopped : wake_up::completed);
  if (last) finish(this->how());
}

// True: nobody is left that the scope waits for.
inline bool scope_core::enter_end(std::unique_lock<tiny_lock>& guard, fork_record& one, fork_status how,
                                  called_by_ends& called) noexcept {
  one.status_.store(how, std::memory_order_release);  // -> ended
  while (waiter* in = one.line_.pop())
    if (in->try_claim()) called.awaited.push(*in);
  const bool counted = one.link_ != nullptr;  // else whoever started it is still in link()
  if (counted) {
    unlink(one);
    --children_;
    if (!room_.empty()) [[unlikely]]
      give_room(called);
  }
  let_go(guard, one);
  return counted && --live_ == 0;
}

bool scope_core::wait(fork_record& one, waiter& in, root& self) noexcept {
  std::unique_lock guard{lock_};
  const fork_status seen = one.status_.load(std::memory_order_relaxed);  // written under the lock
  if (seen == fork_status::succeeded || seen == fork_status::failed) return false;
  if (unsigned looks = most_looked_at; waits_for(one, self, in, looks) && !self.sleeper::stop_requested())
      [[unlikely]] {
    guard.unlock();
    detail::fail(
        &self == &one
            ? "a fork awaited itself, by its own handle or view: it would never end"
            : "a fork awaited another one that waits for its end, itself or by others: neither would ever end");
  }
  if (seen == fork_status::stopped || !self.park(in)) {
    guard.unlock();
    end_stopped(self);
    return true;
  }
  one.line_.push(in);
  return true;
}

// Whether `one`, which has not ended, waits for the end of `of`, itself or by other forks that nothing else could wake but a
// stop. Looks at so many of them at most: what waits may be a long row, or wide. With the lock.
//
// Of other scopes the lines are looked at where their locks are free: who waits for one while it holds others could wait for
// ever. What waits in a line stays there, and so its scope, as long as the lock is held. So a ring over several scopes is
// mostly found by who closes it, and else waits; one of this scope alone is found, if so many looks show it.
bool scope_core::waits_for(const fork_record& one, const root& of, const waiter& like, unsigned& looks) const noexcept {
  struct held {  // a scope whose lock this holds
    const scope_core& which;
    const held* further_out;
  };
  struct walk {
    const fork_record& one;
    const waiter& like;
    unsigned& looks;

    bool leads_from(const root& of, const held& locked) const noexcept {
      if (is_about_to_be_told(of)) return false;
      if (&of == &one) return true;
      if (!of.is_fork) return false;
      const auto& fork = static_cast<const fork_record&>(of);
      scope_core& in = fork.of();
      for (const held* mine = &locked; mine != nullptr; mine = mine->further_out)
        if (&mine->which == &in) return leads_from_line(fork, locked);
      const std::unique_lock guard{in.lock_, std::try_to_lock};
      return guard.owns_lock() && leads_from_line(fork, {in, &locked});
    }
    // Its scope has been told to stop, and tells each of its forks.
    static bool is_about_to_be_told(const root& of) noexcept {
      return of.is_fork && !of.is_shielded() && static_cast<const fork_record&>(of).of().stop_requested();
    }
    bool leads_from_line(const fork_record& fork, const held& locked) const noexcept {
      for (const waiter* in = fork.line_.first(); in != nullptr; in = in->next) {
        if (looks == 0) return false;
        --looks;
        if (!in->waits_as(like)) continue;
        const auto& by = static_cast<const root&>(*in->whose());
        if (!by.sleeper::stop_requested() && leads_from(by, locked)) return true;
      }
      return false;
    }
  };
  return walk{one, like, looks}.leads_from(of, {*this, nullptr});
}

void scope_core::enter_line(fork_record& one, waiter& in) noexcept { one.line_.push(in); }

on_stop scope_core::leave(fork_record& one, waiter& in) noexcept {
  std::lock_guard guard{lock_};
  one.line_.remove(in);
  return on_stop::left;
}

// ---- room ---------------------------------------------------------------------------------------------------------------------

// A fork is not counted as a child before it has waited, so until then it has a place: else another one that asks
// meanwhile, in its first run or on another thread, would find the same room. Who waits for a place is given one by who
// leaves it, in line; so nobody waits for one while there is any.

inline bool scope_core::is_room_free() const noexcept { return children_ + places_ < options_.max_children; }

bool scope_core::has_room() noexcept {
  std::lock_guard guard{lock_};
  return is_room_free();
}

// Also where the scope is no more: see the destructor.
[[gnu::noinline]] bool scope_core::take_place() noexcept {
  constexpr std::uintptr_t filled = ~std::uintptr_t{0} / 0xff * 0xdd;  // by WEFT_FILLS_FRAMES
  const auto left = reinterpret_cast<std::uintptr_t>(parent_);
  WEFT_EXPECTS(left != 0 && left != filled, has_ended);
  std::lock_guard guard{lock_};
  if (!is_room_free()) return false;
  places_ = places_ + 1;
  return true;
}

void scope_core::leave_place() noexcept {
  std::unique_lock guard{lock_};
  leave_place(guard);
}

void scope_core::leave_place(std::unique_lock<tiny_lock>& guard) noexcept {
  places_ = places_ - 1;
  called_by_ends called;
  give_room(called);
  guard.unlock();
  called.wake(wake_up::completed);
}

// Those who only asked whether there is room are all woken, and may find that it is gone again.
void scope_core::give_room(called_by_ends& called) noexcept {
  while (!room_.empty() && is_room_free()) {
    auto& in = static_cast<room_wait&>(*room_.pop_first());
    if (!in.try_claim()) continue;
    if (in.takes_place) places_ = places_ + 1;
    called.with_room.push(in);
  }
}

std::size_t scope_core::children() noexcept {
  std::lock_guard guard{lock_};
  return children_;
}

bool scope_core::wait_for_room(room_wait& in, root& self) noexcept {
  std::unique_lock guard{lock_};
  if (is_room_free()) {
    if (in.takes_place) places_ = places_ + 1;
    return false;
  }
  if (!self.park(in)) {
    guard.unlock();
    end_stopped(self);
    return true;
  }
  room_.push(in);
  return true;
}

on_stop scope_core::leave_room(room_wait& in) noexcept {
  std::lock_guard guard{lock_};
  room_.remove(in);
  return on_stop::left;
}

std::size_t scope_core::reclaim() noexcept {
  const std::size_t kept = give_back_records();
  if (env_.frames != nullptr) env_.frames->trim();
  return kept;
}

std::size_t scope_core::give_back_records() noexcept {
  fork_record* unused;
  fork_record::own_env* env = nullptr;
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
      if (one == &first_) {  // it stands in the scope
        one->next_ = free_;
        free_ = one;
      }
    }
    delete env;
    if (one != &first_) free_frame(one, sizeof(fork_record));
  }
  return kept;
}

// ---- failures -----------------------------------------------------------------------------------------------------------------

// What is to be done about the failure of a fork.
on_failure scope_core::judge(const std::exception_ptr& failure) noexcept {
  if (!restarts()) return on_failure::fail;
  const on_failure verdict = options_.on_error(failure);
  if (verdict != on_failure::restart) return verdict;
  const restart_limits& limits = options_.on_error.limits();
  const auto now = std::chrono::steady_clock::now();
  std::lock_guard guard{lock_};
  if (restarts_ == 0 || (limits.within != limits.within.max() && now - restarts_since_ > limits.within)) {
    restarts_ = 0;
    restarts_since_ = now;
  }
  return ++restarts_ > limits.restarts ? on_failure::fail : on_failure::restart;
}

bool scope_core::starts_again(const std::exception_ptr& failure) noexcept {
  const on_failure verdict = judge(failure);
  auto& self = static_cast<fork_record&>(*current_root());
  if (verdict == on_failure::restart) {
    look_at_clock(self);
    if (!source_.stop_requested() && !self.stop_requested()) return true;
    std::lock_guard guard{lock_};
    note_stopped_part();  // it would run on, but for the stop
  }
  self.verdict_ = verdict == on_failure::fail ? fork_record::verdict::fail : fork_record::verdict::go_on;
  return false;
}

void scope_core::failed(fork_record& one, const std::exception_ptr& failure) noexcept {
  const auto given = std::exchange(one.verdict_, fork_record::verdict::none);
  if (given == fork_record::verdict::none ? judge(failure) != on_failure::go_on : given == fork_record::verdict::fail)
    fail(failure);
}

void scope_core::fail(const std::exception_ptr& failure) noexcept {
  bool kept = true;
  {
    std::lock_guard guard{lock_};
    const std::exception_ptr& newest = later_ != nullptr ? later_->failure : failure_;
    if (!failure_) {
      failure_ = failure;
    } else if (newest != failure) {  // else a fork's, thrown on by the body
      auto* node = new (std::nothrow) later_failure{failure, later_};
      kept = node != nullptr;
      if (kept) later_ = node;
    }
  }
  if (!kept) lose_error("with_scope", failure);
  if (options_.on_error.what() != error_policy::kind::collect_all)
    request_stop(
        {.reason = "a fork of the scope, or its body, failed", .where = where_, .thrown_in = thrown_in(failure)});
}

// Where there is no memory for a list of all, the first is thrown.
void scope_core::throw_failure() {
  if (!failure_) return;
  const bool throws_all = options_.on_error.what() == error_policy::kind::collect_all;
  if (options_.errors != nullptr || throws_all) {
    error_list list;
    try {
      std::size_t count = 1;
      for (later_failure* one = later_; one != nullptr; one = one->next) ++count;
      items<std::exception_ptr> all{count};
      for (later_failure* one = later_; one != nullptr; one = one->next) all[--count] = one->failure;  // newest first
      all[0] = failure_;
      list = error_list{std::move(all)};
      if (options_.errors != nullptr) *options_.errors = list;
    } catch (const std::bad_alloc&) {
      for (later_failure* one = later_; one != nullptr; one = one->next) lose_error("with_scope", one->failure);
      rethrow(std::move(failure_));
    }
    if (throws_all) throw list;
  }
  rethrow(std::move(failure_));
}

// ---- stop -----------------------------------------------------------------------------------------------------------------------

// Counts as live meanwhile: whoever is told may go on here and now, and the scope would end under the stopper's feet.
bool scope_core::request_stop(const stop_cause& cause) noexcept {
  std::unique_lock guard{lock_};
  if (live_ == 0) return false;  // it has ended, and its task has not come by yet
  ++live_;
  return request_stop_of_live(guard, cause);
}

bool scope_core::request_stop_of_live(std::unique_lock<tiny_lock>& guard, const stop_cause& cause) noexcept {
  const bool has_body = !body_is_over_;
  guard.unlock();
  const bool first = source_.request_stop(cause);
  if (first) {
    if (by_option_ != nullptr && options_.stop_within != clock::duration::max())
      by_option_->overdue.set(later(its_clock().now(), options_.stop_within));
    if (has_body) body_.request_stop();
  }
  guard.lock();
  if (first) tell_children(guard);
  const bool last = --live_ == 0;
  guard.unlock();
  if (last) finish(how());  // else the scope may be gone
  return first;
}

// Those that are entered meanwhile find the stop set. Some at a time are taken in hand: the lock is taken twice for all of
// them, and the caches fetch one beside the others. Those that have ended here are entered together.
void scope_core::tell_children(std::unique_lock<tiny_lock>& guard) noexcept {
  fork_record* some[told_at_once];
  if (running_ == nullptr) return;
  telling_ = std::exchange(running_, nullptr);
  telling_->link_ = &telling_;
  while (telling_ != nullptr) {
    const std::size_t count = take_in_hand(some);
    guard.unlock();
    tell(some, count);
    guard.lock();
    called_by_ends called;
    enter_unwound(guard, some, count, called);
    for (std::size_t i = 0; i != count; ++i) {
      some[i]->in_hand_.store(fork_record::in_hand::no, std::memory_order_relaxed);
      if (some[i]->holders_.load(std::memory_order_relaxed) == fork_record::nobody) give_back(*some[i]);
    }
    if (called.any()) [[unlikely]] {
      guard.unlock();
      called.wake(wake_up::stopped);
      guard.lock();
    }
  }
}

// From the front of those that are to be told, to the front of those that run. In the list each names the next alone, so
// what `ahead_` names is fetched, too; it may be gone, since nobody follows it.
inline std::size_t scope_core::take_in_hand(fork_record** some) noexcept {
  fork_record *const first = telling_, *last = nullptr;
  std::size_t count = 0;
  for (fork_record* one = first; one != nullptr && count != told_at_once; one = one->next_) {
    one->in_hand_.store(fork_record::in_hand::told, std::memory_order_relaxed);
    prefetch(one->ahead_, bytes_of_record);
    prefetch(one->frame_.address(), bytes_of_frame);
    some[count++] = last = one;
  }
  telling_ = last->next_;
  if (telling_ != nullptr) telling_->link_ = &telling_;
  last->next_ = running_;
  if (running_ != nullptr) running_->link_ = &last->next_;
  first->link_ = &running_;
  running_ = first;
  return count;
}

// First all waits are claimed, and those that can leave do so, together where they are in one line; then all end in their turn.
// None stays claimed without having left while code of the program may run, which may complete what it waits for, and destroy
// it. A scope's wait is the exception: it stands in a frame that is not left meanwhile, and is claimed before its turn so that
// it can be fetched.
void scope_core::tell(fork_record* const* some, std::size_t count) noexcept {
  if (wait_watch::now() != nullptr) [[unlikely]] {
    for (std::size_t i = 0; i != count; ++i) some[i]->request_stop();
    return;
  }
  enum class next_step : unsigned char { none, end, tell_children };
  next_step steps[told_at_once]{};
  waiter* leaving[told_at_once];
  std::size_t many = 0;
  const auto leave_lines = [&]() noexcept { stop_here::leave(leaving, std::exchange(many, 0)); };
  for (std::size_t i = 0; i != count; ++i) {
    fork_record& one = *some[i];
    if (!stop_here::claim(one)) continue;
    waiter& in = stop_here::wait_of(one);
    if (stop_here::can_be_fetched(in)) {
      prefetch(&in, bytes_of_wait);
      steps[i] = next_step::tell_children;
    } else if (stop_here::can_leave_together(in)) {
      leaving[many++] = &in;
      steps[i] = next_step::end;
    } else {
      leave_lines();
      if (stop_here::leave(one)) steps[i] = next_step::end;
    }
  }
  leave_lines();

  fork_record* those[told_at_once];
  std::size_t ended = 0;
  for (std::size_t i = 0; i != count; ++i) {
    if (i + 1 != count && steps[i + 1] == next_step::tell_children) stop_here::fetch(*some[i + 1]);
    if (steps[i] == next_step::end) those[ended++] = some[i];
    if (steps[i] != next_step::tell_children) continue;
    end_here(those, std::exchange(ended, 0));  // its children may be many
    fork_record* one = some[i];
    if (stop_here::leave(*one)) end_here(&one, 1);
  }
  end_here(those, ended);
}

// Of forks that have left their waits: those that go on wherever they are woken are unwound here and now, one after the
// other; the rest is woken. Within a job of an inline executor their turn comes after it; and where children are limited, the
// end of each makes room for what the next one's cleanup forks.
void scope_core::end_here(fork_record** those, std::size_t count) noexcept {
  worker& here = this_worker();
  const bool together = here.inlined == nullptr && !is_limited_;
  std::size_t ours = 0;
  for (std::size_t i = 0; i != count; ++i)
    if (together && those[i]->env->executor == nullptr)
      those[ours++] = those[i];
    else
      stop_here::wake(*those[i]);
  if (ours == 0) return;

  const run_scope restored{here};
  const unsigned locks = locks_held();
  inline_queue posted;
  here.inlined = &posted;
  for (std::size_t i = 0; i != ours; ++i) {
    const bool to_its_end = unwind_to_end(here, *those[i]);
    if (to_its_end) those[i]->in_hand_.store(fork_record::in_hand::unwound, std::memory_order_relaxed);
    expect_no_more_locks(locks);
    if (!is_any(here.next.address(), here.local, here.deferred.first, posted.first)) [[likely]]
      continue;
    // Others run now, perhaps for long: who waits for those that have ended is told before that. None of it is a part of this
    // fork, but what a boundary in it goes on with.
    const std::coroutine_handle<> next = std::exchange(here.next, {});
    root* const goes_on = to_its_end ? nullptr : here.current;
    leave_root();
    called_by_ends called;
    {
      std::unique_lock guard{lock_};
      enter_unwound(guard, those, i + 1, called);
    }
    called.wake(wake_up::stopped);
    if (next) enter(here, goes_on);
    detail::run(here, next);
    leave_root();
    while (job* const work = posted.pop()) work->run(*work);  // `work` may be gone after its run
  }
  here.inlined = nullptr;
}

// Their frames are gone, and the scope is here, since the stopper counts as live.
void scope_core::enter_unwound(std::unique_lock<tiny_lock>& guard, fork_record* const* those, std::size_t count,
                               called_by_ends& called) noexcept {
  bool any_was = false;
  for (std::size_t i = 0; i != count; ++i) {
    fork_record& one = *those[i];
    if (one.in_hand_.load(std::memory_order_relaxed) != fork_record::in_hand::unwound) continue;
    one.in_hand_.store(fork_record::in_hand::told, std::memory_order_relaxed);
    one.frame_ = nullptr;
    any_was = true;
    static_cast<void>(enter_end(guard, one, fork_status::stopped, called));
  }
  if (any_was) note_stopped_part();
}

void scope_core::fetch_children(const waiter& self) noexcept {
  prefetch(&static_cast<const scope_core&>(self).env_, sizeof(weft::env));
  for (const atomic<fork_record*>& one : static_cast<const scope_core&>(self).newest_)
    prefetch(one.load(std::memory_order_relaxed), bytes_of_record);  // as declared
}

// Counts as live until its turn.
on_stop scope_core::stop_with_parent(waiter& self) noexcept {
  auto& mine = static_cast<scope_core&>(self);
  worker& here = this_worker();
  std::unique_lock guard{mine.lock_};
  if (mine.live_ == 0) return on_stop::forwarded;
  ++mine.live_;
  if (stop_turn::is_put_off(here)) [[unlikely]] {
    stop_turn::put_off(here, mine);
    return on_stop::forwarded;
  }
  const stop_turn turn{here};
  mine.request_stop_of_live(guard, mine.cause_from_parent());  // mine may be gone after this line
  return on_stop::forwarded;
}

void scope_core::stop_in_turn(waiter& self) noexcept {
  auto& mine = static_cast<scope_core&>(self);
  std::unique_lock guard{mine.lock_};
  mine.request_stop_of_live(guard, mine.cause_from_parent());
}

// Outside is who awaits the scope, or is awaited further out, and what the scope was given. Asked for by the parts that end
// stopped, so who tells notes nothing; but a deadline is no word that could be read. The roots further out wait for this
// scope, so they are here.
bool scope_core::is_stopped_from_outside() const noexcept {
  return past_deadline_ || options_.stop.stop_requested() || parent_->stop_requested();
}

// A part ends stopped: whoever has told it, a stop from outside that is in force then has cut the scope short.
void scope_core::note_stopped_part() noexcept {
  if (!cut_short_) cut_short_ = is_stopped_from_outside();
}

stop_cause scope_core::cause_from_parent() const noexcept {
  return {.reason = "the task that awaits the scope was stopped", .where = where_};
}

void scope_core::stop_it::operator()() const noexcept {
  const stop_cause* cause = from.cause();
  target->request_stop(cause != nullptr ? *cause : stop_cause{});
}

// ---- the scope ------------------------------------------------------------------------------------------------------------------

scope_core::scope_core(const scope_options& options, const weft::env* exactly)
    : waiter{type},
      spare_{&first_},
      parent_{&own_root()},
      env_{exactly != nullptr ? *exactly : inherited()},
      options_{options},
      where_{options.where},
      body_{*this, parent_},
      first_{*this} {
  job::run = body_waits;
  is_limited_ = options.max_children != static_cast<std::size_t>(-1);
  if (is_limited_) {  // then each fork asks for room first
    spare_ = nullptr;
    free_ = &first_;
  }
  if (options.executor != nullptr) env_.executor = options.executor;
  const clock::time_point outer_deadline = inherited().deadline;
  has_deadline_ = options.deadline < outer_deadline;
  env_.deadline = has_deadline_ ? options.deadline : outer_deadline;
  env_.stop = source_.token();
  if (options.memory != nullptr || has_deadline_ || options.stop.stop_possible() ||
      options.stop_within != clock::duration::max())
    prepare_options();
  WEFT_EXPECTS(
      env_.frames == nullptr || options.memory != nullptr || env_.frames->is_shared() ||
          env_.executor == inherited().executor,
      "a scope on another executor below memory that was not declared shared: set .memory_is_shared there, and "
      "give a resource that is");
}

[[gnu::noinline]] void scope_core::prepare_options() {
  by_option_ = ::new (allocate_frame(sizeof(by_option))) by_option{*this};
  if (options_.memory != nullptr) {
    env_.memory = options_.memory;
    env_.memory_is_shared = options_.memory_is_shared || is_per_worker(options_.memory);
    env_.frames = &by_option_->frames.emplace(options_.memory, env_.memory_is_shared);
  }
  if (options_.stop.stop_possible()) by_option_->stop_with_token.emplace(options_.stop, stop_it{this, options_.stop});
}

// Nobody else is here any more.
scope_core::~scope_core() {
  if (by_option_ != nullptr) {
    by_option_->stop_with_token.reset();
    by_option_->deadline.cancel();
    by_option_->overdue.cancel();
  }
  WEFT_EXPECTS(held_ == 0, "a fork's handle or view outlived its scope: it must go, or be awaited, inside");
  if (spare_ != nullptr) {
    spare_->next_ = free_;
    free_ = spare_;
  }
  while (free_ != nullptr) {
    fork_record* const one = std::exchange(free_, free_->next_);
    delete let_go_of_env(*one);
    if (one != &first_) free_frame(one, sizeof(fork_record));
  }
  if (last_env_ != nullptr) delete let_go_of_env(last_env_);
  while (later_ != nullptr) delete std::exchange(later_, later_->next);
  if (by_option_ != nullptr) {
    std::destroy_at(by_option_);
    free_frame(by_option_, sizeof(by_option));
  }
  // Whoever forks by a reference that he kept is told so, as long as nothing else lies here: without a spare record, and
  // with children limited, each fork asks take_place(). To a compiler nobody reads what a destructor leaves.
  spare_ = nullptr;
  is_limited_ = true;
  parent_ = nullptr;
  asm volatile("" : : "r"(this) : "memory");
}

void scope_core::adopt_body(std::coroutine_handle<> frame, promise_base& promise,
                            failure_function failure_of) noexcept {
  body_.adopt(frame, promise);
  body_frame_ = frame;
  body_function_ = code_of(frame);
  body_failure_of_ = failure_of;
}

void scope_core::run_body(root& parent) noexcept {
  worker& here = this_worker();
  const executor* outside = parent.env != nullptr ? parent.env->executor : nullptr;
  if (env_.executor != outside) {
    {
      std::lock_guard guard{lock_};  // a stop may have come by, through the token
      --live_;
    }
    park_parent();
    return body_.schedule();  // the scope may be gone after this line
  }
  parents_start_ = here.starting;
  job::next = here.local;
  here.local = this;  // until the body waits, or has run through
  body_.count_in_like(&parent, here);
  enter(here, &body_);
  here.starting = &body_;
  here.next = body_.top;
}

void scope_core::park_parent() noexcept {
  if (has_deadline_) {
    if (env_.deadline <= its_clock().now())
      deadline_passed(*this);
    else
      by_option_->deadline.set(env_.deadline);
  }
  if (parent_->park_forwarding(*this)) stop_with_parent(*this);
}

// By the run loop: the body has suspended.
void scope_core::body_waits(job& self) noexcept {
  auto& mine = static_cast<scope_core&>(self);
  mine.park_parent();
  mine.count_down();  // mine may be gone after this line
}

void scope_core::body_ended(root& self, bool stopped) noexcept {
  scope_core& mine = *static_cast<body_root&>(self).of;
  mine.body_was_stopped_ = stopped;
  if (stopped)
    mine.request_stop({.reason = "the body of the scope was stopped", .where = mine.where_});
  else if (const std::exception_ptr* failure = mine.body_failure_of_(mine.body_frame_))
    mine.fail(*failure);

  worker& here = this_worker();
  if (here.starting != &mine.body_) {
    leave_root();
    return mine.count_down(true);
  }
  // It ran through: the parent has not parked.
  here.local = mine.job::next;
  {
    std::unique_lock guard{mine.lock_};
    mine.body_is_over_ = true;
    if (--mine.live_ != 1) {
      guard.unlock();
      here.starting = nullptr;
      leave_root();
      mine.park_parent();
      return mine.count_down();
    }
  }
  mine.resume_parent();
}

wake_up scope_core::how() const noexcept {
  return (body_was_stopped_ || cut_short_) && !failure_ ? wake_up::stopped : wake_up::completed;
}

void scope_core::count_down(bool body) noexcept {
  bool last;
  {
    std::lock_guard guard{lock_};
    if (body) body_is_over_ = true;
    last = --live_ == 0;
  }
  if (last) finish(how());  // else the scope may be gone
}

void scope_core::resume_parent() noexcept {
  worker& here = this_worker();
  root& parent = *parent_;
  const root* const was_starting = parents_start_;
  if (how() == wake_up::stopped)
    end_stopped(parent);
  else
    run_next(parent.top, parent);
  here.starting = was_starting;  // the parent has not been away either
}

// ---- handles --------------------------------------------------------------------------------------------------------------------

bool fork_wait::suspend(root& self) noexcept {
  fork_record& one = of_.record();
  return one.of().wait(one, in_line_.emplace(one), self);
}

on_stop fork_wait::sleeping::leave(waiter& self) noexcept {
  fork_record& one = static_cast<sleeping&>(self).of;
  return one.of().leave(one, self);
}

void fail_empty_fork() noexcept {
  fail("an empty fork or view was used: it was moved from, or awaited before (std::move(f) is awaited once)");
}

void fail_shared_fork() noexcept {
  fail("the value of a fork was moved out by co_await std::move(f) while a view of it was left: co_await f");
}

}  // namespace weft::detail
