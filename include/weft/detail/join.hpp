// Fork and join: the children of a when_all, which go on side by side where there are threads for that, and cost next to
// nothing where there are not. Part of combine.hpp; groups that may decide early are in detail/group.hpp.
//
// A child borrows. It starts by transfer, in its parent's root and on its parent's stack of frames, as if it was called;
// while it runs, the others lie in the worker's deque as one job. When it returns, its parent pops that job, if nobody has
// taken it, and goes on with the next child. So a join that nobody has stolen from is two plain calls: no root is made,
// nothing is counted, no operation is atomic.
//
// A child gets a root of its own
//
//   when it waits   for a wait, a stop and a hop belong to a root. Then all children that borrow the same root get theirs,
//                   from the innermost outward, and their parents wait (take_root)
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
// allocated, and freed at the end; only that of the one that borrows is there before, since a wait must not fail. After that one
// has waited, none borrows any more.
//
// Source: the borrowed root is what Cilk calls the fast clone (Frigo, Leiserson, Randall, PLDI 1998).
//
// Rejected: (a) a root for each child: 20 words to fill, 60 to 90 ns a call of fib. (b) A count of those who have not
// ended: a read-modify-write for each child. (c) A child that waits in its parent's root: what its siblings are to be
// told, they would hear when it has ended.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <tuple>
#include <utility>
#include <weft/detail/atomic.hpp>
#include <weft/detail/group.hpp>
#include <weft/detail/lock.hpp>
#include <weft/detail/standard.hpp>
#include <weft/task.hpp>

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
  friend root& lend_no_more(root&) noexcept;

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
  };

  /// The parent's wait.
  struct wait : waiter {
    explicit wait(join& of) noexcept : waiter{type}, all{&of} {}
    join* all;
  };

  /// What must be there for each child: for its root, or for a job of several that begins with it; and before the first
  /// for the parent's wait.
  struct room {
    alignas(join_child) std::byte bytes[sizeof(join_child)];
  };
  static_assert(sizeof(wait) <= sizeof(room) && alignof(wait) <= alignof(room));

  join(const kind& what, std::coroutine_handle<>* frames, room* rooms, std::size_t count) noexcept
      : boundary{what.make != nullptr ? returned_and_makes
                 : what.at_once       ? returned_to_slot
                                      : returned},
        kind_{&what},
        frames_{frames},
        rooms_{rooms},
        count_{static_cast<std::uint32_t>(count)} {
    job::run = take_rest;
  }

  /// Begins with the first child, for `caller`, which has suspended in `self`.
  WEFT_PER_AWAIT std::coroutine_handle<> start(root& self, std::coroutine_handle<> caller) noexcept {
    continuation = caller;
    owner = &self;
    lender_ = &self;
    was_lent_ = std::exchange(self.is_lent, true);
    begun_ = 1;
    offered_ = false;
    if (count_ != 1) offer_rest();
    return lend(0);
  }
  /// The same where it is known that there are several, and which is the first: nothing is read again behind the call.
  WEFT_PER_AWAIT std::coroutine_handle<> start(root& self, std::coroutine_handle<> caller,
                                               std::coroutine_handle<> first) noexcept {
    continuation = caller;
    owner = &self;
    lender_ = &self;
    was_lent_ = std::exchange(self.is_lent, true);
    begun_ = 1;
    offered_ = false;
    promise_base& promise = promise_base::of(first);
    promise.continuation = handle();
    promise.owner = &self;
    self.top = first;
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
    offered_ = false;
    self.top = handle();
    if (count_ != 1) offer_rest();
  }
  WEFT_PER_AWAIT std::coroutine_handle<> start_with(std::coroutine_handle<> first) noexcept {
    was_lent_ = owner->is_lent;
    if (first == nullptr) [[unlikely]]
      return start_later();
    return lend_made(first);
  }
  bool has_begun() const noexcept { return continuation != nullptr; }
  /// At their end: those of their roots that were allocated.
  void free_roots() noexcept;
  /// What must be there for them: the parent's wait, and the root of the one that borrows.
  static constexpr std::size_t bytes_for_made = sizeof(wait) + sizeof(join_child);
  static_assert(sizeof(wait) % alignof(join_child) == 0);

  void lies_at(std::coroutine_handle<>* frames, room* rooms) noexcept {
    frames_ = frames;
    rooms_ = rooms;
  }
  /// Before it starts.
  void is_of(const kind& what) noexcept {
    kind_ = &what;
    frame::resume = what.at_once ? returned_to_slot : returned;
  }

 private:
  friend join_child;
  friend made_child;
  friend root& lend_no_more(root&) noexcept;

  // Some children that nobody has begun with.
  struct piece : job {
    join* of;
    std::size_t from, to;
  };

  static void returned(frame* self);
  static void returned_to_slot(frame* self);
  static void call_and_go_on(frame* self);
  static void next_child(frame* self);
  static void returned_and_makes(frame* self);
  static void make_next(frame* self);
  static void begin_made(frame* self);
  static void take_rest(job& self) noexcept;
  static void take_piece(job& self) noexcept;
  static void start_in_turn(job& self) noexcept;
  static on_stop stop_children(waiter& self) noexcept;
  static void stop_in_turn(waiter& self) noexcept;
  void stop_all() noexcept;
  static void tell(const waiter& self, const char* what, wait_subjects& into) noexcept {
    into.add(what, static_cast<const wait&>(self).all);
  }
  static constexpr wait_type type{stop_children, "children of a when_all", tell, nullptr, nullptr, stop_in_turn};
  static void child_ended(root& self, bool stopped) noexcept;

  std::coroutine_handle<> lend(std::size_t index) noexcept {
    const std::coroutine_handle<> child = frames_[index];
    promise_base& promise = promise_base::of(child);
    promise.continuation = handle();
    promise.owner = owner;
    owner->top = child;
    return child;
  }
  void offer_rest() noexcept;
  void offer_if_shared(pool_worker& mine) noexcept;
  void offer(pool_worker& mine) noexcept;
  void offer_beyond(pool_worker& mine) noexcept;
  void call_one(pool_worker& mine) noexcept;
  std::coroutine_handle<> wait_for_others() noexcept;
  void settle_first(std::size_t ended) noexcept;
  void* room_of(std::size_t index) noexcept { return &rooms_[index + 1]; }
  void* take_room(std::size_t index) noexcept;
  std::coroutine_handle<> make(std::size_t index) noexcept;
  std::coroutine_handle<> next_made() noexcept;
  std::coroutine_handle<> start_later() noexcept;
  void* room_of_borrower() noexcept { return reinterpret_cast<std::byte*>(rooms_) + sizeof(wait); }
  // It may have needed a root of the parent's own to be made.
  std::coroutine_handle<> lend_made(std::coroutine_handle<> child) noexcept {
    promise_base& promise = promise_base::of(child);
    promise.continuation = handle();
    promise.owner = owner;
    owner->top = child;
    owner->is_lent = true;
    return child;
  }
  void park(root& parent, std::size_t others) noexcept;
  void run_some(std::size_t from, std::size_t to, void* room) noexcept;
  void fail_some(std::size_t from, std::size_t to) noexcept;
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
  bool offered_;                // those that have not begun are in the worker's deque
  bool was_lent_;               // the parent borrows, too

 protected:
  bool in_slots_ = false;  // all were settled; else none was that is not settled at once
  // From here on: for children that have a root of their own.
  plain<bool> told_ = false;  // they were told to stop; under the lock, as the list
  tiny_lock lock_;
  // Set by children before they count down, read by the last one: the countdown carries it.
  atomic<bool> any_stopped_{false};

 private:
  plain<join_child*> children_ = nullptr;  // newest first
  //   edge join  what the child did, and its result  ->  the parent
  atomic<std::int64_t> pending_{0};
};

