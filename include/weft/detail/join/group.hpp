// The children of one parent: what when_all, when_any, timeout and their like are made of. Part of combine.hpp.
//
// Each child is a root of its own, with its own wait and its own stop; its parent waits for all of them. Children start
// one after the other, here and now. One that runs through without waiting costs a return to the run loop and no atomic
// operation; only when one waits does the parent park, and only then do children count down.
//
// A group may decide before all have ended: a child has won, a timer has fired. Then those that wait are stopped, and
// those that have not started never are; the parent goes on when all have ended, as ever. The list of those that wait is
// complete once the parent has started the last: whoever comes second, the parent with the list or the one who decides,
// stops them.
//
//   who decides    marks `decided`; if the list was complete, walks it. Before it counts down, or lets go of the group
//   parent         marks `listed`; if it was decided before, walks the list. Before it parks. Where only a timer decides: before
//                  it arms that
//   stopper        walks the list: the parent has parked
//
// A child's record is needed while it runs. In a range, the record of a child that ran through is used again for the
// next one, so that 5000 children that never wait touch one record.
//
// Rejected: a wrapper coroutine around each child (a frame and two transfers more); results in an atomic's shadow (they
// lie in slots of the parent, and the countdown carries them).
#pragma once

#include <atomic>
#include <cstddef>
#include <new>
#include <source_location>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/base/standard.hpp>
#include <weft/detail/core/cause_list.hpp>
#include <weft/stop.hpp>
#include <weft/task.hpp>

namespace weft::detail {

class group;

/// A root that is part of a group.
class child : public root {
 public:
  child(group& of, end_function done) noexcept;

  group* all;
  // Written as it starts.
  child* sibling;     // the one before it that has not run through
  std::size_t index;  // which one it is
};

/// The children of one parent, and its wait for them. Made, awaited and left by one frame.
class group : public waiter, public job {
 public:
  /// Makes the record of child `index` and returns it, its task adopted.
  using prepare_function = child& (*)(group&, std::size_t index) noexcept;

  /// What groups of a type have in common.
  struct deciding {
    prepare_function prepare;
    /// When `one` has ended, and was not stopped: its outcome is in its slot. Null: no child wins.
    void (*child_ended)(group&, child& one, bool failed) noexcept;
    /// Before the parent waits. Null: nothing.
    void (*about_to_wait)(group&) noexcept;
    /// Why it ends what still runs, for why_stopped().
    const char* reason;
  };

  /// `where`: the call that made it.
  group(std::size_t count, const deciding& kind, std::source_location where) noexcept
      : waiter{type}, kind_{&kind}, count_{count}, where_{where}, pending_{count + 1} {
    run = go_on;
  }

  /// Starts all, from the awaiting frame, which has suspended. The run loop goes on with the first.
  void start(root& parent) noexcept;

  /// By a child that ended. The group may be gone after this.
  void ended(child& one, bool stopped, bool failed) noexcept;

  root& parent() const noexcept { return *parent_; }

  /// Whether a child ended with an exception. After the end.
  bool any_failed() const noexcept { return any_failed_.load(std::memory_order_relaxed); }  // the countdown carried it

  /// Why it has ended those that still ran.
  stop_cause why() const noexcept { return {.reason = kind_->reason, .where = where_}; }

  /// How many children have started and not run through: the first free record.
  std::size_t waiting() const noexcept { return waiting_; }

 protected:
  ~group() = default;

  /// Ends what still runs. False: that was decided before. By a child in child_ended, by the parent in about_to_wait, or
  /// for a group of one child by whatever the parent waits for before it leaves; the group may be gone then.
  bool decide() noexcept;
  bool is_decided() const noexcept {
    return (marks_.load(std::memory_order_relaxed) & decided) != 0;
  }  // a hint, or after
  /// In about_to_wait, of a group in which no child wins: marks the list as complete, before the caller arms what may decide.
  /// Nobody could decide until then, so it need be no read-modify-write.
  void list() noexcept {
    marks_.store(listed, std::memory_order_relaxed);
  }  // the lock of a clock, say, carries the edge

 private:
  static on_stop stop_children(waiter& self) noexcept;
  static void run_deferred_stop(waiter& self) noexcept;
  static void tell(const waiter& self, const char* what, wait_subjects& into) noexcept {
    into.add(what, &static_cast<const group&>(self));
  }
  WEFT_SELDOM void note_stopped(const child& one) noexcept;
  static void why(const waiter& self, cause_list& into) noexcept;
  static const wait_layout seen;
  static const wait_children walk;
  static constexpr wait_type type{.leave = stop_children,
                                  .name = "children of a when_any or the like",
                                  .tell = tell,
                                  .run_deferred_stop = run_deferred_stop,
                                  .why = why,
                                  .layout = &seen,
                                  .children = &walk};
  static void go_on(job& self) noexcept;
  bool is_listed() const noexcept {
    return (marks_.load(std::memory_order_relaxed) & listed) != 0;  // by the parent, which alone sets it
  }

  void start_next() noexcept;
  void all_started() noexcept;
  void park_parent(std::size_t ours) noexcept;
  void resume_parent() noexcept;
  wake_up how() const noexcept;
  void count_down(std::size_t by) noexcept;

