#include <weft/select.hpp>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <utility>

#include "base/any_below.hpp"
#include "base/debug_note.hpp"
#include "base/spin.hpp"
#include "sync/lock_here.hpp"

namespace weft {
namespace detail {

inline void case_lock::lock_on(const worker& here) const noexcept {
  if ((word_ & is_tiny) != 0) return at<tiny_lock>().lock();
  if (word_ != 0) at<learning_lock>().keep(at<learning_lock>().enter_on(here));
}

// For who looks from outside of the process: what a select waits for.
struct debug_select {
  static constexpr debug_field fields[] = {
      {"select_place.bytes", sizeof(select_place)},
      {"select_place.one", offsetof(select_place, one)},
      {"select_place.seen", offsetof(select_place, seen)},
      {"case.bytes", sizeof(case_layout)},
      {"case.name", offsetof(case_layout, name)},
      {"case.subject_at", offsetof(case_layout, subject_at)},
      {"case.subject_plus", offsetof(case_layout, subject_plus)},
      {"case.through_at", offsetof(case_layout, through_at)},
      {"case.marks", offsetof(case_layout, marks)},
      {"case.is_held_by_it", offsetof(case_layout, is_held_by_it)},
      {"case.waiter_at", offsetof(case_layout, waiter_at)},
      {"case.type_at", offsetof(case_layout, type_at)},
      {"case.inner_at", offsetof(case_layout, inner_at)},
      {"case.inner", offsetof(case_layout, inner)},
      {"case.pointer_at", offsetof(case_layout, pointer_at)},
      {"case.layout_at", offsetof(case_layout, layout_at)},
      {"case.there_at", offsetof(case_layout, there_at)},
      {"case.is_none", offsetof(case_layout, is_none)},
  };
};
extern "C" [[gnu::visibility("hidden"), gnu::used]] constinit const debug_table weft_debug_select{debug_select::fields};
WEFT_DEBUG_NOTE("weft_debug_select");

std::size_t select_wait::any_of(std::size_t count) noexcept { return any_below(count); }

// Sorts the locks by address, and leaves out duplicates. Mostly they are few, and in order already.
std::size_t select_wait::lock_all(case_lock* locks, std::size_t count) noexcept {
  case_lock* end = locks;
  if (count == 2) {
    if (locks[1] < locks[0]) std::swap(locks[0], locks[1]);
    end += locks[0] == locks[1] ? 1 : 2;
  } else if (count > 32) {
    end += count;
    std::sort(locks, end);
    end = std::unique(locks, end);
  } else {
    for (std::size_t i = 0; i != count; ++i) {
      const case_lock one = locks[i];
      case_lock* at = end;
      while (at != locks && one < at[-1]) --at;
      if (at != locks && at[-1] == one) continue;
      for (case_lock* to = end++; to != at; --to) *to = to[-1];
      *at = one;
    }
  }
  const worker& here = this_worker();
  for (const case_lock* one = locks; one != end; ++one) one->lock_on(here);
  return static_cast<std::size_t>(end - locks);
}

void select_wait::shuffle_cases() noexcept { shuffle(cases_, count_); }

void select_wait::begin_in_any_order(root& self) noexcept {
  shuffle_cases();
  for (std::size_t i = 0; i != count_; ++i) cases_[i].one->begin(self);
}

void select_wait::enter_in_this_order() noexcept {
  for (std::size_t i = 0; i != count_; ++i) cases_[i].one->enter(*this);
}

// Reservoir sampling: each of those found so far is equally likely.
channel_waiter& select_wait::choose_at(const channel_core& one) noexcept {
  channel_waiter* place = nullptr;
  std::size_t found = 0;
  for (std::size_t i = 0; i != count_; ++i)
    if (channel_waiter* const next = cases_[i].one->place_at(one); next != nullptr && any_of(++found) == 0)
      place = next;
  chosen = place->index;
  return *place;
}

// `locks` may be gone once the last one is unlocked; those that are none come first, and end nothing.
void select_wait::unlock_all(const case_lock* locks, std::size_t count) noexcept {
  const case_lock* last = locks;
  while (last != locks + count && !*last) ++last;
  for (const case_lock* one = locks + count; one != last;) (--one)->unlock();
}

void select_wait::tell(const waiter& self, const char* what, wait_subjects& into) noexcept {
  const auto& mine = static_cast<const select_wait&>(self);
  for (std::size_t i = 0; i != mine.count_; ++i) mine.cases_[i].one->tell(into);
  if (into.count == 0) into.add(what, nullptr);  // of no cases
}

void select_wait::leave_all() noexcept {
  for (std::size_t i = 0; i != count_; ++i) cases_[i].one->leave(in_line_);
}

void happening::leave() noexcept {
  const std::lock_guard guard{lock_};  // whoever has ended the wait may still hold the lock
  waits_ = nullptr;
}

void happening::happen(wake_up how) noexcept {
  channel_waiter* one = nullptr;
  {
    const std::lock_guard guard{lock_};
    happened_ = true;
    one = std::exchange(waits_, nullptr);
    if (one == nullptr || !one->try_claim()) return;
    one->select->chosen = one->index;
  }
  if (how == wake_up::stopped) one->select->leave_all();
  one->wake(how);
}

on_stop select_wait::leave(waiter& self) noexcept {
  static_cast<select_wait&>(self).leave_all();
  return on_stop::left;
}

// ---- a future ---------------------------------------------------------------------------------------------------------------

void outcome_case::prepare(select_wait& of, std::size_t index, root& self) noexcept {
  happening_case::prepare(of, index, self);
  entered_ = from_.enter_beside(place_);
  if (!entered_) there_.happen();
}

// Whoever completes it may have found the place, and be on the way to say so.
void outcome_case::leave(bool was_in_line) noexcept {
  happening_case::leave(was_in_line);
  if (!entered_ || from_.leave_beside(place_)) return;
  for (spin_wait wait; !has_happened(); wait.once()) {
  }
}

void outcome_case::tell(wait_subjects& into) const noexcept { into.add("future", &from_); }

void outcome_case::completed(waiter& self, wake_up how) noexcept { static_cast<place&>(self).there.happen(how); }

}  // namespace detail

// ---- after ------------------------------------------------------------------------------------------------------------------

void after_case::begin(detail::root& self) noexcept {
  clock_ = &detail::clock_of(self);
  if (!is_absolute_) {  // from now on, also where the select waits once more
    until_ = detail::later(clock_->now(), for_);
    is_absolute_ = true;
  }
  clock_->arm(*this, until_);
}

void after_case::leave(bool was_in_line) noexcept {
  happening_case::leave(was_in_line);
  clock_->cancel(*this);
}

void after_case::fire_now(timer& self) noexcept {
  static_cast<after_case&>(self).passed_.happen();  // self may be gone after this line
}

// ---- on_stop ----------------------------------------------------------------------------------------------------------------

// Calls the callback here and now if the stop was requested already.
void stop_case::begin(detail::root&) noexcept { callback_.emplace(of_, says_so{requested_}); }

// Out of the line first: whoever runs the callback then finds nobody, and this waits for that.
void stop_case::leave(bool was_in_line) noexcept {
  happening_case::leave(was_in_line);
  callback_.reset();
}

}  // namespace weft
