// What a select waits with, whatever its cases are. Part of select.hpp; how it works is in select_core.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <weft/detail/base/lock.hpp>
#include <weft/detail/channel/case_layout.hpp>
#include <weft/detail/channel/channel_core.hpp>
#include <weft/detail/core/root.hpp>
#include <weft/detail/core/waiter.hpp>
#include <weft/detail/sync/learning_lock.hpp>

namespace weft::detail {

/// The lock of one case, of either kind; or of one that needs none. One word, by which they are ordered.
class case_lock {
 public:
  case_lock() noexcept = default;
  case_lock(learning_lock& one) noexcept : word_{reinterpret_cast<std::uintptr_t>(&one) << 1} {}
  case_lock(tiny_lock& one) noexcept : word_{reinterpret_cast<std::uintptr_t>(&one) << 1 | is_tiny} {}

  explicit operator bool() const noexcept { return word_ != 0; }
  void lock() const noexcept {
    if (word_ != 0) (word_ & is_tiny) != 0 ? at<tiny_lock>().lock() : at<learning_lock>().lock();
  }
  void unlock() const noexcept {
    if (word_ != 0) (word_ & is_tiny) != 0 ? at<tiny_lock>().unlock() : at<learning_lock>().unlock();
  }
  /// As learning_lock::enter_on, and keeps it.
  void lock_on(const worker& here) const noexcept;

  friend bool operator==(case_lock a, case_lock b) noexcept { return a.word_ == b.word_; }
  friend bool operator<(case_lock a, case_lock b) noexcept { return a.word_ < b.word_; }

 private:
  // The address, moved up by one: no address has the highest bit, and a tiny_lock may lie anywhere.
  static constexpr std::uintptr_t is_tiny = 1;
  template <class Lock>
  Lock& at() const noexcept {
    return *reinterpret_cast<Lock*>(word_ >> 1);
  }

  std::uintptr_t word_ = 0;
};

/// One thing that a select can do. What there is of each kind besides, none of it virtual:
///   bool may_be_ready() const  under its lock, whether it may be; without it, false: at some moment since the select
///                              was begun it was not
///   std::uint32_t changes() const  the same twice: if it was ready in between, it is so ever since
///   its_lock()                 what a case_lock is made of
///   bool try_now()             under its lock: does it, if it is ready
///   void finish()              when the locks are free, by the one that was done: wakes the other side
///   void prepare(of, index, self)  where it has to wait, before the locks are taken
///   begins                     whether its begin() does something
///   may_need_no_lock           whether it may wait with none
///   bool ended_stopped() const  of one that was done at once: the select ends stopped. Where it was waited for, who woke it
///                              has had the others leave (waiter::wake_as_ended)
///   seen                       a case_layout: what its tell() computes, as data; one without has none
///   may_be_in_vain             whether one that was waited for may have been chosen in vain. Then it has three more:
///   bool must_wait_again()     of the one that was chosen: whether all wait once more
///   bool turn_is_over()        whether others are to run before any is tried
///   void prepare_poll()        in a select that will not wait: is told so before it is tried
class select_case {
 public:
  /// Once it is prepared, and before the locks are taken: has whatever ends its wait know of it, which is no line under the
  /// select's locks: a clock, a stop_source. Of several that are ended in the order in which they have begun, the first one
  /// wins: so they begin in any order.
  virtual void begin(root&) noexcept {}
  /// Under its lock: gets in line, in the place of the select's own wait, which has parked.
  virtual void enter(const waiter& parked) noexcept = 0;
  /// Its place in a line of that one, if there it waits.
  virtual channel_waiter* place_at(const channel_core&) noexcept { return nullptr; }
  /// Out of the line again, if it is still there. Where it was in line, takes its lock: waits for who is on the way out.
  virtual void leave(bool was_in_line) noexcept = 0;
  /// What it waits for: as wait_type::tell.
  virtual void tell(wait_subjects& into) const noexcept = 0;

  static constexpr bool begins = false;
  static constexpr bool may_need_no_lock = false;
  static constexpr bool may_be_in_vain = false;
  static constexpr bool ended_stopped() noexcept { return false; }
  static constexpr bool must_wait_again() noexcept { return false; }
  static constexpr bool turn_is_over() noexcept { return false; }
  static constexpr void prepare_poll() noexcept {}

 protected:
  select_case() = default;
  select_case(const select_case&) = default;
  ~select_case() = default;
};

/// One of the cases that a select waits for.
struct select_place {
  select_case* one;
  const case_layout* seen;  // null: not known
};

/// The one wait of a select. What all kinds of select have in common is in `of`:
///   each(f)                    calls f(state, index) for all
///   bool try_ready<Try>()      tries those that may be ready, from any one on, until one is done: `chosen`
///   finish_chosen()
///   begins_several             whether several of them begin: select_case::begin()
///   may_need_no_lock           whether perhaps none of them has a lock, or there are none
class select_wait : public waiter {
 public:
  select_wait(select_place* cases, case_lock* locks, std::size_t count) noexcept
      : waiter{type}, cases_{cases}, locks_{locks}, count_{count} {}

