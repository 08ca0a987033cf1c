// Children of a when_all that have roots of their own, and the end of the join. How children borrow is in join_borrow.cpp,
// how all of it works in join/join.hpp.
#include <mutex>
#include <new>
#include <utility>
#include <weft/detail/join/join.hpp>

#include "core/end_causes.hpp"
#include "core/run_loop.hpp"
#include "core/stop_turn.hpp"
#include "core/turns.hpp"
#include "core/worker.hpp"
#include "sched/pool_worker.hpp"

namespace weft::detail {

join_child::join_child(join& of, std::size_t index, root& parent) noexcept
    : root{parent.env, &parent, join::child_ended}, all_{&of}, index_{index} {
  ends_in(of.handle());
}

made_child::made_child(join& of, std::size_t index, root& parent) noexcept
    : join_child{of, index, parent}, beginning_{join::begin_made} {
  beginning_.continuation = end();
  beginning_.owner = this;
  top = beginning_.handle();
}

// Makes the frames from `outermost` inward, which borrowed, this root's own. Other threads may walk over them meanwhile:
// those of stolen children that throw.
//   edge lent  all of this root  ->  the walk that comes to its end
void join_child::take_over(std::coroutine_handle<> outermost) noexcept {
  std::atomic_ref{promise_base::of(outermost).continuation}.store(
      end(), std::memory_order_release);  // -> lent (no model: a frame is not watched)
}

// Makes a child in a root of its own, and begins with it.
void join::begin_made(frame* self) {
  auto& child = static_cast<made_child&>(*static_cast<boundary*>(self)->owner);
  join& mine = *child.all_;
  const std::coroutine_handle<> made = mine.kind_->make(mine, child.index_);
  if (made == nullptr) {
    child.count_out(this_worker());
    leave_root();
    return mine.count_down();
  }
  child.adopt(made, promise_base::of(made));
  WEFT_JUMP_TO(made);
}

WEFT_LAYOUT_HERE(join::wait,
                 stored_at(WEFT_BEHIND_WAITER(wait, all))
                     .with_children(offsetof(join, children_), offsetof(join_child, before_), WEFT_ROOT_IN(join_child))
                     .with_parent(offsetof(join, owner)));

// Memory for the root of a child, or for a job of several children that begins with this one. Null: there is none.
void* join::take_room(std::size_t index) noexcept {
  if (kind_->make == nullptr) return room_of(index);
  try {
    const ambient_memory as_the_parents{lender_->env != nullptr ? lender_->env->frames : nullptr};
    return allocate_frame(sizeof(made_child));
  } catch (...) {
    return nullptr;
  }
}

[[gnu::noinline]] void join::free_children_roots() noexcept {
  while (children_ != nullptr) {
    join_child* const one = children_;
    children_ = one->before_;
    if (static_cast<void*>(one) != room_of_borrower()) free_frame(static_cast<made_child*>(one), sizeof(made_child));
  }
}

// Fails these children for lack of memory. Others are left.
void join::fail_some(std::size_t from, std::size_t to) noexcept {
  for (std::size_t index = from; index != to; ++index) kind_->fail(*this, index);
  const auto fewer = static_cast<std::int64_t>(to - from);
  pending_.fetch_sub(fewer, std::memory_order_release);  // -> join (no model: there is always memory)
}

// Called when all children that borrowed have returned, and others have taken the rest. Null: those have not ended, and the
// parent waits.
[[gnu::noinline]] std::coroutine_handle<> join::wait_for_others() noexcept {
  owner->before_wait = was_lent_;
  owner->top = continuation;
  settle_first(begun_);
  const std::size_t others = count_ - begun_;
  if (pending_.load(std::memory_order_acquire) == -static_cast<std::int64_t>(others) &&  // <- join
      (any_.load(std::memory_order_relaxed) & one_stopped) == 0)                         // the load above has the edge
    return continuation;
  owner = &take_root(*owner);
  leave_root();
  park(*owner, others);
  return {};
}

// Settles the first children, which borrowed and have ended, when the parent is to wait: their frames and arguments go now.
void join::settle_first(std::size_t ended) noexcept {
  if (kind_->at_once) return;
  in_slots_ = true;
  for (std::size_t index = 0; index != ended; ++index) kind_->settle(*this, index, false);
}

// ---- roots of their own -------------------------------------------------------------------------------------------------

// Lets the parent wait for `others` further children. It may be resumed at once, and this join may be gone after the call.
void join::park(root& parent, std::size_t others) noexcept {
  parent.top = continuation;  // before it waits: whoever holds the wait reads this
  wait& in = *::new (static_cast<void*>(rooms_)) wait{*this};
  if (parent.park_forwarding(in)) stop_children(in);
  const auto more = static_cast<std::int64_t>(others);
  if (pending_.fetch_add(more, std::memory_order_acq_rel) == -more) finish();  // -> join, <- join
}

// Cilk's slow clone: gives each child that borrows `self` a root of its own. It goes from the innermost frame outward: the
// frames up to the next join belong to the child of that join from now on, and the parent of that join is the next child.
[[gnu::noinline]] root& promote_borrowers(root& self) noexcept {
  const auto join_at = [](std::coroutine_handle<> at) noexcept {
    auto* const one = static_cast<frame*>(at.address());
    if (one->resume == join::returned<true> || one->resume == join::returned<false> ||
        one->resume == join::returned_to_slot)
      return true;
    return one->destroy == boundary::arrive_stopped &&
           static_cast<const boundary*>(one)->stopped_here == join::no_stop_ends_here;
  };
  worker& here = this_worker();
  std::coroutine_handle<> at = self.innermost();
  join_child *innermost = nullptr, *last = nullptr;
  join* inside = nullptr;  // the join that `last` is a child of, and whose parent is found next
  job *to_start = nullptr, **end_of_list = &to_start;
  for (;;) {
    std::coroutine_handle<> outermost = at, next = at;
    while (!self.is_end(next) && (next == at || !join_at(next))) {
      outermost = next;
      next = promise_base::of(next).continuation;
    }
    if (self.is_end(next)) break;

    join& all = static_cast<join&>(*static_cast<boundary*>(static_cast<frame*>(next.address())));
    const std::size_t index = all.begun_ - 1;
    void* const room = all.kind_->make != nullptr ? all.room_of_borrower() : all.room_of(index);
    auto& child = *::new (room) join_child{all, index, self};
    for (std::coroutine_handle<> one = at; one != next; one = promise_base::of(one).continuation)
      promise_base::of(one).owner = &child;
    child.take_over(outermost);
    child.count_in_like(&self, here);
    static_cast<void>(all.enlist(child));  // no child was told to stop: the parent has not waited
    if (inside != nullptr) {
      last->parent = &child;
    } else {
      child.top = at;
      innermost = &child;
    }
    if (all.offered_to_ == nullptr && all.begun_ != all.count_) {
      static_cast<job&>(all).run = join::start_in_turn;
      *end_of_list = &all;
      end_of_list = &static_cast<job&>(all).next;
    }
    inside = &all;
    last = &child;
    at = next;
  }
  self.before_wait = 0;
  *end_of_list = here.local;
  here.local = to_start;
  enter(here, innermost);

  const request_trace* const trace =
      self.env != nullptr && self.env->frames != nullptr ? self.env->frames->trace() : nullptr;
  for (root* child = innermost;
       child != &self;) {  // none of these joins can be over: the innermost child has not ended
    join& all = *static_cast<join_child&>(*child).all_;
    child = child->parent;
    if (trace != nullptr) note_wait_of_borrower(here, *child, child == &self);
    all.settle_first(all.begun_ - 1);
    all.park(*child, all.count_ - all.begun_ + 1);
  }
  return *innermost;
}

// Gives a child that has not begun a root of its own. A stop of the parent finds the child in the list, or was there before.
join_child& join::make_child(std::size_t index, void* room) noexcept {
  join_child* child;
  if (kind_->make != nullptr) {
    child = ::new (room) made_child{*this, index, *lender_};
  } else {
    child = ::new (room) join_child{*this, index, *lender_};
    child->adopt(frames_[index], promise_base::of(frames_[index]));
  }
  if (enlist(*child)) child->request_stop();
  return *child;
}

// Enters a child into the list of those that a stop tells. True: the others were told already.
bool join::enlist(join_child& one) noexcept {
  const std::lock_guard guard{lock_};
  one.before_ = children_;
  children_ = &one;
  return told_;
}

// Starts the next child that could not be offered to others. Called by the run loop of the same thread, for one child after
// the other, when nothing else is next.
void join::start_in_turn(job& self) noexcept {
  join& mine = static_cast<join&>(self);
  worker& here = this_worker();
  const std::uint32_t index = mine.begun_;
  mine.begun_ = index + 1;
  if (mine.begun_ != mine.count_) {
    self.next = here.local;
    here.local = &self;
  }
  void* const room = mine.take_room(index);
  if (room == nullptr) {
    mine.kind_->fail(mine, index);
    return mine.count_down();
  }
  join_child& child = mine.make_child(index, room);
  child.count_in_like(mine.lender_, here);
  enter(here, &child);
  run_next(child.top);  // once the child has ended, `mine` may be gone
}

void join::take_rest(job& self) noexcept {
  join& mine = static_cast<join&>(self);
  mine.run_some(mine.begun_, mine.count_, mine.take_room(mine.begun_));
}

void join::take_piece(job& self) noexcept {
  const piece some = static_cast<piece&>(self);
  some.of->run_some(some.from, some.to, &self);
}

// Runs children that this worker has stolen: offers halves of them until one is left, so that others steal the larger pieces
// first, and runs that one. `room` is memory for the first.
void join::run_some(std::size_t from, std::size_t to, void* room) noexcept {
  pool_worker& mine = *this_worker().of_pool;
  while (to - from > 1) {
    const std::size_t middle = from + (to - from) / 2;
    if (void* const place = take_room(middle); place == nullptr) {
      fail_some(middle, to);
    } else {
      auto& rest = *::new (place) piece;
      rest.run = take_piece;
      rest.of = this;
      rest.from = middle;
      rest.to = to;
      if (!mine.offer(rest)) mine.home->post(rest);
    }
    to = middle;
  }
  if (room == nullptr) {
    kind_->fail(*this, from);
    return count_down();
  }
  join_child& child = make_child(from, room);
  child.count_in(this_worker());
  child.run_here();  // this join may be gone after this line
}

// ---- the end ---------------------------------------------------------------------------------------------------------------

// A child has ended stopped, and says why, unless it was told to with the parent.
WEFT_SELDOM void join::note_stopped(const join_child& one) noexcept {
  const auto causes = causes_of_end(one);
  const unsigned char mine = causes.empty() ? one_stopped : one_stopped | has_cause;
  const unsigned char before = any_.fetch_or(mine, std::memory_order_relaxed);  // the countdown carries it
  if (!causes.empty() && (before & has_cause) == 0) room_of_cause().put(causes.front());
}

void join::why(const waiter& self, cause_list& into) noexcept {
  join& mine = *static_cast<const wait&>(self).all;
  if ((mine.any_.load(std::memory_order_relaxed) & has_cause) != 0)  // carried
    into.add(mine.room_of_cause().it);
}

void join::child_ended(root& self, bool stopped) noexcept {
  auto& child = static_cast<join_child&>(self);
  join& mine = *child.all_;
  if (stopped) [[unlikely]]
    mine.note_stopped(child);
  mine.kind_->settle(mine, child.index_, stopped);
  leave_root();  // the child's root lies in the parent's frame, and the parent goes on when the last child has counted down
  mine.count_down();
}

inline void join::count_down() noexcept {
  if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) finish();  // -> join, <- join
}