/// Room for a T, which whoever knows when makes and destroys.
template <class T>
union uninitialized {
  uninitialized() noexcept {}
  ~uninitialized() {}
  T it;
};

/// Room for children's roots, and for their results. Lies before the join, which is used more.
template <class... Ts>
struct join_rooms {
  std::tuple<uninitialized<outcome<Ts>>...> slots;  // while `in_slots_`
  join::room rooms[sizeof...(Ts) + 1];
};

/// `co_await when_all(a, b, ...)`.
template <class... Ts>
class [[nodiscard("when_all does nothing until it is awaited")]] WEFT_ELIDABLE tuple_join : public knows_roots,
                                                                                            join_rooms<Ts...>,
                                                                                            join {
  static constexpr std::size_t count = sizeof...(Ts);
  using indices = std::index_sequence_for<Ts...>;

 public:
  explicit tuple_join(task<Ts>&&... tasks) noexcept
      : join{of_tuple, frames_, this->rooms, count}, frames_{task_access::release(std::move(tasks))...} {}
  tuple_join(tuple_join&& other) noexcept : join{of_tuple, frames_, this->rooms, count} {  // before it is awaited
    for (std::size_t i = 0; i != count; ++i) frames_[i] = std::exchange(other.frames_[i], nullptr);
  }
  ~tuple_join() {
    if (frames_[0]) [[likely]] {
      for (std::size_t at = count; --at != 0;) frames_[at].destroy();  // the newest first, as they lie
      std::exchange(frames_[0], nullptr).destroy();
    } else if (this->in_slots_) {
      leave_slots();
    }
  }

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  WEFT_PER_AWAIT std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    root& self = *caller.promise().owner;
    if constexpr (count > 1)
      return transfer(self, this->start(self, caller, frames_[0]));
    else
      return transfer(self, this->start(self, caller));
  }
  std::tuple<element<Ts>...> await_resume() {
    if (!frames_[0]) [[unlikely]]
      return take_from_slots();
    return take_from_frames(indices{});
  }

 private:
  template <std::size_t I>
  auto& promise() noexcept {
    using result = std::tuple_element_t<I, std::tuple<Ts...>>;
    return std::coroutine_handle<task_promise<result>>::from_address(frames_[I].address()).promise();
  }
  // The first failure in order is thrown by take_element().
  template <std::size_t... I>
  std::tuple<element<Ts>...> take_from_frames(std::index_sequence<I...>) {
    return std::tuple<element<Ts>...>{take_element(this->template promise<I>())...};
  }
  // Beside one that failed, one that was stopped has left its slot empty.
  std::tuple<element<Ts>...> take_from_slots() {
    return std::apply(
        [](auto&... slots) {
          (throw_failure(slots.it), ...);
          return std::tuple<element<Ts>...>{take_element(slots.it)...};
        },
        this->slots);
  }

  template <std::size_t I>
  void settle_child(bool stopped) noexcept {
    auto& slot = *::new (&std::get<I>(this->slots).it) outcome<std::tuple_element_t<I, std::tuple<Ts...>>>;
    if (!stopped) {
      slot.take_from(this->template promise<I>());
      frames_[I].destroy();
    }
    frames_[I] = nullptr;
  }
  // Apart, so that the way of results in frames needs no room on the stack.
  [[gnu::noinline]] void leave_slots() noexcept {
    this->in_slots_ = false;
    std::apply([](auto&... slots) { (std::destroy_at(&slots.it), ...); }, this->slots);
  }
  static void settle(join& self, std::size_t index, bool stopped) noexcept {
    [&]<std::size_t... I>(tuple_join& mine, std::index_sequence<I...>) {
      ((index == I ? mine.template settle_child<I>(stopped) : void()), ...);
    }(static_cast<tuple_join&>(self), indices{});
  }
  static bool any_failed(join& self) noexcept {
    return std::apply([](const auto&... slots) { return (slots.it.is_exception() || ...); },
                      static_cast<tuple_join&>(self).slots);
  }
  static constexpr kind of_tuple{settle, any_failed, false};

  std::coroutine_handle<> frames_[count];  // the first one is null: all are, for what they gave is in the slots
};
template <>
class tuple_join<> : public knows_roots {
 public:
  bool await_ready() const noexcept { return true; }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  std::tuple<> await_resume() const noexcept { return {}; }
};

}  // namespace weft::detail