  /// Gets in line everywhere. False: one was ready by now.
  template <class Select>
  bool suspend(root& self, Select& of) noexcept;
  /// When it goes on.
  template <class Select>
  void end(Select& of) noexcept;
  /// By one that never waits: tries all of them at one moment.
  template <class Select>
  static bool try_all(case_lock* locks, Select& of) noexcept;

  /// A number below `count`, another one each time.
  static std::size_t any_of(std::size_t count) noexcept;

  static constexpr std::size_t none = std::size_t(-1);
  std::size_t chosen = none;  // by whoever has claimed the wait

  /// All leave their lines. By who has claimed the wait.
  void leave_all() noexcept;

  /// Chooses any of the cases that wait in a line of that one, which ends the waits in all its lines: by who has claimed the
  /// wait there, under the lock. Gives that one's place.
  channel_waiter& choose_at(const channel_core& one) noexcept;

 private:
  static on_stop leave(waiter& self) noexcept;
  static void tell(const waiter& self, const char* what, wait_subjects& into) noexcept;
  static const wait_layout seen;
  static constexpr wait_type type{.leave = leave, .name = "select", .tell = tell, .layout = &seen};
  // Gives how many are left of them, each once.
  static std::size_t lock_all(case_lock* locks, std::size_t count) noexcept;
  static void unlock_all(const case_lock* locks, std::size_t count) noexcept;
  void shuffle_cases() noexcept;
  void begin_in_any_order(root& self) noexcept;
  void enter_in_this_order() noexcept;

  select_place* cases_;  // in any order
  case_lock* locks_;
  std::size_t count_;
  bool in_line_ = false;  // all of them are, or were
};

WEFT_LAYOUT(select_wait, of_cases_at(WEFT_BEHIND_WAITER(select_wait, cases_), WEFT_BEHIND_WAITER(select_wait, count_)));

template <class State>
consteval const case_layout* layout_of_case() {
  if constexpr (requires { State::seen; })
    return &State::seen;
  else
    return nullptr;
}

/// How a select tries one that may be ready: alone, or where it has all the locks.
struct try_alone {
  template <class State>
  static bool now(State& one) noexcept {
    auto&& lock = one.its_lock();
    lock.lock();
    const bool done = one.try_now();
    lock.unlock();
    if (done) one.finish();
    return done;
  }
};
struct try_locked {
  template <class State>
  static bool now(State& one) noexcept {
    return one.try_now();
  }
};

template <class Select>
bool select_wait::suspend(root& self, Select& of) noexcept {
  of.each([&](auto& one, std::size_t i) {
    one.prepare(*this, i, self);
    if constexpr (!Select::begins_several) one.begin(self);
    cases_[i] = {&one, layout_of_case<std::remove_cvref_t<decltype(one)>>()};
    locks_[i] = one.its_lock();
  });
  if constexpr (Select::begins_several) begin_in_any_order(self);
  const std::size_t locks = lock_all(locks_, count_);
  if (of.template try_ready<try_locked>()) {
    unlock_all(locks_, locks);
    of.finish_chosen();
    chosen = of.chosen;
    return false;
  }
  const bool in_any_order = locks != count_;  // several may be in one line: the first of them is served
  if (in_any_order) [[unlikely]]
    shuffle_cases();
  // Until we unlock; else nobody needs a lock to end the wait.
  const bool stays = !Select::may_need_no_lock || (locks != 0 && locks_[locks - 1]);
  in_line_ = true;  // before it is known: whoever ends the wait reads it, and the cases
  const bool parked = self.park(*this);
  if (parked && !stays) return true;
  if (parked && in_any_order) [[unlikely]]
    enter_in_this_order();
  else if (parked)
    of.each([&](auto& one, std::size_t) { one.enter(*this); });
  unlock_all(locks_,
             locks);  // who goes on takes each but that of the case that was chosen, so this is here until the last
  if (!parked) {
    in_line_ = false;
    leave_all();
    end_stopped(self);
  }
  return true;
}

template <class Select>
bool select_wait::try_all(case_lock* locks, Select& of) noexcept {
  std::size_t count = 0;
  of.each([&](auto& one, std::size_t) { locks[count++] = one.its_lock(); });
  count = lock_all(locks, count);
  const bool done = of.template try_ready<try_locked>();
  unlock_all(locks, count);
  if (done) of.finish_chosen();
  return done;
}

// Whoever finds one of those that were not chosen meanwhile can't claim it, and goes on to the next. The one that was is
// out of its line, and who took it out has given its lock back before it woke us.
template <class Select>
void select_wait::end(Select& of) noexcept {
  of.each([&](auto& one, std::size_t i) { one.leave(in_line_ && i != chosen); });
}

/// Puts them in any order.
template <class T>
void shuffle(T* first, std::size_t count) noexcept {
  for (std::size_t i = count; i > 1; --i) std::swap(first[i - 1], first[select_wait::any_of(i)]);
}

/// Of a case, for which the select waits.
inline constexpr wait_type waits_by_select{.name = "select"};

}  // namespace weft::detail
