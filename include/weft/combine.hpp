// Several at once: when_all.
//
// Each child is a root of its own, with its own wait and its own stop; its parent waits for all of them. Children start
// one after the other, here and now. One that runs through without waiting costs a return to the run loop and no atomic
// operation; only when one waits does the parent park, and only then do children count down.
//
// A child's record is needed while it runs. In a range, the record of a child that ran through is used again for the
// next one, so that 5000 children that never wait touch one record.
//
// Rejected: a wrapper coroutine around each child (a frame and two transfers more); results in an atomic's shadow (they
// lie in slots of the parent, and the countdown carries them).
#pragma once

#include <atomic>
#include <functional>
#include <new>
#include <ranges>
#include <tuple>
#include <variant>
#include <vector>
#include <weft/detail/atomic.hpp>
#include <weft/detail/hop.hpp>
#include <weft/detail/pipe.hpp>
#include <weft/task.hpp>

namespace weft {

namespace detail {

class group;

/// A root that is part of a group.
class child : public root {
 public:
  child(group& of, end_function done) noexcept;

  group* all;
  child* sibling = nullptr;  // the one before it that has not run through
};

/// The children of one parent, and its wait for them. Made, awaited and left by one frame.
class group : public waiter, public job {
 public:
  /// Makes the record of child `index` and returns it, its task adopted.
  using prepare_function = child& (*)(group&, std::size_t index) noexcept;

  group(prepare_function prepare, std::size_t count) noexcept
      : waiter{stop_children}, prepare_{prepare}, count_{count} {
    run = go_on;
  }

  /// Starts all, from the awaiting frame, which has suspended. The run loop goes on with the first.
  void start(root& parent) noexcept;

  /// By a child that ended. The group may be gone after this.
  void ended(child& one, bool stopped, bool failed) noexcept;

  root& parent() const noexcept { return *parent_; }

  /// Whether a child ended with an exception. After the end.
  bool any_failed() const noexcept { return any_failed_.load(std::memory_order_relaxed); }  // the countdown carried it

  /// How many children have started and not run through: the first free record.
  std::size_t waiting() const noexcept { return waiting_; }

 private:
  static on_stop stop_children(waiter& self) noexcept;
  static void go_on(job& self) noexcept;

  void start_next() noexcept;
  void all_started() noexcept;
  void resume_parent() noexcept;
  wake_up how() const noexcept;

  prepare_function prepare_;
  std::size_t count_;
  std::size_t started_ = 0;
  std::size_t waiting_ = 0;
  child* children_ = nullptr;       // those that have waited, newest first; complete when the parent parks
  child* parents_start_ = nullptr;  // what `worker::starting` was
  root* parent_ = nullptr;

  // Children that have waited and not ended, and one for the parent while it starts others.
  //   edge join  what the child did, and its result  ->  the parent
  atomic<std::size_t> pending_{0};
  // Set by children before they count down, read by the last one: the countdown carries them.
  atomic<bool> any_stopped_{false};
  atomic<bool> any_failed_{false};
};

/// Runs one task, and puts what came of it into its parent's slot.
template <class T>
class child_of final : public child {
  using frame_type = std::coroutine_handle<task_promise<T>>;

 public:
  child_of(group& of, task<T>&& work, outcome<T>& slot) noexcept
      : child{of, done}, frame_{task_access::release(std::move(work))}, slot_{&slot} {
    adopt(frame_, frame_.promise());
  }

 private:
  static void done(root& self, bool stopped) noexcept {
    auto& mine = static_cast<child_of&>(self);
    bool failed = false;
    if (!stopped) {
      mine.slot_->take_from(mine.frame_.promise());
      mine.frame_.destroy();
      failed = mine.slot_->is_exception();
    }
    mine.all->ended(mine, stopped, failed);  // mine may be gone after this line
  }

  frame_type frame_;
  outcome<T>* slot_;
};

/// Room for a record that is made when its child starts. Records need no destructor.
template <class Record>
struct record_room {
  alignas(Record) std::byte room[sizeof(Record)];
};

/// What stands in a tuple or vector for a result of type T.
template <class T>
using element = std::conditional_t<
    std::is_void_v<T>, std::monostate,
    std::conditional_t<std::is_reference_v<T>, std::reference_wrapper<std::remove_reference_t<T>>, T>>;

template <class T>
element<T> take_element(outcome<T>& from) {
  if constexpr (std::is_void_v<T>)
    return (from.take(), std::monostate{});
  else
    return from.take();
}

/// The first one that failed decides; one that was stopped beside it has left its slot empty.
template <class T>
void throw_failure(outcome<T>& from) {
  if (from.is_exception()) static_cast<void>(from.take());
}

// ---- when_all of some -------------------------------------------------------------------------------------------------------

template <class... Ts>
class all_of_tuple_awaiter : group {
 public:
  explicit all_of_tuple_awaiter(std::tuple<task<Ts>...>&& tasks) noexcept
      : group{prepare, sizeof...(Ts)}, tasks_{std::move(tasks)} {}
  all_of_tuple_awaiter(const all_of_tuple_awaiter&) = delete;

  bool await_ready() const noexcept { return sizeof...(Ts) == 0; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    this->start(suspending(caller));
  }
  std::tuple<element<Ts>...> await_resume() {
    if (any_failed()) std::apply([](auto&... slot) { (throw_failure(slot), ...); }, slots_);
    return std::apply([](auto&... slot) { return std::tuple<element<Ts>...>{take_element(slot)...}; }, slots_);
  }

