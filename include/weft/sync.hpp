// What work shares and waits for: mutex, shared_mutex, semaphore, event, auto_event, latch, barrier, condition_variable,
// once, guarded.
//
// There is one of each for tasks, fibers and plain threads: `co_await m.lock()` in a task, `await(m.lock())` in a fiber,
// `sync_wait(m.lock())` on a thread. Whoever waits has its place in line in its own frame, so no primitive allocates, and
// each is of constant size. A wait in a condition_variable and a call of once are tasks, which have a frame.
//
// What holds for all of them:
//
//   Suspends   only where it has to; resumes on its own executor, in the order of arrival.
//   Cancel     leaves the line empty-handed. What was given already wins, so that no permit is lost. A task that was told
//              to stop ends at the await, even if it would not have to wait.
//   Deadline   `timeout(5ms, m.lock())`, as for anything that can be awaited.
//   Threads    any.
//   Lifetime   outlives its waiters and what it gave out: destroyed with somebody in line, it ends the program.
//   Order      what was done before a release is seen by whoever acquires next.
//   Cost       the mutex is taken and given back by one atomic read-modify-write each where nobody waits. All else takes a
//              lock of one byte for a few instructions, and who waits or is woken is parked or posted besides. What else
//              an operation costs is said there.
//
// A lock is given back by the destructor of what `lock()` gives, and so when a task is stopped, too.
//
// A release gives what it releases to the first in line, who owns it before it runs: nobody overtakes, and nobody starves.
// But for a mutex: it is free until the one that was woken runs, so that those that run take it and give it back as often
// as they like, and no convoy forms behind one that is not scheduled yet. Who was overtaken so goes back to the front of the
// line, and is given the mutex by the next release.
//
// Long because they are one family: each is a page, and whoever looks for one looks here.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/base/lock.hpp>
#include <weft/detail/base/peeked.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/core/waiter.hpp>
#include <weft/task.hpp>

namespace weft {

/// What a primitive can tell about its waiters.
struct sync_stats {
  std::size_t waiting;  ///< now in line
  std::uint64_t waits;  ///< so far, that had to get in line
};

namespace detail {

class gate_waiter;
template <class Awaiter, class Primitive, class Argument>
class gate_case;

/// Who has taken something, for who asks what others wait for: a sleeper's address as a number. 0 is nobody.
namespace holder {
inline constexpr std::uintptr_t somebody =
    2;  // who took it without waiting for it is not known: try_lock() is told nothing
inline std::uintptr_t is(const sleeper* one) noexcept { return reinterpret_cast<std::uintptr_t>(one); }
inline const void* of(std::uintptr_t taken) noexcept {
  return taken > somebody ? reinterpret_cast<const void*>(taken) : nullptr;
}
}  // namespace holder

/// How many are in line. Under its lock.
std::size_t length(const waiter_line& line) noexcept;

/// Who was let through, in that order, to be woken when the lock is free.
class let_through {
 public:
  let_through() = default;
  let_through(const let_through&) = delete;
  /// Outside of all locks.
  ~let_through() {
    for (waiter* one = first_; one != nullptr;) std::exchange(one, one->next)->wake();  // it may be gone
  }

  /// One that was taken out of its line. False: a stop came first.
  bool add(waiter& one) noexcept {
    if (!one.try_claim()) return false;
    push(one);
    return true;
  }
  /// The same, claimed already.
  void push(waiter& one) noexcept {
    one.next = nullptr;
    (last_ != nullptr ? last_->next : first_) = &one;
    last_ = &one;
  }
  void add_all(waiter_line& line) noexcept {
    while (waiter* one = line.pop()) add(*one);
  }

 private:
  waiter* first_ = nullptr;
  waiter* last_ = nullptr;
};

/// A lock and a line: what every primitive is made of. All members under the lock, but for its own users.
class gate {
 public:
  gate() = default;
  gate(const gate&) = delete;

  /// Costs the lock, and a walk along the line. For people and tests: it is over when it is read.
  sync_stats stats() const noexcept;

 protected:
  friend class gate_waiter;
  template <class Awaiter, class Primitive, class Argument>
  friend class gate_case;
  /// Waits for who is still inside: one that was let through may be the one who destroys this.
  ~gate();

  using let_through = detail::let_through;

  /// Gets in line and lets go of the lock. `one`, and the primitive, may be gone after this.
  void wait(root& self, gate_waiter& one) noexcept;
  void wait(root& self, gate_waiter& one, waiter_line& line) noexcept;
  /// The same where it is in line.
  void wait_on(root& self, gate_waiter& one, waiter_line& line) noexcept;
  /// In line, of one that has parked: as a case of a select.
  void enter(waiter& one, waiter_line& line) noexcept {
    line.push(one);
    ++waits_;
  }

  mutable tiny_lock lock_;
  waiter_line line_;
  std::uint64_t waits_ = 0;
};

/// Somebody's place in line.
class gate_waiter : public waiter {
 public:
  gate_waiter(const gate_waiter&) = delete;

