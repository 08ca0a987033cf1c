// One sleeper. Whoever waits in weft, a task, a fiber or a plain thread, waits as a `sleeper`: one word that says
// whether it waits, who may end the wait, and whether it was told to stop. What it waits in is a `waiter`, an intrusive
// node; primitives know nothing else, so there is one of each primitive and one proof.
//
// The claim. A wait can be ended by a waker (the primitive has what was waited for) or by a stop, on different threads
// at once. Whoever moves the word away from `waiting` owns the sleeper; everyone else forgets it.
//
//   sleeper   takes the primitive's lock, finds nothing to take, enters the line, parks, unlocks, suspends;
//             if park() says that a stop came first, it leaves the line again and ends stopped
//   waker     takes the lock, pops a waiter, claims it: if that fails a stop was first, and it tries the next one, so
//             that nothing handed out is lost; unlocks; wakes; touches nothing after that
//   stopper   sets the stop bit, claims, leaves the line under the lock, wakes the sleeper as stopped
//
// A wait ends once. The word counts waits (its ticket), so a waker that is late by a whole wait claims nothing.
//
// A reader, who wants to see what a sleeper waits in, claims the wait for a moment and gives it back (held_wait): meanwhile
// wakers and stoppers spin, so nothing that belongs to the sleeper moves.
//
// A wait for children that must be joined can't simply leave: it forwards the stop to them, and goes on waiting. If the wait
// ends while the stopper is forwarding, the word records that, and the stopper wakes the sleeper.
//
// Rejected: (a) a stop callback registered at each await: 20 to 40 ns for what almost never happens. (b) The claim word
// in the waiter: a stopper would read memory that a waker is about to free. The sleeper outlives whoever may stop it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/base/config.hpp>
#include <weft/detail/base/peeked.hpp>
#include <weft/detail/core/wait_layout.hpp>
#include <weft/wait_subject.hpp>

namespace weft::detail {

class sleeper;
struct debug_core;
struct wait_watch;
struct wait_children;
class cause_list;

/// What a wait does when its sleeper is told to stop, after the stopper has claimed it.
enum class on_stop {
  left,       // out of the line: the wait had no effect, the sleeper ends stopped
  forwarded,  // the wait goes on, and will be ended by finish()
};

/// How a sleeper goes on.
enum class wake_up { completed, stopped };

class waiter;

/// What all waits of a kind have in common. Null is a function that the kind has no need of.
struct wait_type {
  /// By a stopper that has claimed the wait: leaves the line, or forwards the stop. Null: it is a part of another wait.
  on_stop (*leave)(waiter&) noexcept = nullptr;
  /// For messages.
  const char* name;
  /// Called by the holder of the wait: adds what the wait is for. Takes no lock, whose owner may spin until the wait is
  /// released.
  void (*tell)(const waiter& one, const char* name, wait_subjects& into) noexcept = nullptr;
  /// Does what `leave` does for the first of `those`, all claimed, and for those behind it in the same line. Returns how
  /// many.
  std::size_t (*leave_together)(waiter* const* those, std::size_t count) noexcept = nullptr;
  /// Called by a stopper that has claimed the wait: prefetches what `leave`, which it calls soon, touches first.
  void (*fetch)(const waiter& one) noexcept = nullptr;
  /// Runs a stop that `leave` deferred since it nested too deep: forwards it to the children, and lets the wait end.
  void (*run_deferred_stop)(waiter& one) noexcept = nullptr;
  /// Called first after waiter::try_claim() has claimed it: a case of a select records that it was chosen.
  void (*on_claimed)(waiter& one) noexcept = nullptr;
  /// Called with the claim, before it is woken as stopped, outside of all locks: a case of a select makes the others leave.
  void (*on_stopped)(waiter& one) noexcept = nullptr;
  /// In place of waiter::finish(), where nobody sleeps in it.
  void (*complete)(waiter& one, wake_up how) noexcept = nullptr;
  /// Called where it has ended stopped, by who has waited and was not told to stop: adds why that was. Null: that is not known.
  void (*why)(const waiter& one, cause_list& into) noexcept = nullptr;
  /// What `tell` and its like compute, for who reads the process's memory from outside. Null: there is nothing to be told.
  const wait_layout* layout = nullptr;
  /// Of a wait for children: how a walk finds those. See core/walk.hpp.
  const wait_children* children = nullptr;
};

/// A sleeper's place in a line. Lives in the frame that waits; linked by address.
class waiter {
 public:
  explicit waiter(const wait_type& type) noexcept : type_{&type} {}
  waiter(const waiter&) = delete;
  waiter& operator=(const waiter&) = delete;