wake_up join::how() noexcept {
  const bool stopped = (any_.load(std::memory_order_relaxed) & one_stopped) != 0 &&
                       !kind_->any_failed(*this);  // the countdown carries it
  return stopped ? wake_up::stopped : wake_up::completed;
}

// Lets the parent go on. By whoever brought the count to 0. Until it has claimed the wait, a reader may hold that, who reads
// the parent's root.
void join::finish() noexcept { reinterpret_cast<wait*>(rooms_)->finish(how()); }

// A stop is deferred only if the count is not 0. Else all children have ended, or the parent has not added theirs yet, and
// nothing would keep the join alive until the deferred stop runs.
on_stop join::stop_children(waiter& self) noexcept {
  join& mine = *static_cast<wait&>(self).all;
  worker& here = this_worker();
  if (stop_turn::must_defer(here) && count_one_more(mine.pending_)) [[unlikely]] {
    stop_turn::defer(here, self);
    return on_stop::forwarded;
  }
  const stop_turn turn{here};
  mine.stop_all();
  return on_stop::forwarded;
}

void join::run_deferred_stop(waiter& self) noexcept {
  join& mine = *static_cast<wait&>(self).all;
  mine.stop_all();
  mine.count_down();
}

// A join whose children are made as they begin is recognized by this function, too.
void join::no_stop_ends_here(boundary&) noexcept {
  fail("a child of when_all that borrows its parent's root has ended stopped");
}

void join::stop_all() noexcept {
  join_child* one;
  {
    const std::lock_guard guard{lock_};
    told_ = true;
    one = children_;
  }
  for (; one != nullptr; one = one->before_) one->request_stop();
}

}  // namespace weft::detail
