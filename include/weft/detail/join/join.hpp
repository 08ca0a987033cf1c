// Fork and join: the children of a when_all, which go on side by side where there are threads for that, and cost next to
// nothing where there are not. Part of combine.hpp; groups that may decide early are in join/group.hpp.
//
// A child borrows. It starts by transfer, in its parent's root and on its parent's stack of frames, as if it was called;
// while it runs, the others lie in the worker's deque as one job. When it returns, its parent pops that job, if nobody has
// taken it, and goes on with the next child. So a join that nobody has stolen from is two plain calls: no root is made,
// nothing is counted, no operation is atomic.
//
// A child gets a root of its own
//
//   when it waits   for a wait, a stop and a hop belong to a root. Then all children that borrow the same root get theirs,
//                   from the innermost outward, and their parents wait (promote_borrowers)
//   when it is stolen, or taken by the run loop because an earlier one waits
//   when it changes what belongs to a root: its environment, its shield
//
//   count_    children in all
//   begun_    those that have begun to borrow: the last one borrows now. By the parent's thread; when the job is out of its
//             deque, by whoever has it
//   pending_  goes down by one with each child that ends in a root of its own, up by the number of those when the parent
//             waits: whoever brings it to 0 then lets the parent go on
//
// A stolen job of several children is split in halves until one is left, each half a job for others to take.
//
// The results of a long range are moved into the parent's slots as each child ends, and its frame is given back at once.
// Those of tuples and short ranges stay in the children's frames until the parent takes them, which is cheaper by a quarter
// of fib; but when the parent is to wait they, too, are moved, and the frames go: a sibling may wait for what an argument of
// theirs holds.
//
// Children of when_all(n, make) are made as they begin, by whoever begins with them: the parent makes the next one when the
// last has ended and gone, what was taken is made in its own root, by a frame that runs there first. Rooms for such roots are
// allocated, and freed at the end; only that of the one that borrows is there before, since a wait must not fail. After
// that one has waited, none borrows any more.
//
// Source: a child that borrows is what Cilk calls the fast clone, one with a root of its own the slow clone (Frigo,
// Leiserson, Randall, PLDI 1998).
//
// Rejected: (a) a root for each child: 20 words to fill, 60 to 90 ns a call of fib. (b) A count of those who have not
// ended: a read-modify-write for each child. (c) A child that waits in its parent's root: no stop reaches its siblings.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/base/invoke.hpp>
#include <weft/detail/base/lock.hpp>
#include <weft/detail/base/standard.hpp>
#include <weft/detail/join/group.hpp>
#include <weft/task.hpp>

// Where a function has nothing left to do but to resume `next`. clang makes it a jump; elsewhere it is the run loop's. Where
// clang sees the coroutine being made, it knows the function that it jumps to, and that this one's calling convention has
// another name, for which it would leave out the jump: so it is not told whose frame that is.
#if defined(__clang__)
#define WEFT_GO_ON_IN(function, self) [[clang::musttail]] return function(self)
#define WEFT_JUMP_TO(next)                                            \
  do {                                                                \
    auto* to = static_cast<::weft::detail::frame*>((next).address()); \
    if (to == nullptr) return;                                        \
    asm("" : "+r"(to));                                               \
    WEFT_GO_ON_IN(to->resume, to);                                    \
  } while (false)
#else
#define WEFT_GO_ON_IN(function, self) return function(self)
#define WEFT_JUMP_TO(next) return run_next(next)
#endif

namespace weft::detail {

class join;
struct worker;
struct pool_worker;

/// A child in a root of its own.
class join_child : public root {
 public:
  join_child(join& of, std::size_t index, root& parent) noexcept;

 private:
  friend join;
  friend root& promote_borrowers(root&) noexcept;

  void take_over(std::coroutine_handle<> outermost) noexcept;

  join* all_;
  plain<join_child*> before_ = nullptr;  // the one that got a root before it; under the join's lock
  std::size_t index_;
};

/// One that is made when it begins, in a root that is there before it.
class made_child final : public join_child {
 public:
  made_child(join& of, std::size_t index, root& parent) noexcept;

 private:
  friend join;

  boundary beginning_;  // what runs first: makes it, and goes on in it
};

class join : boundary, job {
 public:
  /// What the types of the children are needed for.
  struct kind {
    /// A child has ended: its result, where it was not stopped, is moved into its slot, and its frame goes.
    void (*settle)(join&, std::size_t index, bool stopped) noexcept;
    /// Whether a child that was not stopped has failed. At the end.
    bool (*any_failed)(join&) noexcept;
    /// Children that borrow are settled as they end; else when the parent is to wait, if ever.
    bool at_once;
    /// Makes a child, whose frame is its frame from now on. Null: that has failed, and the child with it. Where this is null,
    /// all were made before; else they are settled at once.
    std::coroutine_handle<> (*make)(join&, std::size_t index) noexcept = nullptr;
    /// A child was not made, for want of memory.
    void (*fail)(join&, std::size_t index) noexcept = nullptr;
    /// Where one that was made and borrows returns to, if so.
    void (*returned)(frame* self) = nullptr;
    /// The handles of the frames lie right behind the join.
    bool frames_follow = false;
  };