  /// By a waker, under the primitive's lock, after taking the waiter out of the line. True: the wait is over, and this
  /// waker owes it a wake(). False: a stop came first; forget this waiter.
  bool try_claim() noexcept;

  /// Lets a claimed sleeper go on; `stopped` if what it waited for ended so. The waiter may be gone when this returns.
  /// Outside of all locks.
  void wake(wake_up how = wake_up::completed) noexcept;

  /// The same, of one that may be a case of a select, where what it waited for may have ended stopped.
  void wake_as_ended(wake_up how) noexcept;

  /// Ends a wait that forwards its stops. Once a wait. The waiter may be gone when this returns.
  void finish(wake_up how = wake_up::completed) noexcept;

  /// The same, for a waiter in which perhaps nobody sleeps.
  void complete(wake_up how) noexcept { type_->complete != nullptr ? type_->complete(*this, how) : finish(how); }

  /// Stands for the wait in which `parked` has parked, too: whoever claims one of them has ended it. By the sleeper, under
  /// the locks of all that they are in.
  void share(const waiter& parked) noexcept {
    sleeper_ = parked.sleeper_;
    ticket_ = parked.ticket_;
  }

  /// Whether both wait for the same kind of thing.
  bool waits_as(const waiter& other) const noexcept { return type_ == other.type_; }
  /// What it is, for messages.
  const char* kind() const noexcept { return type_->name; }
  /// Who has parked in it.
  const sleeper* whose() const noexcept { return sleeper_; }

  waiter* next;  // for the line, under its lock
  waiter* prev;
  bool linked = false;

 protected:
  ~waiter() = default;

  /// Is of another type from now on, before it waits. Gives what it was.
  const wait_type& become(const wait_type& type) noexcept { return *std::exchange(type_, &type); }

 private:
  friend class sleeper;
  friend class held_wait;
  friend struct claim_here;
  friend struct debug_core;
  friend struct stop_here;
  friend struct walk_here;
  WEFT_SELDOM bool claim_with_bits() noexcept;

  plain<sleeper*> sleeper_;  // once it has parked
  plain<std::uint64_t> ticket_;
  const wait_type* type_;
};

/// A line of waiters, first in first out. All under its owner's lock, but for seems_empty().
class waiter_line {
 public:
  bool seems_empty() const noexcept { return first_.peek() == nullptr; }
  bool empty() const noexcept { return first_ == nullptr; }
  waiter* first() const noexcept { return first_; }
  /// Whether nobody else is in line, but whoever has parked in that one, of whose places in one line none lies between.
  bool is_all_of(const waiter& one) const noexcept {
    return first()->whose() == one.whose() && last_->whose() == one.whose();
  }
  void push(waiter& one) noexcept {
    one.next = nullptr;
    one.prev = last_;
    one.linked = true;
    if (last_ != nullptr)
      last_->next = &one;
    else
      first_ = &one;
    last_ = &one;
  }
  /// Goes before all others.
  void push_first(waiter& one) noexcept {
    one.next = first_;
    one.prev = nullptr;
    one.linked = true;
    (!empty() ? one.next->prev : last_) = &one;
    first_ = &one;
  }
  waiter* pop() noexcept { return empty() ? nullptr : pop_first(); }
  /// Of one that is not empty.
  waiter* pop_first() noexcept {
    waiter* const one = first_;
    waiter* const second = one->next;
    one->linked = false;
    first_ = second;
    (second != nullptr ? second->prev : last_) = nullptr;
    return one;
  }
  /// Takes `one` out; false: it is not in the line.
  bool remove(waiter& one) noexcept {
    if (!one.linked) return false;
    one.linked = false;
    if (one.prev != nullptr)
      one.prev->next = one.next;
    else
      first_ = one.next;
    (one.next != nullptr ? one.next->prev : last_) = one.prev;
    return true;
  }