 private:
  template <std::size_t I>
  static child& prepare_one(all_of_tuple_awaiter& self) noexcept {
    using record = child_of<std::tuple_element_t<I, std::tuple<Ts...>>>;
    return *::new (&std::get<I>(self.rooms_))
        record{self, std::move(std::get<I>(self.tasks_)), std::get<I>(self.slots_)};
  }
  static child& prepare(group& self, std::size_t index) noexcept {
    return [&]<std::size_t... I>(std::index_sequence<I...>) -> child& {
      static constexpr child& (*one[])(all_of_tuple_awaiter&) noexcept = {prepare_one<I>...};
      return one[index](static_cast<all_of_tuple_awaiter&>(self));
    }(std::index_sequence_for<Ts...>{});
  }

  std::tuple<task<Ts>...> tasks_;
  std::tuple<outcome<Ts>...> slots_;
  std::tuple<record_room<child_of<Ts>>...> rooms_;
};
template <>
class all_of_tuple_awaiter<> {
 public:
  explicit all_of_tuple_awaiter(std::tuple<>&&) noexcept {}
  bool await_ready() const noexcept { return true; }
  void await_suspend(std::coroutine_handle<>) const noexcept {}
  std::tuple<> await_resume() const noexcept { return {}; }
};

template <class... Ts>
class [[nodiscard("when_all does nothing until it is awaited")]] WEFT_ELIDABLE all_of_tuple : public knows_roots {
 public:
  explicit all_of_tuple(task<Ts>&&... tasks) noexcept : tasks_{std::move(tasks)...} {}
  all_of_tuple_awaiter<Ts...> operator co_await() && noexcept { return all_of_tuple_awaiter<Ts...>{std::move(tasks_)}; }

 private:
  std::tuple<task<Ts>...> tasks_;
};

// ---- when_all of a range ----------------------------------------------------------------------------------------------------

template <class T>
class all_of_range_awaiter : group {
  using record = child_of<T>;

 public:
  explicit all_of_range_awaiter(std::vector<task<T>>&& tasks)
      : group{prepare, tasks.size()},
        tasks_{std::move(tasks)},
        slots_(tasks_.size()),
        rooms_{std::make_unique_for_overwrite<record_room<record>[]>(tasks_.size())} {}
  all_of_range_awaiter(const all_of_range_awaiter&) = delete;

  bool await_ready() const noexcept { return tasks_.empty(); }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    this->start(suspending(caller));
  }
  std::vector<element<T>> await_resume() {
    if (any_failed())
      for (outcome<T>& slot : slots_) throw_failure(slot);
    std::vector<element<T>> values;
    values.reserve(slots_.size());
    for (outcome<T>& slot : slots_) values.push_back(take_element(slot));
    return values;
  }

 private:
  static child& prepare(group& self, std::size_t index) noexcept {
    auto& mine = static_cast<all_of_range_awaiter&>(self);
    return *::new (&mine.rooms_[mine.waiting()]) record{mine, std::move(mine.tasks_[index]), mine.slots_[index]};
  }

  std::vector<task<T>> tasks_;
  std::vector<outcome<T>> slots_;
  std::unique_ptr<record_room<record>[]> rooms_;  // untouched until a child needs one
};

template <class T>
class [[nodiscard("when_all does nothing until it is awaited")]] all_of_range : public knows_roots {
 public:
  explicit all_of_range(std::vector<task<T>>&& tasks) noexcept : tasks_{std::move(tasks)} {}
  all_of_range_awaiter<T> operator co_await() && { return all_of_range_awaiter<T>{std::move(tasks_)}; }

 private:
  std::vector<task<T>> tasks_;
};

/// The elements of an rvalue container are the callee's to move from; those of a view, or of an lvalue, are not.
template <class Range>
inline constexpr bool gives_its_elements = !std::is_lvalue_reference_v<Range> && !std::ranges::view<Range>;

template <class Range>
using range_awaitable = std::conditional_t<gives_its_elements<Range>, std::ranges::range_value_t<Range>&&,
                                           std::ranges::range_reference_t<Range>>;

}  // namespace detail

/// Awaits all of them, side by side: `auto [a, b] = co_await when_all(f(), g());`. Gives a tuple of their values; void
/// becomes std::monostate, a reference a std::reference_wrapper.
///
/// Suspends  until all have ended, however they end; on one thread, each runs up to its first wait in turn.
/// Cancel    a stop goes to all of them, and they are joined.
/// Fails     throws the failure of the first, in the order of the arguments, that failed; stopped if none failed and one
///           was stopped.
/// Cost      no allocation where their frames are elided; for one that runs through, some 10 ns more than an await.
template <awaitable... Awaitables>
auto when_all(WEFT_ELIDABLE_ARGUMENT Awaitables&&... awaitables) {
  return detail::all_of_tuple<await_result<Awaitables>...>{detail::as_task(std::forward<Awaitables>(awaitables))...};
}

/// Awaits all elements of a range; gives a vector of their values, in order. A vector of tasks is moved in; of a view,
/// each element is awaited as the view gives it. Otherwise as above. Cost: three allocations, for any number.
template <std::ranges::input_range Range>
  requires awaitable<detail::range_awaitable<Range>>
auto when_all(Range&& range) {
  using element = detail::range_awaitable<Range>;
  using value_type = await_result<element>;
  if constexpr (std::is_same_v<std::remove_cvref_t<Range>, std::vector<task<value_type>>> &&
                detail::gives_its_elements<Range>) {
    return detail::all_of_range<value_type>{std::forward<Range>(range)};
  } else {
    std::vector<task<value_type>> tasks;
    if constexpr (std::ranges::sized_range<Range>) tasks.reserve(std::ranges::size(range));
    for (auto&& one : range) tasks.push_back(detail::as_task(static_cast<element&&>(one)));
    return detail::all_of_range<value_type>{std::move(tasks)};
  }
}

}  // namespace weft