 protected:
  template <class Awaiter, class Primitive, class Argument>
  friend class gate_case;
  gate_waiter(gate& of, const wait_type& type) noexcept : waiter{type}, gate_{&of} {}
  ~gate_waiter() = default;

  static on_stop leave_line(waiter& self) noexcept;
  static std::size_t leave_together(waiter* const* those, std::size_t count) noexcept;
  static void tell(const waiter& self, const char* what, wait_subjects& into) noexcept {
    into.add(what, static_cast<const gate_waiter&>(self).gate_);
  }

  gate* gate_;
};

/// What an await of a primitive does with its task. One that may find what it wants has two functions besides, for fibers:
/// see detail::may_need_no_wait. One that has no effect before it has what it wants, and so can be a case of a select, has
/// two more, both under the lock:
///   bool try_locked(by)        takes it, if it is there. `by`: as detail::holder
///   void enter_locked()        gets in line; whoever takes it out claims it by let_through
template <class Awaiter>
struct gate_awaiter {
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    return static_cast<Awaiter*>(this)->suspend(suspending(caller));  // the task may be gone after this line
  }
};

/// What a primitive's function returns: nothing happens until it is awaited.
template <class Awaiter, class Primitive, class Argument = std::size_t>
class [[nodiscard("nothing happens until it is awaited")]] at_gate : public knows_roots {
 public:
  using may_be_a_case = void;
  explicit at_gate(Primitive& at, Argument with = {}) noexcept : at_{&at}, with_{with} {}
  Awaiter operator co_await() const noexcept { return Awaiter{*at_, with_}; }
  gate_case<Awaiter, Primitive, Argument> as_case() const noexcept
    requires(!requires { typename Awaiter::has_arrived; })
  {
    return {*at_, with_};
  }

 private:
  Primitive* at_;
  Argument with_;
};

/// Whether who awaits it has done something already when it waits, which leaving does not undo: it is no case of a select.
template <class Awaitable>
inline constexpr bool arrives = false;
template <class Awaiter, class Primitive, class Argument>
  requires requires { typename Awaiter::has_arrived; }
inline constexpr bool arrives<at_gate<Awaiter, Primitive, Argument>> = true;

}  // namespace detail

// ---- mutex ----------------------------------------------------------------------------------------------------------------

/// One at a time. Not recursive. A barging mutex: unlocking it wakes the first in line without handing the mutex to it.
///
/// Order  that of arrival, but for barging: a task that finds the mutex free, because the first in line was woken and does
///        not run yet, takes it. A waiter is overtaken once; then it is handed the mutex.
/// Cost   uncontended, one atomic read-modify-write to lock and one to unlock.
///
///     auto held = co_await m.lock();  // given back at the end of the block
class mutex : public detail::gate {
 public:
  class guard;

  mutex() = default;
  /// Ends the program with a sentence where somebody holds it or waits in it, also one that was woken for it and has not run
  /// yet.
  ~mutex();

  /// Gives a guard that owns the mutex.
  [[nodiscard("nothing happens until it is awaited")]] auto lock() noexcept;
  /// A guard that owns the mutex, or nothing. Never waits.
  [[nodiscard("the mutex is given back where this ends")]] guard try_lock() noexcept;

  /// A hint. Who finds it free sees what the last one did that held it.
  bool is_locked() const noexcept {
    return is_held(state_.load(std::memory_order_acquire));  // <- held (no model: none destroys what it finds free)
  }

 private:
  class awaiter;
  friend class condition_variable;
  friend class once;
  template <class>
  friend class guarded;

  static constexpr std::uintptr_t free = 0, awaited = 1, woken = 4, marks = awaited | woken;
  static constexpr bool is_held(std::uintptr_t word) noexcept { return (word & ~marks) != 0; }

  bool try_take(std::uintptr_t by) noexcept {
    std::uintptr_t found = state_.load(std::memory_order_relaxed);  // a guess: the exchange decides
    if (is_held(found)) return false;
    return state_.compare_exchange_strong(found, found | by, std::memory_order_acquire,  // <- held
                                          std::memory_order_relaxed) ||                  // the next one looks at it
           try_take_again(by);
  }
  bool try_take_again(std::uintptr_t by) noexcept;
  void unlock() noexcept {
    std::uintptr_t found = state_.load(std::memory_order_relaxed);  // written by this holder itself, but for the marks
    if ((found & marks) == awaited ||
        !state_.compare_exchange_strong(found, found & marks, std::memory_order_release,  // -> held
                                        std::memory_order_relaxed))                       // somebody waits now
      unlock_marked();
  }
  void unlock_marked() noexcept;
  bool take_or_mark(std::uintptr_t by, std::uintptr_t without) noexcept;
  void wake_next() noexcept;
  void transition_to_held_by(std::uintptr_t next, std::uintptr_t marked) noexcept;
  void transition_to_free(std::uintptr_t marked) noexcept;

