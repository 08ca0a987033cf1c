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
// Results stay in the children's frames until the parent takes them (pairs and tuples), or are moved into the parent's
// slots when a child ends (ranges, whose frames are given back at once).
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
#include <memory>
#include <new>
#include <tuple>
#include <utility>
#include <vector>
#include <weft/detail/atomic.hpp>
#include <weft/detail/group.hpp>
#include <weft/detail/lock.hpp>
#include <weft/task.hpp>

namespace weft::detail {

class join;
struct worker;

/// A child in a root of its own.
class join_child final : public root {
 public:
  join_child(join& of, std::size_t index, root& parent) noexcept;

 private:
  friend join;
  friend root& lend_no_more(root&) noexcept;

  void take_over(std::coroutine_handle<> outermost) noexcept;

  join* all_;
  join_child* before_ = nullptr;  // the one that got a root before it; under the join's lock
  std::size_t index_;
};

class join : boundary, job {
 public:
  /// What the types of the children are needed for.
  struct kind {
    /// A child has ended with a value or an exception: its result goes where it belongs. Null: it stays in its frame.
    void (*settle)(join&, std::size_t index) noexcept;
    /// Whether a child that was not stopped has failed. At the end.
    bool (*any_failed)(join&) noexcept;
  };

  /// The parent's wait.
  struct wait : waiter {
    explicit wait(join& of) noexcept : waiter{stop_children}, all{&of} {}
    join* all;
  };

  /// What must be there for each child: for its root, or for a job of several that begins with it; and before the first
  /// for the parent's wait.
  struct room {
    alignas(join_child) std::byte bytes[sizeof(join_child)];
  };
  static_assert(sizeof(wait) <= sizeof(room) && alignof(wait) <= alignof(room));

  join(const kind& what, std::coroutine_handle<>* frames, room* rooms, std::size_t count) noexcept
      : boundary{what.settle != nullptr ? returned_to_slot : returned, nullptr, nullptr, nullptr},
        kind_{&what},
        frames_{frames},
        rooms_{rooms},
        count_{static_cast<std::uint32_t>(count)} {
    job::run = take_rest;
  }

  /// Begins with the first child, for `caller`, which has suspended in `self`.
  std::coroutine_handle<> start(root& self, std::coroutine_handle<> caller) noexcept;

 protected:
  ~join() = default;

  void lies_at(std::coroutine_handle<>* frames, room* rooms) noexcept {
    frames_ = frames;
    rooms_ = rooms;
  }

 private:
  friend join_child;
  friend root& lend_no_more(root&) noexcept;

  // Some children that nobody has begun with.
  struct piece : job {
    join* of;
    std::size_t from, to;
  };

  static void returned(frame* self);
  static void returned_to_slot(frame* self);
  static void take_rest(job& self) noexcept;
  static void take_piece(job& self) noexcept;
  static void start_in_turn(job& self) noexcept;
  static on_stop stop_children(waiter& self) noexcept;
  static void child_ended(root& self, bool stopped) noexcept;

  std::coroutine_handle<> lend(std::size_t index) noexcept;
  bool offer_rest(worker& here) noexcept;
  bool take_back_rest(worker& here) noexcept;
  std::coroutine_handle<> go_on() noexcept;
  std::coroutine_handle<> wait_for_others() noexcept;
  void* room_of(std::size_t index) noexcept { return &rooms_[index + 1]; }
  void park(root& parent, std::size_t others) noexcept;
  void run_some(std::size_t from, std::size_t to) noexcept;
  join_child& make_child(std::size_t index) noexcept;
  bool enlist(join_child& one) noexcept;
  wake_up how() noexcept;
  void finish() noexcept;

  const kind* kind_;
  std::coroutine_handle<>* frames_;  // of the children; one that was stopped has none
  room* rooms_;
  std::uint32_t count_;
  std::uint32_t begun_ = 0;
  root* lender_ = nullptr;  // whose root the first child borrows: what others' children are part of
  bool offered_ = false;    // those that have not begun are in the worker's deque
  bool was_lent_ = false;   // the parent borrows, too

 protected:
  // From here on: for children that have a root of their own.
  bool told_ = false;  // they were told to stop; under the lock, as the list
  tiny_lock lock_;
  // Set by children before they count down, read by the last one: the countdown carries it.
  atomic<bool> any_stopped_{false};