 private:
  peeked<waiter*> first_ = nullptr;
  waiter* last_ = nullptr;
};

/// Anything that can wait: a task, a fiber or a plain thread.
class sleeper {
 public:
  using wake_function = void (*)(sleeper&, wake_up) noexcept;

  explicit sleeper(wake_function wake) noexcept : wake_{wake} {}
  sleeper(const sleeper&) = delete;
  sleeper& operator=(const sleeper&) = delete;

  /// By the sleeper, under the lock of what it waits in: from here on the wait can be ended. False: it was told to stop
  /// and does not wait; `one` was not published.
  bool park(waiter& one) noexcept;

  /// The same for a wait that forwards its stops: always waits. If this returns true, a stop had come before, and the
  /// caller forwards it. Once: that stop does not find this wait.
  bool park_forwarding(waiter& one) noexcept;

  /// Tells it to stop: now if it waits, else at its next wait. True: this was the first time. Whoever calls holds what
  /// keeps the sleeper alive. Any thread.
  bool request_stop() noexcept;

  bool stop_requested() const noexcept {
    return (word_.load(std::memory_order_acquire) & (stop_bit | shield_bit)) == stop_bit;  // <- asked
  }

  /// Whether it was told to stop, also where it is shielded from that now. For people.
  bool was_told_to_stop() const noexcept {
    return (word_.load(std::memory_order_relaxed) & stop_bit) != 0;  // nothing is read that came with the stop
  }

  /// Whether it is woken by this function, which says what it is.
  bool wakes_by(wake_function wake) const noexcept { return wake_ == wake; }

  bool is_shielded() const noexcept {
    return (word_.load(std::memory_order_relaxed) & shield_bit) != 0;  // the sleeper's own bit; it carries no data
  }

  /// While shielded, the sleeper waits as if it had not been told to stop. Returns whether it was shielded before, to be
  /// restored: shields nest. By the sleeper.
  bool shield(bool on) noexcept;

 protected:
  ~sleeper() = default;

 private:
  friend class waiter;
  friend class held_wait;
  friend struct wait_watch;
  friend struct claim_here;
  friend struct debug_core;
  friend struct stop_here;

  // The low bits: what the sleeper does.
  static constexpr std::uint64_t running = 0;           // awake; only the sleeper moves on from here
  static constexpr std::uint64_t waiting = 1;           // may be claimed
  static constexpr std::uint64_t tentative = 2;         // held for a moment, by a reader
  static constexpr std::uint64_t stopping = 3;          // claimed by a stopper, which asks the waiter what to do
  static constexpr std::uint64_t finished = 4;          // the same, and meanwhile the wait ended
  static constexpr std::uint64_t finished_stopped = 5;  // the same, and what it waited for ended stopped
  static constexpr std::uint64_t state_mask = 7;
  static constexpr std::uint64_t stop_bit = 8;
  static constexpr std::uint64_t shield_bit = 16;
  static constexpr std::uint64_t ticket_unit = 32;  // the rest counts waits
  static constexpr std::uint64_t ticket_mask = ~(ticket_unit - 1);

  bool park_now(waiter& one) noexcept;
  WEFT_SELDOM bool park_with_bits(waiter& one) noexcept;
  bool park_forwarding_now(waiter& one) noexcept;
  WEFT_SELDOM bool park_watched(const wait_watch& watch, waiter& one, bool forwarding) noexcept;
  void go_on(wake_up how) noexcept;
  WEFT_SELDOM void go_on_watched(const wait_watch& watch, wake_up how) noexcept;
  std::uint64_t begin_wait(waiter& one, std::uint64_t word) noexcept;
  bool move(std::uint64_t ticket, std::uint64_t from, std::uint64_t to) noexcept;
  WEFT_SELDOM std::uint64_t decided(std::uint64_t ticket) noexcept;
  std::uint64_t set_stop_bit() noexcept;
  bool claim_held_wait(std::uint64_t word) noexcept;
  bool leave_wait(std::uint64_t told) noexcept;
  void has_left(std::uint64_t told) noexcept;