  // free, or its holder (detail::holder), and two marks. Written by the holder, and by whoever takes it when it is free. The
  // marks are set and cleared only under the lock of the line.
  //
  //   awaited  somebody may be in line
  //   woken    the first in line was woken to take the mutex, and has not run yet: nobody else is woken
  //
  //   edge held  what the holder did  ->  the next one that finds it free. To one that is handed the mutex, its wake-up
  //              carries that
  detail::atomic<std::uintptr_t> state_{free};
};

/// Owns a mutex, or nothing. Moves. Gives the mutex back when it ends.
class [[nodiscard("the mutex is given back where this ends")]] mutex::guard {
 public:
  guard() noexcept = default;
  guard(guard&& other) noexcept : of_{std::exchange(other.of_, nullptr)} {}
  guard& operator=(guard&& other) noexcept {
    guard{std::move(other)}.swap(*this);
    return *this;
  }
  ~guard() { unlock(); }

  explicit operator bool() const noexcept { return of_ != nullptr; }
  /// Gives it back now.
  void unlock() noexcept {
    if (of_ != nullptr) std::exchange(of_, nullptr)->unlock();
  }
  void swap(guard& other) noexcept { std::swap(of_, other.of_); }

 private:
  friend class mutex;
  friend class condition_variable;
  template <class>
  friend class guarded;
  explicit guard(mutex* of) noexcept : of_{of} {}

  mutex* of_ = nullptr;
};

class mutex::awaiter : public detail::gate_waiter, detail::frame {
 public:
  explicit awaiter(mutex& of, std::size_t) noexcept : gate_waiter{of, type} {}

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    detail::root& self = detail::suspending(caller);
    if (!self.sleeper::stop_requested() && of().try_take(detail::holder::is(&self))) return false;
    return suspend(self);  // the task may be gone after this line
  }
  bool seems_ready() const noexcept { return !static_cast<const mutex&>(*gate_).is_locked(); }
  bool done_at_once(const detail::root& self) noexcept {
    return !self.sleeper::stop_requested() && of().try_take(detail::holder::is(&self));
  }
  // Where it is not free, it is marked as awaited, so that the holder takes the lock to wake the first in line.
  bool try_locked(std::uintptr_t by) noexcept { return of().take_or_mark(by, 0); }
  void enter_locked() noexcept {
    overtaken_ = true;  // it is handed the mutex: a select that was only woken could not go back into all its lines
    of().enter(*this, of().line_);
  }
  guard await_resume() noexcept { return guard{&of()}; }

 private:
  friend class mutex;
  mutex& of() noexcept { return static_cast<mutex&>(*gate_); }
  bool suspend(detail::root& self) noexcept;
  void wake_to_retry() noexcept;
  static void retry(frame* self);
  static void tell(const waiter& self, const char* what, detail::wait_subjects& into) noexcept;
  static constexpr detail::wait_type type{
      .leave = leave_line, .name = "mutex", .tell = tell, .leave_together = leave_together};

  // From here on, while it waits. When the waiter is woken without the mutex, this frame runs in the waiter's place: it takes
  // the mutex, or waits again.
  detail::root* self_;
  detail::frame_address then_;
  bool overtaken_;
};

inline auto mutex::lock() noexcept { return detail::at_gate<awaiter, mutex>{*this}; }
inline mutex::guard mutex::try_lock() noexcept { return guard{try_take(detail::holder::somebody) ? this : nullptr}; }

// ---- shared_mutex ---------------------------------------------------------------------------------------------------------

struct shared_mutex_options {
  bool prefer_writers = false;  ///< who wants it alone goes before all who would share it; else in the order of arrival
};

/// One alone, or many that share it; and one of those that share it may announce that it will want it alone.
///
/// Cost  readers take the lock of one byte, too, so they share what it guards, not its cache line: where a look takes less
///       than some 100 ns, a mutex is as good.
class shared_mutex : public detail::gate {
 public:
  enum class mode : unsigned char { shared, upgradable, alone };

  /// Owns the mutex in one of these ways, or nothing. Moves.
  template <mode Mode>
  class holder;
  using shared_guard = holder<mode::shared>;
  using upgradable_guard = holder<mode::upgradable>;
  using guard = holder<mode::alone>;

  explicit shared_mutex(shared_mutex_options options = {}) noexcept : options_{options} {}
  ~shared_mutex();

  /// Alone.
  [[nodiscard("nothing happens until it is awaited")]] auto lock() noexcept;
  /// With others that share it.
  [[nodiscard("nothing happens until it is awaited")]] auto lock_shared() noexcept;
  /// The same, and the only one that may upgrade().
  [[nodiscard("nothing happens until it is awaited")]] auto lock_upgradable() noexcept;
  [[nodiscard("the mutex is given back where this ends")]] guard try_lock() noexcept;
  [[nodiscard("the mutex is given back where this ends")]] shared_guard try_lock_shared() noexcept;
  [[nodiscard("the mutex is given back where this ends")]] upgradable_guard try_lock_upgradable() noexcept;

