#include "observe/root_walk.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <new>
#include <unordered_map>
#include <utility>
#include <weft/clock.hpp>
#include <weft/stack_pool.hpp>

#include "base/spin.hpp"
#include "core/peek.hpp"
#include "core/walk_gate.hpp"
#include "core/worker.hpp"
#include "sched/pool_worker.hpp"

namespace weft::detail {
namespace {

const void* address_of(const root& one) noexcept { return static_cast<const sleeper*>(&one); }

// What a root stands below in the tree: of a fork, the root that waits for its scope.
root* above_of(const root& one) noexcept {
  root* const above = peek(one.parent);  // another thread may be giving a child of when_all a root, and that its parent
  return one.is_fork ? peek(above->parent) : above;
}

// ---- ends that a walk owes --------------------------------------------------------------------------------------------

// Waits of which a walk was the last part, linked by waiter::next: they are in no line. The clock's thread ends them, since
// what goes on then is code of the program, for which whoever takes a snapshot is no place.
class owed_ends final : timer {
 public:
  owed_ends() noexcept : timer{pay} {}

  /// True: whoever calls owes a call of arm(), too.
  [[nodiscard]] bool add(waiter& one) noexcept {
    const std::lock_guard guard{lock_};
    one.next = first_;
    first_ = &one;
    return one.next == nullptr;
  }
  /// Without the lock of walks: a thread that forks has the clock's lock, and waits for that of walks.
  void arm() noexcept { real_clock().arm(*this, real_clock().now()); }

  static owed_ends& all() noexcept {
    alignas(owed_ends) static std::array<std::byte, sizeof(owed_ends)> place;
    static owed_ends& the_one = *new (place.data()) owed_ends;  // never destroyed: the clock may have it
    return the_one;
  }

 private:
  static void pay(timer& self) noexcept {
    auto& mine = static_cast<owed_ends&>(self);
    waiter* one;
    {
      const std::lock_guard guard{mine.lock_};
      one = std::exchange(mine.first_, nullptr);
    }
    while (one != nullptr) {
      waiter& now = *std::exchange(one, one->next);
      walk_here::children_of(now)->ended(now);  // it may be gone
    }
  }

