#include <utility>
#include <weft/detail/join/group.hpp>

#include "base/debug_note.hpp"
#include "core/causes.hpp"
#include "core/claim.hpp"
#include "core/end_causes.hpp"
#include "core/lock_watch.hpp"
#include "core/run_loop.hpp"
#include "core/stop_turn.hpp"
#include "core/walk_gate.hpp"
#include "core/worker.hpp"

namespace weft::detail {

// For who looks from outside of the process.
static constexpr debug_field group_fields[] = {{"group.about_to_wait", offsetof(group::deciding, about_to_wait)}};
extern "C" [[gnu::visibility("hidden"), gnu::used]] constinit const debug_table weft_debug_group{group_fields};
WEFT_DEBUG_NOTE("weft_debug_group");

stop_cause cause_by_group(const root& told) noexcept { return static_cast<const child&>(told).all->why(); }

child::child(group& of, end_function done) noexcept : root{of.parent().env, &of.parent(), done}, all{&of} {}

void group::start(root& parent) noexcept {
  worker& here = this_worker();
  parent_ = &parent;
  parents_start_ = here.starting;
  job::next = here.local;
  here.local = this;  // until the last child has started, and has run through or waits
  walk_gate::enter(here, *this);
  start_next();
}

// While one starts, this group is on top of the worker's list: if the child waits, the run loop goes on with go_on().
void group::start_next() noexcept {
  worker& here = this_worker();
  child& one = kind_->prepare(*this, started_);
  one.index = started_++;
  one.sibling = children_.load(std::memory_order_relaxed);  // the parent's own
  children_.store(&one, std::memory_order_release);         // -> open (no model: as declared)
  ++waiting_;
  here.starting = &one;
  one.count_in_like(parent_, here);
  enter(here, &one);
  here.next = one.top;
}

void group::go_on(job& self) noexcept {
  auto& mine = static_cast<group&>(self);
  if (mine.started_ == mine.count_ || mine.is_decided()) return mine.all_started();  // mine may be gone
  worker& here = this_worker();
  mine.job::next = here.local;
  here.local = &mine;
  mine.start_next();
}

// The group may be gone after this.
inline void group::count_down(std::size_t by) noexcept {
  if (pending_.fetch_sub(by, std::memory_order_acq_rel) == by) finish(how());  // -> join, <- join
}

wake_up group::how() const noexcept {
  if (any_stopped_.load(std::memory_order_relaxed) == 0 ||
      any_failed_.load(std::memory_order_relaxed))  // carried, both
    return wake_up::completed;
  if (!is_decided()) return wake_up::stopped;
  // A winner was there before the stop. Where there can be none, the group has decided for want of one, as at the end of a
  // time; that does not hide a stop from outside.
  const bool can_be_won = kind_->child_ended != nullptr;
  return !can_be_won && parent_->stop_requested() ? wake_up::stopped : wake_up::completed;
}

// A child has ended stopped, and says why, unless it was told to by this group or with it.
WEFT_SELDOM void group::note_stopped(const child& one) noexcept {
  const auto causes = causes_of_end(one);
  const unsigned char mine = causes.empty() ? one_stopped : one_stopped | has_cause;
  const unsigned char before = any_stopped_.fetch_or(mine, std::memory_order_relaxed);  // the countdown carries it
  if (!causes.empty() && (before & has_cause) == 0) cause_.put(causes.front());
}

void group::why(const waiter& self, cause_list& into) noexcept {
  const auto& mine = static_cast<const group&>(self);
  if ((mine.any_stopped_.load(std::memory_order_relaxed) & has_cause) != 0)  // carried
    into.add(mine.cause_.it);
}

void group::ended(child& one, bool stopped, bool failed) noexcept {
  if (stopped) [[unlikely]]
    note_stopped(one);
  if (failed) any_failed_.store(true, std::memory_order_relaxed);  // the countdown carries it
  if (!stopped && kind_->child_ended != nullptr) kind_->child_ended(*this, one, failed);
  worker& here = this_worker();
  if (here.starting != &one) {
    leave_root();  // the child's record is in the parent's frame, which the last one to count down lets go on
    return count_down(1);
  }
  // It ran through: it is the newest child, this group is on top of the worker's list, and nobody else knows of it.
  children_.store(one.sibling, std::memory_order_relaxed);  // leads to what a walk was shown before
  --waiting_;
  if (started_ != count_ && !is_decided()) return start_next();
  here.local = job::next;
  if (waiting_ != 0) {
    here.starting = nullptr;
    return all_started();
  }
  walk_gate::leave(here, *this);
  // A walk was counted in before the gate, or has left since: what it read is read.
  const std::size_t parts = pending_.load(std::memory_order_acquire);  // <- join (no model: walks of a group have none)
  if (parts != count_ + 1) [[unlikely]] {
    leave_root();
    here.starting = nullptr;
    return park_parent(count_ + 1);
  }
  resume_parent();
  here.starting = parents_start_;  // the parent has not been away either
}

// The parent parks, unless all have ended meanwhile: some on other threads, or woken by a sibling.
void group::all_started() noexcept {
  leave_root();  // the last child has suspended or ended, and its record may be gone while this runs
  std::size_t ours = count_ - waiting_ + 1;  // with those that never start
  if (kind_->about_to_wait != nullptr) kind_->about_to_wait(*this);
  // Who has decided has found no list, and the list is ours; unless about_to_wait() has listed it.
  if (!is_listed() && (is_decided() || (marks_.fetch_or(listed, std::memory_order_release) & decided) != 0))  // -> list
    ours += stop_here();
  worker& here = this_worker();
  if (pending_.load(std::memory_order_relaxed) != ours) {  // it is read again, to acquire, before the parent goes on
    if (parent_->park_forwarding(*this)) stop_children(*this);
    walk_gate::leave(here, *this);
    return count_down(ours);
  }
  walk_gate::leave(here, *this);
  // As in ended().
  if (pending_.load(std::memory_order_acquire) != ours) [[unlikely]]  // <- join
    return park_parent(ours);
  resume_parent();
}

// The group may be gone after this.
void group::park_parent(std::size_t ours) noexcept {
  if (parent_->park_forwarding(*this)) stop_children(*this);
  count_down(ours);
}

void group::resume_parent() noexcept {
  if (how() == wake_up::stopped)
    end_stopped_by(*parent_, *this);
  else
    run_next(parent_->top, *parent_);
}

bool group::decide() noexcept {
  const unsigned before = marks_.fetch_or(decided, std::memory_order_acquire);  // <- list
  if ((before & decided) != 0) return false;
  if ((before & listed) != 0) end_all();
  return true;
}

// Those that have ended are told in vain. The caller keeps the group alive; a timer that is no more than one child's keeps
// nothing, and the group may be gone when that child was told.
void group::stop_all() noexcept {
  for (child* one = children_.load(std::memory_order_relaxed); one != nullptr;)  // as declared
    std::exchange(one, one->sibling)->request_stop();
}

// The same, since the group has decided: each that was not told before notes that.
void group::end_all() noexcept {
  for (child* one = children_.load(std::memory_order_relaxed); one != nullptr;) {  // as declared
    child& told = *std::exchange(one, one->sibling);
    told.note_told_by_group();
    told.request_stop();
  }
}

// The same, by the parent before it waits. Those that go on on its executor are unwound here, now, on top of it: they need
// not be posted, and mostly the parent need not wait. Not on a fiber's stack, which is as large as its own calls need. How
// many have not counted down, since they ended here.
std::size_t group::stop_here() noexcept {
  worker& here = this_worker();
  const auto executor_of = [](const root& one) noexcept { return one.env != nullptr ? one.env->executor : nullptr; };
  const executor* const ours = executor_of(*parent_);
  if (ours == nullptr || here.fiber != nullptr || here.nested_forks == deepest_nesting ||
      wait_watch::now() != nullptr) {
    end_all();
    return 0;
  }
  job_queue left;
  for (child* one = children_.load(std::memory_order_relaxed); one != nullptr;)  // as declared
  {
    child& told = *std::exchange(one, one->sibling);
    told.note_told_by_group();
    if (!detail::stop_here::claim(told) || !detail::stop_here::leave(told)) continue;
    if (executor_of(told) == ours)
      left.push(told);
    else
      detail::stop_here::wake(told);
  }
  if (left.first == nullptr) return 0;

  const run_scope restored{here};
  const unsigned locks = locks_held();
  std::size_t ended = 0;
  ++here.nested_forks;
  while (job* const work = left.pop()) {
    root& one = static_cast<root&>(*work);
    const bool to_its_end = unwind_to_end(here, one);
    if (to_its_end) {
      ++ended;
      one.count_out(here);
    }
    expect_no_more_locks(locks);
    if (here.next || here.local != nullptr || here.deferred.first != nullptr) [[unlikely]] {
      if (to_its_end) leave_root();
      detail::run(here, std::exchange(here.next, {}));
    }
  }
  --here.nested_forks;
  if (ended != 0)
    any_stopped_.fetch_or(one_stopped, std::memory_order_relaxed);  // for how(), here or behind the countdown
  return ended;
}

on_stop group::stop_children(waiter& self) noexcept {
  auto& mine = static_cast<group&>(self);
  worker& here = this_worker();
  if (stop_turn::must_defer(here)) [[unlikely]] {
    if (count_one_more(mine.pending_)) stop_turn::defer(here, self);  // else all have ended
    return on_stop::forwarded;
  }
  const stop_turn turn{here};
  mine.stop_all();
  return on_stop::forwarded;
}

void group::run_deferred_stop(waiter& self) noexcept {
  auto& mine = static_cast<group&>(self);
  mine.stop_all();
  mine.count_down(1);
}

}  // namespace weft::detail