  /// Of all that wait: to share it, to have it alone, and to upgrade.
  sync_stats stats() const noexcept;

 private:
  using waiter_line = detail::waiter_line;
  class waiter_for;
  template <mode Mode>
  class awaiter;
  class upgrade_awaiter;

  waiter_line& line_of(mode how) noexcept { return options_.prefer_writers && how == mode::alone ? writers_ : line_; }
  bool is_open(mode how) const noexcept;
  bool goes_first(mode how) const noexcept;
  void take(mode how, std::uintptr_t by) noexcept;
  bool try_take(mode how) noexcept;
  void release(mode how) noexcept;
  void downgrade(mode from) noexcept;
  void grant(let_through& through) noexcept;
  void grant_and_unlock() noexcept;
  bool is_open_to_all() const noexcept;
  bool grant_first(waiter_line& line, let_through& through) noexcept;
  waiter_for* next_in(const waiter_line& line) const noexcept;

  const shared_mutex_options options_;
  waiter_line writers_;  // with prefer_writers, those that want it alone
  std::size_t sharing_ = 0;
  // Who holds it so (detail::holder). Under the lock, but for who asks what others wait for: relaxed, it carries nothing.
  detail::atomic<std::uintptr_t> alone_{0};
  detail::atomic<std::uintptr_t> upgradable_{0};
  detail::waiter* upgrading_ = nullptr;  // and waits for those that share it to leave
};

template <shared_mutex::mode Mode>
class [[nodiscard("the mutex is given back where this ends")]] shared_mutex::holder {
 public:
  holder() noexcept = default;
  holder(holder&& other) noexcept : of_{std::exchange(other.of_, nullptr)} {}
  holder& operator=(holder&& other) noexcept {
    holder{std::move(other)}.swap(*this);
    return *this;
  }
  ~holder() { unlock(); }

  explicit operator bool() const noexcept { return of_ != nullptr; }
  void unlock() noexcept {
    if (of_ != nullptr) std::exchange(of_, nullptr)->release(Mode);
  }
  void swap(holder& other) noexcept { std::swap(of_, other.of_); }

  /// Waits until nobody else shares the mutex, then has it alone: `auto alone = co_await std::move(held).upgrade();`.
  /// Nobody else has had it alone in between. Stopped, it is held as before.
  [[nodiscard("nothing happens until it is awaited")]] auto upgrade() && noexcept
    requires(Mode == mode::upgradable);

  /// Shares the mutex from now on; others that share it come in.
  shared_guard downgrade() && noexcept
    requires(Mode != mode::shared)
  {
    WEFT_EXPECTS(of_ != nullptr, "a guard that owns no mutex was downgraded");
    of_->downgrade(Mode);
    return shared_guard{std::exchange(of_, nullptr)};
  }

 private:
  friend class shared_mutex;
  template <mode>
  friend class holder;
  explicit holder(shared_mutex* of) noexcept : of_{of} {}

  shared_mutex* of_ = nullptr;
};

class shared_mutex::waiter_for : public detail::gate_waiter {
 public:
  waiter_for(shared_mutex& of, mode how) noexcept : gate_waiter{of, type}, how_{how} {}
  bool suspend(detail::root& self) noexcept;
  bool seems_ready() const noexcept;
  bool done_at_once(const detail::root& self) noexcept;
  bool try_locked(std::uintptr_t by) noexcept;
  void enter_locked() noexcept { of().enter(*this, of().line_of(how_)); }

 protected:
  bool take_or_wait(detail::root& self) noexcept;
  ~waiter_for() = default;
  friend class shared_mutex;
  shared_mutex& of() noexcept { return static_cast<shared_mutex&>(*gate_); }
  static detail::on_stop leave(detail::waiter& self) noexcept;
  static void tell(const waiter& self, const char* what, detail::wait_subjects& into) noexcept;
  static constexpr detail::wait_type type{.leave = leave, .name = "shared_mutex", .tell = tell};

  const mode how_;
};

template <shared_mutex::mode Mode>
class shared_mutex::awaiter : public waiter_for, public detail::gate_awaiter<awaiter<Mode>> {
 public:
  explicit awaiter(shared_mutex& of, std::size_t) noexcept : waiter_for{of, Mode} {}
  using waiter_for::done_at_once;
  using waiter_for::seems_ready;
  using waiter_for::suspend;
  holder<Mode> await_resume() noexcept { return holder<Mode>{&of()}; }
};