 private:
  join_child* children_ = nullptr;  // newest first
  //   edge join  what the child did, and its result  ->  the parent
  atomic<std::int64_t> pending_{0};
};

/// Destroys children's frames, the newest first, as they lie.
inline void destroy_frames(std::coroutine_handle<>* frames, std::size_t count) noexcept {
  while (count != 0)
    if (const std::coroutine_handle<> one = std::exchange(frames[--count], nullptr)) one.destroy();
}

/// Room for children's roots. Lies before the join, which is used more.
template <std::size_t count>
struct join_rooms {
  join::room rooms[count];
};

/// `co_await when_all(a, b, ...)`. The children's results stay in their frames.
template <class... Ts>
class [[nodiscard("when_all does nothing until it is awaited")]] WEFT_ELIDABLE tuple_join
    : public knows_roots,
      join_rooms<sizeof...(Ts) + 1>,
      join {
  static constexpr std::size_t count = sizeof...(Ts);
  using indices = std::index_sequence_for<Ts...>;

 public:
  explicit tuple_join(task<Ts>&&... tasks) noexcept
      : join{of_tuple, frames_, this->rooms, count}, frames_{task_access::release(std::move(tasks))...} {}
  tuple_join(tuple_join&& other) noexcept : join{of_tuple, frames_, this->rooms, count} {  // before it is awaited
    for (std::size_t i = 0; i != count; ++i) frames_[i] = std::exchange(other.frames_[i], nullptr);
  }
  ~tuple_join() { destroy_frames(frames_, count); }

  bool await_ready() const noexcept { return false; }
  template <class Promise>
  WEFT_PER_AWAIT std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    root& self = *caller.promise().owner;
    return transfer(self, this->start(self, caller));
  }
  std::tuple<element<Ts>...> await_resume() { return take(indices{}); }

 private:
  template <std::size_t I>
  auto& promise() noexcept {
    using result = std::tuple_element_t<I, std::tuple<Ts...>>;
    return std::coroutine_handle<task_promise<result>>::from_address(frames_[I].address()).promise();
  }
  // The first failure in order is thrown by take(); where a child was stopped beside one that failed, there is no value.
  template <std::size_t... I>
  std::tuple<element<Ts>...> take(std::index_sequence<I...>) {
    if (this->any_stopped_.load(std::memory_order_relaxed)) [[unlikely]]  // the countdown carried it
      ((frames_[I] ? throw_failure(this->template promise<I>()) : void()), ...);
    return std::tuple<element<Ts>...>{take_element(this->template promise<I>())...};
  }
  static bool any_failed(join& self) noexcept {
    return [&]<std::size_t... I>(tuple_join& mine, std::index_sequence<I...>) {
      return ((mine.frames_[I] && mine.template promise<I>().is_exception()) || ...);
    }(static_cast<tuple_join&>(self), indices{});
  }
  static constexpr kind of_tuple{nullptr, any_failed};

  std::coroutine_handle<> frames_[count];
};
template <>
class tuple_join<> : public knows_roots {
 public:
  bool await_ready() const noexcept { return true; }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  std::tuple<> await_resume() const noexcept { return {}; }
};

/// The children of `co_await when_all(range)`. A child's result is moved into its slot when it ends, and its frame goes.
template <class T>
class range_join : join {
 public:
  explicit range_join(std::vector<task<T>>&& tasks)
      : join{of_range, nullptr, nullptr, tasks.size()},
        slots_(tasks.size()),
        frames_(tasks.size()),
        rooms_{std::make_unique_for_overwrite<room[]>(tasks.size() + 1)} {
    this->lies_at(frames_.data(), rooms_.get());
    for (std::size_t i = 0; i != tasks.size(); ++i) frames_[i] = task_access::release(std::move(tasks[i]));
  }
  range_join(const range_join&) = delete;
  ~range_join() { destroy_frames(frames_.data(), frames_.size()); }

  bool await_ready() const noexcept { return slots_.empty(); }
  template <class Promise>
  WEFT_PER_AWAIT std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    root& self = *caller.promise().owner;
    return transfer(self, this->start(self, caller));
  }
  std::vector<element<T>> await_resume() {
    for (outcome<T>& slot : slots_) throw_failure(slot);
    std::vector<element<T>> values;
    values.reserve(slots_.size());
    for (outcome<T>& slot : slots_) values.push_back(take_element(slot));
    return values;
  }

 private:
  static void settle(join& self, std::size_t index) noexcept {
    auto& mine = static_cast<range_join&>(self);
    const auto frame =
        std::coroutine_handle<task_promise<T>>::from_address(std::exchange(mine.frames_[index], nullptr).address());
    mine.slots_[index].take_from(frame.promise());
    frame.destroy();
  }
  static bool any_failed(join& self) noexcept {
    for (const outcome<T>& slot : static_cast<range_join&>(self).slots_)
      if (slot.is_exception()) return true;
    return false;
  }
  static constexpr kind of_range{settle, any_failed};

  std::vector<outcome<T>> slots_;
  std::vector<std::coroutine_handle<>> frames_;
  std::unique_ptr<room[]> rooms_;  // untouched until a child needs one
};

}  // namespace weft::detail