  //   edge park   the sleeper's frame, and the waiter in its slot  ->  whoever claims the wait
  //   edge wake   what the waker gives                             ->  the sleeper (through its executor's post, too)
  //   edge look   what a reader has read of all that              ->  whoever claims the wait after it
  //   edge asked  what led to the stop                             ->  the sleeper that sees the bit
  //
  // test/model/waiter_model.cpp fails without park and asked (wake_stop_and_wait_again, finish_and_stop) and without
  // look (look_wake_and_stop); wake goes through the post, too, which carries it alone.
  atomic<std::uint64_t> word_{running};
  plain<waiter*> current_ = nullptr;  // what it waits in: written before parking, read by who claimed as `stopping`
  wake_function wake_;
};

/// Observes where waits begin and end, in the whole process: used by the test kit and by chaos. At most one is installed.
/// Each park and each wake looks for it with one relaxed load; a program without one pays for nothing else.
struct wait_watch {
  /// By the sleeper, perhaps under the lock of what it waits in.
  void (*parking)(sleeper&) noexcept;
  /// The same, after it has parked. The wait may be claimed by then but has not ended: the waiter has not entered the line
  /// yet.
  void (*parked)(sleeper&, bool waits) noexcept;
  /// By who has claimed a wait, outside of all locks. True: the watch wakes the sleeper, by wake(), perhaps later.
  bool (*waking)(sleeper&, wake_up) noexcept;

  /// By a stopper that has claimed a wait, before the sleeper leaves what it waits in.
  void (*stopping)(sleeper&) noexcept;

  /// Makes one of the delayed wake-ups now. False: there is none, and none is being made.
  bool (*ran_dry)() noexcept;

  static void wake(sleeper& claimed, wake_up how) noexcept;

  /// Installs a watch; null: removes it. What a watch refers to is never destroyed: a thread may be about to call it.
  static void begin(const wait_watch* one) noexcept {
    the_one.store(one, std::memory_order_release);  // -> watch (no model: as declared)
  }
  /// Called where an executor was found empty, by code that runs it by hand or is about to end it. Makes all delayed
  /// wake-ups, so the caller must look into the executor again.
  static void settle() noexcept {
    if (const wait_watch* watch = now()) [[unlikely]]
      while (watch->ran_dry()) {
      }
  }
  static const wait_watch* now() noexcept {
    if (the_one.load(std::memory_order_relaxed) == nullptr) [[likely]]  // a null leads nowhere
      return nullptr;
    return the_one.load(std::memory_order_acquire);  // <- watch (no model: as declared)
  }

 private:
  //   edge watch  what the watch refers to  ->  who parks or wakes. No model: relacy has no words of the whole program.
  static std::atomic<const wait_watch*> the_one;
};

/// Holds a sleeper's wait so that another thread can look at it; false if the sleeper does not wait now. While this lives
/// the wait can't end, and a thread that tries to end it spins: so the holder must not block. The caller keeps the sleeper
/// alive.
class held_wait {
 public:
  explicit held_wait(sleeper& one) noexcept;
  held_wait(const held_wait&) = delete;
  ~held_wait();

  explicit operator bool() const noexcept { return held_; }

  /// What it waits for.
  void tell(wait_subjects& into) const noexcept;
  /// What it waits in.
  waiter& in() const noexcept { return *sleeper_.current_; }
  /// Which of its waits this is.
  std::uint64_t ticket() const noexcept { return ticket_; }
  /// Whether a stopper has claimed its wait now, and forwards the stop to others.
  static bool is_being_stopped(const sleeper& one) noexcept {
    return (one.word_.load(std::memory_order_relaxed) & sleeper::state_mask) >= sleeper::stopping;  // a figure
  }

 private:
  sleeper& sleeper_;
  std::uint64_t ticket_;
  bool held_;
};

}  // namespace weft::detail