class shared_mutex::upgrade_awaiter : public detail::gate_waiter, public detail::gate_awaiter<upgrade_awaiter> {
 public:
  explicit upgrade_awaiter(upgradable_guard& from, std::size_t) noexcept;
  bool suspend(detail::root& self) noexcept;
  bool seems_ready() const noexcept { return true; }  // mostly nobody shares it any more, or soon
  bool done_at_once(const detail::root& self) noexcept;
  bool try_locked(std::uintptr_t by) noexcept;
  void enter_locked() noexcept {
    of().upgrading_ = this;
    ++of().waits_;
  }
  guard await_resume() noexcept { return guard{std::exchange(from_.of_, nullptr)}; }

 private:
  static detail::on_stop leave(detail::waiter& self) noexcept;
  static constexpr detail::wait_type type{.leave = leave, .name = "shared_mutex, to upgrade", .tell = tell};
  static shared_mutex& owned_by(upgradable_guard& from) noexcept;
  shared_mutex& of() noexcept { return static_cast<shared_mutex&>(*gate_); }
  upgradable_guard& from_;
};

inline auto shared_mutex::lock() noexcept { return detail::at_gate<awaiter<mode::alone>, shared_mutex>{*this}; }
inline auto shared_mutex::lock_shared() noexcept { return detail::at_gate<awaiter<mode::shared>, shared_mutex>{*this}; }
inline auto shared_mutex::lock_upgradable() noexcept {
  return detail::at_gate<awaiter<mode::upgradable>, shared_mutex>{*this};
}
inline shared_mutex::guard shared_mutex::try_lock() noexcept { return guard{try_take(mode::alone) ? this : nullptr}; }
inline shared_mutex::shared_guard shared_mutex::try_lock_shared() noexcept {
  return shared_guard{try_take(mode::shared) ? this : nullptr};
}
inline shared_mutex::upgradable_guard shared_mutex::try_lock_upgradable() noexcept {
  return upgradable_guard{try_take(mode::upgradable) ? this : nullptr};
}
template <shared_mutex::mode Mode>
auto shared_mutex::holder<Mode>::upgrade() && noexcept
  requires(Mode == mode::upgradable)
{
  WEFT_EXPECTS(of_ != nullptr, "a guard that owns no mutex was upgraded");
  return detail::at_gate<upgrade_awaiter, holder>{*this};
}

// ---- semaphore ------------------------------------------------------------------------------------------------------------

/// So many permits.
///
///     auto permit = co_await limit.acquire();  // given back at the end of the block
class semaphore : public detail::gate {
 public:
  class permit;

  explicit semaphore(std::size_t permits) noexcept : available_{permits} {}

  /// Takes `count` permits at once. Who wants many waits in line like all others, and those behind wait, too.
  [[nodiscard("nothing happens until it is awaited")]] auto acquire(std::size_t count = 1) noexcept;
  /// The permits, or nothing. Never waits, and never overtakes.
  [[nodiscard("the permits are given back where this ends")]] permit try_acquire(std::size_t count = 1) noexcept;
  /// Adds permits: those that were taken and kept, or new ones. Cost: a wake-up for each that it lets through.
  void release(std::size_t count = 1) noexcept;

  std::size_t available() const noexcept;  ///< over when it is read

 private:
  class awaiter;
  void grant(let_through& through) noexcept;
  awaiter* next() const noexcept;
  detail::peeked<std::size_t> available_;
};

/// Permits of a semaphore, or nothing. Moves. Gives them back when it ends.
class [[nodiscard("the permit is given back where this ends")]] semaphore::permit {
 public:
  permit() noexcept = default;
  permit(permit&& other) noexcept : of_{std::exchange(other.of_, nullptr)}, count_{other.count_} {}
  permit& operator=(permit&& other) noexcept {
    release();
    of_ = std::exchange(other.of_, nullptr);
    count_ = other.count_;
    return *this;
  }
  ~permit() { release(); }

  explicit operator bool() const noexcept { return of_ != nullptr; }
  /// Gives them back now.
  void release() noexcept {
    if (of_ != nullptr) std::exchange(of_, nullptr)->release(count_);
  }
  /// Forgets them: somebody else calls semaphore::release, or nobody.
  void keep() noexcept { of_ = nullptr; }

 private:
  friend class semaphore;
  permit(semaphore* of, std::size_t count) noexcept : of_{of}, count_{count} {}

  semaphore* of_ = nullptr;
  std::size_t count_ = 0;
};

class semaphore::awaiter : public detail::gate_waiter, public detail::gate_awaiter<awaiter> {
 public:
  awaiter(semaphore& of, std::size_t count) noexcept : gate_waiter{of, type}, count_{count} {}
  bool suspend(detail::root& self) noexcept;
  bool seems_ready() const noexcept { return static_cast<const semaphore&>(*gate_).available_.peek() >= count_; }
  bool done_at_once(const detail::root& self) noexcept;
  bool try_locked(std::uintptr_t) noexcept;
  void enter_locked() noexcept { of().enter(*this, of().line_); }
  permit await_resume() noexcept { return permit{&of(), count_}; }