  tiny_lock lock_;
  waiter* first_ = nullptr;
};

// A lock is held for some instructions, by a thread that may have been interrupted. Whoever holds it does not wait for the
// wait that the walk holds, unless this is wrong; so there is an end to it.
wait_children::answer count_in(waiter& in, const wait_children& by) noexcept {
  spin_wait wait;
  wait_children::answer how = by.count_in(in);
  for (int tries = 0; how == wait_children::answer::busy && tries != 100'000; ++tries) {
    wait.once();
    how = by.count_in(in);
  }
  return how;
}

}  // namespace

void root_walk::run() {
  static_cast<void>(owed_ends::all());  // its memory
  prepare_thread_for_stacks();          // those of fibers that are asked for their calls
  struct arms {
    const bool& owes_arm;
    ~arms() {
      if (owes_arm) owed_ends::all().arm();
    }
  } const behind_lock{owes_arm_};
  const std::lock_guard guard{walks_lock};
  struct leaves {
    root_walk& mine;
    ~leaves() { mine.leave_all(); }
  } const under_lock{*this};
  walk();
}

// Under the lock of walks, since the next one begins where this one has left off. First the waits that it holds, if memory has
// run out: whoever has a lock that leave() takes may spin for one of them.
void root_walk::leave_all() noexcept {
  batch_.let_go();
  if (std::exchange(in_tops_, false)) top_roots::leave(tops_);
  if (left_last_.of != nullptr) leave(std::exchange(left_last_, {}));
  for (const level& one : levels_)
    if (!one.place.is_opening) leave(one);
  levels_.clear();
  for (const level& one : openings_)
    leave(one);  // only now, so that none is taken for one that is made at the same place
  openings_.clear();
}

void root_walk::leave(const level& one) noexcept {
  if (one.by->leave(*one.of) && owed_ends::all().add(*one.of)) owes_arm_ = true;
}

void root_walk::walk() {
  look_behind_gate();
  in_tops_ = true;
  for (bool more = true; more && !has_found();) {
    task_ids::reserve(child_batch::most);
    batch_.clear();
    batch_.cause.reset();
    more = top_roots::next(tops_, batch_);
    look_at(batch_, seen_root::none);
    go_down();
  }
  if (has_found()) return;
  in_tops_ = false;

  // What hangs off no wait yet. Its parent may be a fork in its first run, which is in no list. All that stands above is
  // alive, and of those that are in no list nothing is known but what they are part of.
  std::unordered_map<const void*, std::size_t> places;
  if (!openings_.empty())
    for (std::size_t i = 0; i != roots.size(); ++i) places.emplace(roots[i].at, i);
  for (std::size_t at = openings_.size(); at-- != 0 && !has_found();) {
    level one = openings_[at];
    root& parent = one.by->parent(*one.of);
    std::vector<root*> unseen;
    for (root* up = &parent; up != nullptr && !places.contains(address_of(*up)); up = above_of(*up))
      unseen.push_back(up);
    for (std::size_t i = unseen.size(); i-- != 0;) {
      root& up = *unseen[i];
      task_ids::reserve(1);
      seen_root& added = roots.emplace_back();
      added.at = address_of(up);
      added.id = task_ids::of(up);
      added.kind = up.is_fork ? root_kind::fork : up.parent == nullptr ? root_kind::task : root_kind::child;
      if (const root* above = above_of(up)) added.parent = places[address_of(*above)];
      places[added.at] = roots.size() - 1;
    }
    one.parent = places[address_of(parent)];
    seen_root& above = roots[one.parent];
    if (!above.waits) {
      const wait_subject its{walk_here::name_of(*one.of), one.of, nullptr};
      above.on = items<wait_subject>{&its, &its + 1};
      above.waits = true;
      above.has_children = true;
      above.how = one.by->how(*one.of);
    }
    levels_.reserve(levels_.size() + 1);
    levels_.push_back(one);
    const std::size_t before = roots.size();
    go_down();
    for (std::size_t i = before; i != roots.size() && at != 0; ++i) places.emplace(roots[i].at, i);
  }
  if (!openings_.empty()) merge_those_found_twice();
}

// A fork above a scope that hangs off no wait is found there, and once more if it is listed by such a scope itself that the walk
// came to later. The first one stays in its place, since a parent comes before its children.
void root_walk::merge_those_found_twice() {
  std::unordered_map<task_id, std::size_t> places;
  std::vector<std::size_t> now_at(roots.size());
  std::size_t kept = 0;
  for (std::size_t i = 0; i != roots.size(); ++i) {
    seen_root& one = roots[i];
    if (one.parent != seen_root::none) one.parent = now_at[one.parent];
    const auto [place, is_first] = places.try_emplace(one.id, kept);
    now_at[i] = place->second;
    if (is_first) {
      if (kept != i) roots[kept] = std::move(one);
      ++kept;
    } else if (one.waits) {
      one.parent = roots[place->second].parent;
      roots[place->second] = std::move(one);
    }
  }
  roots.resize(kept);
}

// Finds what starts children now, and what threads there are and what they are in. Nothing is allocated while the gate is
// closed.
void root_walk::look_behind_gate() {
  std::size_t found = 0;
  for (std::size_t room = 64;; room = 2 * found + 64) {
    openings_.reserve(room);
    workers.reserve(room);
    found = 0;
    std::size_t threads = 0;
    worker* const newest = newest_worker();
    walk_gate::the_one.close();
    for (worker* one = newest; one != nullptr; one = one->made_before) {
      ++threads;
      waiter* in = one->opening.load(std::memory_order_acquire);  // <- opens (no model: as declared)
      for (; in != nullptr; in = in->prev) ++found;
    }
    if (std::max(found, threads) <= room) {
      for (worker* one = newest; one != nullptr; one = one->made_before) {
        for (waiter* in = one->opening.load(std::memory_order_acquire);  // <- opens (no model: as declared)
             in != nullptr && openings_.size() != room; in = in->prev) {
          const wait_children& by = *walk_here::children_of(*in);
          if (count_in(*in, by) == wait_children::answer::counted)
            openings_.push_back({in, &by, {.is_opening = true}, seen_root::none});
        }
        const int thread = one->thread_number.load(std::memory_order_relaxed);  // a figure
        if (thread == 0) continue;
        const pool_worker* const in = peek(one->of_pool);
        const root* const current = peek(one->current);
        // A turn that is about to end may be of another stay of that root on this worker.
        const bool is_traced =
            current != nullptr && peek(one->traces.open) == current && peek(one->traces.may_suspend) == 0;
        workers.push_back({.at = one,
                           .thread = thread,
                           .pool = in != nullptr ? in->home : nullptr,
                           .current = current != nullptr ? address_of(*current) : nullptr,
                           .queued = in != nullptr ? in->line.size() + in->forks.size() : 0,
                           .since = is_traced ? peek(one->traces.began) : 0});
      }
      walk_gate::the_one.reopen();
      return;
    }
    found = std::max(found, threads);
    walk_gate::the_one.reopen();
  }
}

void root_walk::go_down() {
  while (!levels_.empty() && !has_found()) {
    task_ids::reserve(child_batch::most);
    if (levels_.capacity() < levels_.size() + child_batch::most)
      levels_.reserve(2 * levels_.capacity() + child_batch::most);
    level& now = levels_.back();
    const std::size_t parent = now.parent;
    batch_.clear();
    batch_.cause.reset();
    const bool more = now.by->next(*now.of, now.place, batch_);
    if (!more) {
      if (!now.place.is_opening) left_last_ = now;
      levels_.pop_back();
    }
    look_at(batch_, parent);
    // Not before: a scope is left under its lock, whose holder may spin for the wait of a child that waits for room.
    if (left_last_.of != nullptr) leave(std::exchange(left_last_, {}));
    batch_.deadline = std::chrono::steady_clock::time_point::max();
    batch_.deadline_set_at.reset();
  }
}

void root_walk::enter(waiter& in, const wait_children& by, std::size_t parent) {
  if (std::any_of(openings_.begin(), openings_.end(), [&](const level& one) { return one.of == &in; })) return;
  switch (count_in(in, by)) {
    case wait_children::answer::counted: levels_.push_back({&in, &by, {}, parent}); break;
    case wait_children::answer::none: break;
    default: is_complete = false;
  }
}

void root_walk::look_at(child_batch& batch, std::size_t parent) {
  if (!batch.is_complete) is_complete = false;
  batch.is_complete = true;
  if (levels_.capacity() < levels_.size() + child_batch::most)
    levels_.reserve(2 * levels_.capacity() + child_batch::most);
  const std::size_t first = roots.size();
  if (how_.only) {
    for (std::size_t i = 0; i != batch.size(); ++i) {
      child_batch::child& one = batch[i];
      if (one.id == how_.only && one.wait) {
        seen_root found;
        note_held(one, found, notes_[0], 0);
        one.wait.reset();
        found.on = items<wait_subject>{notes_[0].on.all, notes_[0].on.all + notes_[0].on.count};
        found.stack = items<async_frame>{notes_[0].frames};
        for (std::size_t k = 0; k != notes_[0].frames; ++k) found.stack[k] = async_frame{notes_[0].stack[k]};
        roots.push_back(std::move(found));
      } else if (one.wait) {
        waiter& in = one.wait->in();
        if (const wait_children* by = walk_here::children_of(in)) enter(in, *by, seen_root::none);
      }
      one.wait.reset();
    }
    return;
  }
  const std::size_t room = how_.most_roots - std::min(how_.most_roots, first);
  const std::size_t count = std::min(batch.size(), room);
  if (count != batch.size()) is_complete = false;
  try {
    roots.resize(first + count);
  } catch (...) {
    for (std::size_t i = 0; i != batch.size(); ++i) batch[i].wait.reset();
    throw;
  }
  for (std::size_t i = 0; i != batch.size(); ++i) {
    child_batch::child& one = batch[i];
    if (i < count) {
      seen_root& into = roots[first + i];
      into.at = address_of(*one.one);
      into.id = one.id;
      into.parent = parent;
      into.kind = one.kind;
      into.function = one.function;
      into.stop_requested = one.stop_requested || (parent != seen_root::none && roots[parent].stop_requested);
      into.deadline = batch.deadline;
      if (batch.cause) {
        into.reason = batch.cause->reason;
        into.where = batch.cause->where;
        into.stop_requested = true;
      }
      notes_[i].frames = 0;
      notes_[i].on.count = 0;
      if (one.wait) note_held(one, into, notes_[i], first + i);
      note_who_set_deadline(into, batch);
    }
    one.wait.reset();
  }
  for (std::size_t i = 0; i != count; ++i) {
    seen_root& into = roots[first + i];
    const note& noted = notes_[i];
    into.on = items<wait_subject>{noted.on.all, noted.on.all + noted.on.count};
    if (noted.frames == 0) continue;
    into.stack = items<async_frame>{noted.frames};
    for (std::size_t k = 0; k != noted.frames; ++k) into.stack[k] = async_frame{noted.stack[k]};
    if (into.function == nullptr && noted.frames != most_kept) into.function = noted.stack[noted.frames - 1];
  }
}

// Of the scope that it is part of, or of one around that, from which both have it.
void root_walk::note_who_set_deadline(seen_root& into, const child_batch& batch) const noexcept {
  if (into.deadline == std::chrono::steady_clock::time_point::max()) return;
  if (batch.deadline_set_at && batch.deadline == into.deadline)
    into.deadline_set_at = batch.deadline_set_at;
  else if (into.parent != seen_root::none && roots[into.parent].deadline == into.deadline)
    into.deadline_set_at = roots[into.parent].deadline_set_at;
}

// By the holder of its wait: allocates nothing, and takes no lock whose owner may wait for it.
void root_walk::note_held(child_batch::child& one, seen_root& into, note& noted, std::size_t index) {
  root& it = *one.one;
  into.waits = true;
  into.ticket = one.wait->ticket();
  into.is_shielded = it.is_shielded();
  one.wait->tell(noted.on);
  if (it.env != nullptr) {
    into.deadline = it.env->deadline;
    const bool is_traced = it.env->frames != nullptr && it.env->frames->trace() != nullptr;
    if (is_traced && (it.before_wait & root::is_traced) != 0) into.since = it.traced_since;
    if (const stop_cause* cause = it.env->stop.cause()) {
      into.reason = cause->reason;
      into.where = cause->where;
      into.stop_requested = true;
    }
  }
  const std::size_t most = std::min(how_.most_frames, most_kept);
  noted.frames = 0;
  for (std::coroutine_handle<> at = it.innermost(); at && !it.is_end(at); at = promise_base::of(at).continuation)
    if (is_of_fiber(*static_cast<const frame*>(at.address()))) into.is_fiber = true;
  if (how_.stacks || how_.only) {
    calls_.count = 0;  // those of another root's fiber
    stack_walk walk{it, calls_};
    for (const void* code = walk.next(); code != nullptr && noted.frames != most; code = walk.next()) {
      if (!how_.only && !walk.is_in(it)) break;
      noted.stack[noted.frames++] = code;
    }
  }
  waiter& in = one.wait->in();
  if (const wait_children* by = walk_here::children_of(in); by != nullptr && !how_.only) {
    into.has_children = true;
    into.how = by->how(in);
    enter(in, *by, index);
  }
}

}  // namespace weft::detail