  /// The parent's wait.
  struct wait : waiter {
    explicit wait(join& of) noexcept : waiter{type}, all{&of} {}
    static const wait_layout seen;
    join* all;
  };

  /// What lies behind the wait: why a child was stopped on its own, once `any_` says so.
  struct place_of_wait {
    alignas(wait) std::byte bytes[sizeof(wait)];
    cause_room cause;
  };

  /// What must be there for each child: for its root, or for a job of several that begins with it; and before the first
  /// for the parent's wait.
  struct room {
    alignas(join_child) std::byte bytes[sizeof(join_child)];
  };
  static_assert(sizeof(place_of_wait) <= sizeof(room) && alignof(place_of_wait) <= alignof(room));

  join(const kind& what, std::coroutine_handle<>* frames, room* rooms, std::size_t count) noexcept
      : boundary{what.make != nullptr ? what.returned
                 : what.at_once       ? returned_to_slot
                 : what.frames_follow ? returned<true>
                                      : returned<false>},
        kind_{&what},
        frames_{frames},
        rooms_{rooms},
        count_{static_cast<std::uint32_t>(count)} {
    job::run = take_rest;
    if (what.make != nullptr) stopped_here = no_stop_ends_here;
  }

  /// Begins with the first child, for `caller`, which has suspended in `self`.
  WEFT_PER_AWAIT std::coroutine_handle<> start(root& self, std::coroutine_handle<> caller) noexcept {
    continuation = caller;
    owner = &self;
    lender_ = &self;
    was_lent_ = std::exchange(self.before_wait, root::is_lent);
    begun_ = 1;
    offered_to_ = nullptr;
    if (count_ != 1) offer_rest();
    return lend(frames_[0]);
  }
  /// The same where it is known that there are several, and which is the first: nothing is read again behind the call.
  WEFT_PER_AWAIT std::coroutine_handle<> start(root& self, std::coroutine_handle<> caller,
                                               std::coroutine_handle<> first) noexcept {
    continuation = caller;
    owner = &self;
    lender_ = &self;
    was_lent_ = std::exchange(self.before_wait, root::is_lent);
    begun_ = 1;
    offered_to_ = nullptr;
    lend(first);
    offer_rest();
    return first;
  }

 protected:
  ~join() = default;

  /// The same where they are made as they begin: the first one between these two; null where that has failed.
  WEFT_PER_AWAIT void begin_making(root& self, std::coroutine_handle<> caller) noexcept {
    continuation = caller;
    owner = &self;
    lender_ = &self;
    begun_ = 1;
    offered_to_ = nullptr;
    self.top = handle();
    if (count_ != 1) offer_rest();
  }
  WEFT_PER_AWAIT std::coroutine_handle<> start_with(std::coroutine_handle<> first) noexcept {
    was_lent_ = owner->before_wait;
    if (first == nullptr) [[unlikely]]
      return start_later();
    return lend_made(first);
  }
  bool has_begun() const noexcept { return continuation != nullptr; }
  std::size_t count() const noexcept { return count_; }

  // What the function is made of that a child which borrows returns to, where they are made as they begin. What makes one is
  // the parent's code, and runs in the parent's root, as far as that is its own: `top` is this join, and the root is lent as
  // it was. It may need the parent a root, which this join is told as any frame is. So does what a child's end destroys.
  static join& of(frame* self) noexcept { return static_cast<join&>(*static_cast<boundary*>(self)); }
  /// How many have begun.
  WEFT_PER_AWAIT std::size_t borrower_has_ended() noexcept {
    owner->top = handle();
    owner->before_wait = was_lent_;
    return begun_;
  }
  bool has_begun_all() const noexcept { return begun_ == count_; }
  std::coroutine_handle<> parent() noexcept {
    owner->top = continuation;
    return continuation;
  }
  /// Begins with the next one, if older forks of the worker lie below those that have not begun.
  static bool begins_with_next(join& mine);
  void has_made_one() noexcept { was_lent_ = owner->before_wait; }
  std::coroutine_handle<> lend_made(std::coroutine_handle<> child) noexcept {
    owner->before_wait = root::is_lent;
    return lend(child);
  }
  static void make_next(frame* self);

  /// That of a child: before it counts down, if it does.
  void note_failure() noexcept { any_.fetch_or(one_failed, std::memory_order_relaxed); }  // the countdown carries it
  /// When all have ended.
  bool has_failed() const noexcept { return (any_.load(std::memory_order_relaxed) & one_failed) != 0; }  // carried

  /// At their end: those of their roots that were allocated.
  void free_roots() noexcept {
    if (children_ != nullptr) [[unlikely]]
      free_children_roots();
  }
  /// What must be there for them: the parent's wait, and the root of the one that borrows.
  static constexpr std::size_t bytes_for_made = sizeof(place_of_wait) + sizeof(join_child);
  static_assert(sizeof(place_of_wait) % alignof(join_child) == 0);