 private:
  friend class semaphore;
  semaphore& of() noexcept { return static_cast<semaphore&>(*gate_); }
  static detail::on_stop leave(detail::waiter& self) noexcept;
  static constexpr detail::wait_type type{.leave = leave, .name = "semaphore", .tell = tell};
  const std::size_t count_;
};

inline auto semaphore::acquire(std::size_t count) noexcept { return detail::at_gate<awaiter, semaphore>{*this, count}; }

// ---- events, latch, barrier -------------------------------------------------------------------------------------------------

/// Open or shut: all pass while it is set.
///
/// Cost  to pass one that is set, or to ask, a load; to set it, a wake-up for each that waits.
class event : public detail::gate {
 public:
  explicit event(bool set = false) noexcept : set_{set} {}

  void set() noexcept;
  void reset() noexcept;
  bool is_set() const noexcept { return set_.load(std::memory_order_acquire); }  // <- set
  [[nodiscard("nothing happens until it is awaited")]] auto wait() noexcept;

 private:
  class awaiter;
  //   edge set  what was done before set()  ->  who finds it set. One that waited has it by its wake-up
  detail::atomic<bool> set_;
};

class event::awaiter : public detail::gate_waiter, public detail::gate_awaiter<awaiter> {
 public:
  explicit awaiter(event& of, std::size_t) noexcept : gate_waiter{of, type} {}
  bool suspend(detail::root& self) noexcept;
  bool seems_ready() const noexcept { return static_cast<const event&>(*gate_).is_set(); }
  bool done_at_once(const detail::root& self) noexcept { return !self.sleeper::stop_requested() && seems_ready(); }
  bool try_locked(std::uintptr_t) const noexcept { return seems_ready(); }
  void enter_locked() noexcept {
    auto& e = static_cast<event&>(*gate_);
    e.enter(*this, e.line_);
  }
  void await_resume() const noexcept {}

 private:
  static constexpr detail::wait_type type{
      .leave = leave_line, .name = "event", .tell = tell, .leave_together = leave_together};
};
inline auto event::wait() noexcept { return detail::at_gate<awaiter, event>{*this}; }

/// Lets one pass each time it is set: who waits first, or else who comes next. Set twice, it lets one pass.
class auto_event : public detail::gate {
 public:
  explicit auto_event(bool set = false) noexcept : set_{set} {}

  void set() noexcept;
  [[nodiscard("nothing happens until it is awaited")]] auto wait() noexcept;

 private:
  class awaiter;
  detail::peeked<bool> set_;
};

class auto_event::awaiter : public detail::gate_waiter, public detail::gate_awaiter<awaiter> {
 public:
  explicit awaiter(auto_event& of, std::size_t) noexcept : gate_waiter{of, type} {}
  bool suspend(detail::root& self) noexcept;
  bool seems_ready() const noexcept { return static_cast<const auto_event&>(*gate_).set_.peek(); }
  bool done_at_once(const detail::root& self) noexcept;
  bool try_locked(std::uintptr_t) noexcept;
  void enter_locked() noexcept {
    auto& e = static_cast<auto_event&>(*gate_);
    e.enter(*this, e.line_);
  }
  void await_resume() const noexcept {}

 private:
  static constexpr detail::wait_type type{
      .leave = leave_line, .name = "auto_event", .tell = tell, .leave_together = leave_together};
};
inline auto auto_event::wait() noexcept { return detail::at_gate<awaiter, auto_event>{*this}; }

/// Opens when it was counted down to zero, for good.
///
/// Cost  the last count wakes each that waits.
class latch : public detail::gate {
 public:
  explicit latch(std::size_t count) noexcept : left_{count} {}

  /// By no more than is left: else it ends the program.
  void count_down(std::size_t by = 1) noexcept;
  bool is_open() const noexcept;
  [[nodiscard("nothing happens until it is awaited")]] auto wait() noexcept;
  /// Counts down by one, which a stop does not take back, and waits. No case of a select: that is count_down() before it, and
  /// wait().
  [[nodiscard("nothing happens until it is awaited")]] auto arrive_and_wait() noexcept;

 private:
  class awaiter;
  class arriving;
  void count_down(std::size_t by, let_through& through) noexcept;
  detail::peeked<std::size_t> left_;
};

class latch::awaiter : public detail::gate_waiter, public detail::gate_awaiter<awaiter> {
 public:
  awaiter(latch& of, std::size_t arrives) noexcept : gate_waiter{of, type}, arrives_{arrives} {}
  bool suspend(detail::root& self) noexcept;
  bool seems_ready() const noexcept { return static_cast<const latch&>(*gate_).left_.peek() == arrives_; }
  bool done_at_once(const detail::root& self) noexcept;
  bool try_locked(std::uintptr_t) const noexcept { return static_cast<const latch&>(*gate_).left_ == 0; }
  void enter_locked() noexcept {
    auto& l = static_cast<latch&>(*gate_);
    l.enter(*this, l.line_);
  }
  void await_resume() const noexcept {}