  void stop_all() noexcept;
  void end_all() noexcept;
  std::size_t stop_here() noexcept;

  const deciding* kind_;
  std::size_t count_;
  std::source_location where_;
  std::size_t started_ = 0;
  std::size_t waiting_ = 0;
  // Those that have waited, newest first, and before them the one that starts; complete when the parent parks. By the parent's
  // thread. Relaxed but for a walk: who stops them is ordered by `list`.
  //   edge open  a child's record, and its link to those before it  ->  a walk that finds it
  //              No model fails without it: the records of a group are not watched.
  atomic<child*> children_{nullptr};
  const root* parents_start_;  // what `worker::starting` was; written by start(), as the next one
  root* parent_;

  // Children that have waited and not ended, and one for the parent while it starts others.
  //   edge join  what the child did, and its result  ->  the parent
  atomic<std::size_t> pending_;  // published by the children's own parking
  // Set by children before they count down, read by the last one. Relaxed: the countdown carries them. has_cause: one of those that
  // were stopped, and not by the group, has written why, for the parent.
  static constexpr unsigned char one_stopped = 1, has_cause = 2;
  atomic<unsigned char> any_stopped_{0};
  atomic<bool> any_failed_{false};

  cause_room cause_;  // of `has_cause`

  static constexpr unsigned decided = 1, listed = 2;
  // Both set once. Relaxed reads: whoever acts on a mark has set one itself, or was carried here by the countdown.
  //   edge list  the list of children  ->  who decides, and walks it
  atomic<unsigned> marks_{0};
};
WEFT_LAYOUT(group, part_of_subject()
                       .with_children(offsetof(group, children_), offsetof(child, sibling), WEFT_ROOT_IN(child))
                       .with_parent(offsetof(group, parent_))
                       .that_decides_by(offsetof(group, kind_)));

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
  record_room() noexcept {}  // of one's own, so that nothing is zeroed
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

/// The same of one that has a value.
template <class T>
element<T> take_value(outcome<T>& from) {
  if constexpr (std::is_void_v<T>)
    return std::monostate{};
  else if constexpr (std::is_reference_v<T>)
    return *from.value();
  else
    return std::move(from.value());
}

/// The first one that failed decides; one that was stopped beside it has left its slot empty.
template <class T>
void throw_failure(outcome<T>& from) {
  if (from.is_exception()) static_cast<void>(from.take());
}

/// Ends the task that awaits it stopped, because what it stands for has.
struct ends_stopped : knows_roots {
  bool await_ready() const noexcept { return false; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> caller) const noexcept {
    end_stopped(suspending(caller));
  }
  void await_resume() const noexcept {}
};

// ---- records, slots and tasks of a group ------------------------------------------------------------------------------

template <class... Ts>
class tuple_group : public group {
 public:
  tuple_group(const tuple_group&) = delete;

  bool await_ready() const noexcept { return sizeof...(Ts) == 0; }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    this->start(suspending(caller));
  }

 protected:
  tuple_group(std::tuple<task<Ts>...>&& tasks, const deciding& kind, std::source_location where) noexcept
      : group{sizeof...(Ts), kind, where}, tasks_{std::move(tasks)} {}
  ~tuple_group() = default;

  std::tuple<outcome<Ts>...> slots_;

  static child& prepare(group& self, std::size_t index) noexcept {
    return [&]<std::size_t... I>(std::index_sequence<I...>) -> child& {
      static constexpr child& (*one[])(tuple_group&) noexcept = {prepare_one<I>...};
      return one[index](static_cast<tuple_group&>(self));
    }(std::index_sequence_for<Ts...>{});
  }

 private:
  template <std::size_t I>
  static child& prepare_one(tuple_group& self) noexcept {
    using record = child_of<std::tuple_element_t<I, std::tuple<Ts...>>>;
    return *::new (&std::get<I>(self.rooms_))
        record{self, std::move(std::get<I>(self.tasks_)), std::get<I>(self.slots_)};
  }

  std::tuple<task<Ts>...> tasks_;
  std::tuple<record_room<child_of<Ts>>...> rooms_;
};

template <class T>
class WEFT_CONTAINERS range_group : public group {
  using record = child_of<T>;

 public:
  range_group(const range_group&) = delete;

  bool await_ready() const noexcept { return tasks_.empty(); }
  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    this->start(suspending(caller));
  }

 protected:
  range_group(std::vector<task<T>>&& tasks, const deciding& kind, std::source_location where)
      : group{tasks.size(), kind, where},
        slots_(tasks.size()),
        tasks_{std::move(tasks)},
        rooms_{std::make_unique_for_overwrite<record_room<record>[]>(tasks_.size())} {}
  ~range_group() = default;

  std::vector<outcome<T>> slots_;

  static child& prepare(group& self, std::size_t index) noexcept {
    auto& mine = static_cast<range_group&>(self);
    return *::new (&mine.rooms_[mine.waiting()]) record{mine, std::move(mine.tasks_[index]), mine.slots_[index]};
  }

 private:
  std::vector<task<T>> tasks_;
  std::unique_ptr<record_room<record>[]> rooms_;  // untouched until a child needs one
};

}  // namespace weft::detail