  void lies_at(std::coroutine_handle<>* frames, room* rooms) noexcept {
    frames_ = frames;
    rooms_ = rooms;
  }
  /// Before it starts: of a range that is longer, whose children are settled as they end.
  void is_of(const kind& what) noexcept {
    kind_ = &what;
    frame::resume = returned_to_slot;
  }

 private:
  friend join_child;
  friend made_child;
  friend root& promote_borrowers(root&) noexcept;

  // What has become of any child; the second is told of children that are made as they begin, the third of one that has noted why it
  // was stopped.
  static constexpr unsigned char one_stopped = 1, one_failed = 2, has_cause = 4;

  // Some children that nobody has begun with.
  struct piece : job {
    join* of;
    std::size_t from, to;
  };

  template <bool frames_follow>
  static void returned(frame* self);
  static void returned_to_slot(frame* self);
  static void call_and_go_on(frame* self);
  static void next_child(frame* self);
  static void begin_made(frame* self);
  static bool calls_one(join& mine);
  static void take_rest(job& self) noexcept;
  static void take_piece(job& self) noexcept;
  static void start_in_turn(job& self) noexcept;
  static on_stop stop_children(waiter& self) noexcept;
  static void run_deferred_stop(waiter& self) noexcept;
  void stop_all() noexcept;
  cause_room& room_of_cause() noexcept { return reinterpret_cast<place_of_wait*>(rooms_)->cause; }
  WEFT_SELDOM void note_stopped(const join_child& one) noexcept;
  static void why(const waiter& self, cause_list& into) noexcept;
  static void no_stop_ends_here(boundary& self) noexcept;
  static void tell(const waiter& self, const char* what, wait_subjects& into) noexcept {
    into.add(what, static_cast<const wait&>(self).all);
  }
  static const wait_children walk;
  static constexpr wait_type type{.leave = stop_children,
                                  .name = "children of a when_all",
                                  .tell = tell,
                                  .run_deferred_stop = run_deferred_stop,
                                  .why = why,
                                  .layout = &wait::seen,
                                  .children = &walk};
  static void child_ended(root& self, bool stopped) noexcept;

  // To a child that begins now. It tells the root itself, if frames do (enter_root()).
  WEFT_PER_AWAIT std::coroutine_handle<> lend(std::coroutine_handle<> child) noexcept {
    promise_base& promise = promise_base::of(child);
    promise.continuation = handle();
    promise.owner = owner;
#if WEFT_COPIES_AWAITERS && WEFT_ASYNC_STACK
    owner->top = child;
#endif
    return child;
  }
  void offer_rest() noexcept;
  void offer_if_shared(pool_worker& mine) noexcept;
  void offer(pool_worker& mine) noexcept;
  void offer_beyond(pool_worker& mine) noexcept;
  void call_one(pool_worker& mine) noexcept;
  std::coroutine_handle<> wait_for_others() noexcept;
  void settle_first(std::size_t ended) noexcept;
  // Of children whose kind says that these follow.
  std::coroutine_handle<>* frames_behind() noexcept { return reinterpret_cast<std::coroutine_handle<>*>(this + 1); }
  void* room_of(std::size_t index) noexcept { return &rooms_[index + 1]; }
  void* take_room(std::size_t index) noexcept;
  std::coroutine_handle<> make(std::size_t index) noexcept;
  std::coroutine_handle<> next_made() noexcept;
  std::coroutine_handle<> start_later() noexcept;
  void* room_of_borrower() noexcept { return reinterpret_cast<std::byte*>(rooms_) + sizeof(place_of_wait); }
  void park(root& parent, std::size_t others) noexcept;
  void run_some(std::size_t from, std::size_t to, void* room) noexcept;
  void fail_some(std::size_t from, std::size_t to) noexcept;
  void free_children_roots() noexcept;
  join_child& make_child(std::size_t index, void* room) noexcept;
  void count_down() noexcept;
  bool enlist(join_child& one) noexcept;
  wake_up how() noexcept;
  void finish() noexcept;

  const kind* kind_;

 protected:
  std::coroutine_handle<>* frames_;  // of the children; one that was stopped has none
  room* rooms_;
  std::uint32_t count_;

 private:
  plain<std::uint32_t> begun_;  // set when it starts, as the next three
  plain<root*> lender_;         // whose root the first child borrows: what others' children are part of
  pool_worker* offered_to_;     // in whose deque those are that have not begun; null: in none
  std::uint8_t was_lent_;       // the parent's root::before_wait: it may borrow, too

 protected:
  bool in_slots_ = false;  // all were settled; else none was that is not settled at once
  // From here on: for children that have a root of their own.
  plain<bool> told_ = false;  // they were told to stop; under the lock, as the list
  tiny_lock lock_;
  // Set by children before they count down, read by the last one, or behind it: the countdown carries it.
  atomic<unsigned char> any_{0};

 private:
  plain<join_child*> children_ = nullptr;  // newest first
  //   edge join  what the child did, and its result  ->  the parent
  atomic<std::int64_t> pending_{0};
};

}  // namespace weft::detail