 private:
  static constexpr detail::wait_type type{
      .leave = leave_line, .name = "latch", .tell = tell, .leave_together = leave_together};
  const std::size_t arrives_;
};
class latch::arriving : public awaiter {
 public:
  using awaiter::awaiter;
  using has_arrived = void;
};
inline auto latch::wait() noexcept { return detail::at_gate<awaiter, latch>{*this, 0}; }
inline auto latch::arrive_and_wait() noexcept { return detail::at_gate<arriving, latch>{*this, 1}; }

/// Lets a number of parties pass together, again and again.
///
/// Cost  who comes last wakes each of the others.
class barrier : public detail::gate {
 public:
  explicit barrier(std::size_t parties) noexcept : parties_{parties} {
    WEFT_EXPECTS(parties != 0, "a barrier of no parties was made: nobody could be the last to arrive");
  }

  /// Waits for the others. Gives true to the one that came last, so that one does what is done once a phase. One that is
  /// stopped has not arrived: the others wait on. No case of a select, since the others may have passed by the time at which
  /// another case is chosen: fork it, and give the fork.
  [[nodiscard("nothing happens until it is awaited")]] auto arrive_and_wait() noexcept;
  /// One party less, from this phase on. If all others have arrived they pass, and the last of them gets true.
  void drop() noexcept;

 private:
  class awaiter;
  void pass(let_through& through, bool tells_last) noexcept;
  detail::peeked<std::size_t> parties_;
  detail::peeked<std::size_t> arrived_;
};

class barrier::awaiter : public detail::gate_waiter, public detail::gate_awaiter<awaiter> {
 public:
  using has_arrived = void;
  explicit awaiter(barrier& of, std::size_t) noexcept : gate_waiter{of, type} {}
  bool suspend(detail::root& self) noexcept;
  bool seems_ready() const noexcept;
  bool done_at_once(const detail::root& self) noexcept;
  bool await_resume() const noexcept { return last_; }

 private:
  friend class barrier;
  static detail::on_stop leave(detail::waiter& self) noexcept;
  static constexpr detail::wait_type type{.leave = leave, .name = "barrier", .tell = tell};
  bool last_ = false;
};
inline auto barrier::arrive_and_wait() noexcept { return detail::at_gate<awaiter, barrier>{*this}; }

// ---- condition_variable -----------------------------------------------------------------------------------------------------

/// Waits for what a mutex guards to change.
///
/// Cost  a wait is a task, with a frame from the frame memory; it lets go of the mutex and takes it again. To notify wakes
///       one, or each that waits, who then gets in line for the mutex.
///
///     auto held = co_await m.lock();
///     co_await changed.wait(held, [&] { return !queue.empty(); });
class condition_variable : public detail::gate {
 public:
  condition_variable() = default;

  /// Lets go of the mutex, waits to be notified, and has the mutex again when it returns. Never wakes without cause.
  ///
  /// Cancel  ends stopped, and `held` owns nothing then, unless it never began: ask the guard. One that was notified gets
  ///         the mutex first, so that no notification is lost.
  /// Fails   with two mutexes at once, the program ends with a sentence.
  task<> wait(mutex::guard& held);

  /// Waits until `holds()` does, which is asked while the mutex is held.
  template <class Predicate>
  auto wait(mutex::guard& held, Predicate&& holds) {
    WEFT_EXPECTS_NO_DOOMED_TEMPORARY(Predicate);
    return wait_until_it_holds<std::decay_t<Predicate>>(*this, held, std::forward<Predicate>(holds));
  }

  void notify_one() noexcept;
  void notify_all() noexcept;

 private:
  class awaiter;
  template <class Predicate>
  static task<> wait_until_it_holds(condition_variable& self, mutex::guard& held, Predicate holds) {
    while (!holds()) co_await self.wait(held);
  }
};

class condition_variable::awaiter : detail::gate_waiter, public detail::gate_awaiter<awaiter> {
 public:
  awaiter(condition_variable& of, mutex::guard* held) noexcept
      : gate_waiter{of, type}, held_{*held}, with_{held->of_} {}
  bool suspend(detail::root& self) noexcept;
  void await_resume() const noexcept {}

 private:
  static constexpr detail::wait_type type{
      .leave = leave_line, .name = "condition_variable", .tell = tell, .leave_together = leave_together};
  mutex::guard& held_;
  const mutex* const with_;
};

// ---- once, guarded ----------------------------------------------------------------------------------------------------------

/// Does something once, whoever comes first; the others wait for it. If it fails or is stopped, the next one tries.
///
/// Fails     the function must not call this again, and wait for it: where it does in its own task, the program ends with a
///           sentence.
/// Lifetime  whoever call() let through may destroy this, also while the one that did it is still on its way out. Who only
///           asked is_done() may not.
/// Cost      once it is done, two loads, and the frame of a task that ends at once; ask is_done() first where that counts.
class once {
 public:
  /// `fn()` gives something to await, or does all at once. What it throws is thrown to who called it.
  template <class F>
  auto call(F&& fn) {
    WEFT_EXPECTS_NO_DOOMED_TEMPORARY(F);
    return run<std::decay_t<F>>(*this, std::forward<F>(fn));
  }
  bool is_done() const noexcept { return state_.load(std::memory_order_acquire) == done; }  // <- done
  /// Of those who found somebody at it, and waited for that one.
  sync_stats stats() const noexcept { return mutex_.stats(); }

 private:
  class awaiter;
  class turn;
  /// Ends the program if the coroutine is awaited, in its own task, by the one that has its turn.
  void expect_others(std::coroutine_handle<> caller) const noexcept;
  template <class F>
  static task<> run(once& self, F fn);

  mutex mutex_;
  static constexpr std::uintptr_t open = 0, done = 1;
  // open, done, or the address of the coroutine that runs the function. Written by the holder of the mutex. Relaxed but for
  // `done`: nobody follows the address. A coroutine compares it with those that await it, each of which has written it
  // before, or never.
  //
  //   edge done  what it did  ->  who finds it done
  detail::atomic<std::uintptr_t> state_{open};
};

/// Of the one that does it, or finds it done.
class once::turn {
 public:
  turn(mutex::guard held, once& of, std::uintptr_t mine) noexcept : held_{std::move(held)}, of_{of}, mine_{mine} {}
  turn(const turn&) = delete;
  // And then it gives the mutex back.
  ~turn() {
    if (!of_.is_done()) of_.state_.store(open, std::memory_order_relaxed);  // as declared
  }

  /// False: it is done.
  bool begins() const noexcept {
    if (of_.is_done()) return false;
    of_.state_.store(mine_, std::memory_order_relaxed);  // as declared
    return true;
  }

 private:
  mutex::guard held_;
  once& of_;
  std::uintptr_t mine_;
};

class once::awaiter : public mutex::awaiter {
 public:
  explicit awaiter(once& of, std::size_t) noexcept : mutex::awaiter{of.mutex_, 0}, of_{of} {}
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    caller_ = reinterpret_cast<std::uintptr_t>(caller.address());
    if (of_.mutex_.is_locked()) [[unlikely]]
      of_.expect_others(caller);
    return mutex::awaiter::await_suspend(caller);
  }
  turn await_resume() noexcept { return turn{mutex::awaiter::await_resume(), of_, caller_}; }

 private:
  once& of_;
  std::uintptr_t caller_ = 0;
};

template <class F>
task<> once::run(once& self, F fn) {
  if (self.is_done() && !self.mutex_.is_locked()) co_return;  // who did it has left: nobody comes back here
  const turn mine = co_await detail::at_gate<awaiter, once>{self};
  if (!mine.begins()) co_return;
  if constexpr (awaitable<std::invoke_result_t<F&>>)
    static_cast<void>(co_await fn());
  else
    fn();
  self.state_.store(done, std::memory_order_release);  // -> done
}

/// A value that can only be reached by who holds its mutex.
///
/// Cost  that of the mutex.
///
///     guarded<std::map<int, user>> users;
///     auto all = co_await users.lock();
///     all->erase(7);
template <class T>
class guarded {
 public:
  template <class... Args>
    requires std::is_constructible_v<T, Args...>
  explicit guarded(Args&&... args) : value_(std::forward<Args>(args)...) {}

  /// Access to the value, until it ends. Moves.
  class [[nodiscard("the value is given back where this ends")]] access {
   public:
    T& operator*() const noexcept { return *value_; }
    T* operator->() const noexcept { return value_; }
    explicit operator bool() const noexcept { return static_cast<bool>(held_); }
    void unlock() noexcept { held_.unlock(); }

   private:
    friend class guarded;
    access(mutex::guard held, T& value) noexcept : held_{std::move(held)}, value_{std::addressof(value)} {}
    mutex::guard held_;
    T* value_;
  };

  [[nodiscard("nothing happens until it is awaited")]] auto lock() noexcept {
    return detail::at_gate<awaiter, guarded>{*this};
  }
  [[nodiscard("the value is given back where this ends")]] access try_lock() noexcept {
    return access{mutex_.try_lock(), value_};
  }
  sync_stats stats() const noexcept { return mutex_.stats(); }

 private:
  class awaiter : public mutex::awaiter {
   public:
    explicit awaiter(guarded& of, std::size_t) noexcept : mutex::awaiter{of.mutex_, 1}, of_{of} {}
    access await_resume() noexcept { return access{mutex::awaiter::await_resume(), of_.value_}; }

   private:
    guarded& of_;
  };

  mutex mutex_;
  T value_;
};

}  // namespace weft
