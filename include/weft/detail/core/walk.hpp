// How a snapshot finds the roots that live: from those that nothing stands above, which are in a list, down through what they
// wait in. Why so, and how it goes together with starts, ends and stops, is told in docs/design/0025-snapshots.md.
//
//   list      a root without a parent is a top_root, which enters itself into one of sixteen lists
//   waits     whoever holds a root's wait asks it for its children (wait_type::children). It counts the walk in as one more
//             part that is waited for, and lets go of the wait: so what was counted stays, and with it all that stands above
//   openings  what starts children before its parent has parked is in a list of its worker (worker::opening). It is taken out
//             by the same thread, which then passes the gate: it waits there while a walk reads these lists
//
// The walk is never the one who resumes somebody: where it was the last part that was waited for, the clock's thread says so
// to the wait.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <source_location>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/core/top_root.hpp>
#include <weft/detail/core/waiter.hpp>
#include <weft/stop.hpp>
#include <weft/task_id.hpp>

namespace weft::detail {

/// Some children of a wait, each of which waits, and is held, or was alive when it was looked at.
class child_batch {
 public:
  static constexpr std::size_t most = 16;

  struct child {
    root* one;
    task_id id;
    const void* function;  // null: not known
    root_kind kind;
    bool stop_requested;
    std::optional<held_wait> wait;  // none: it does not wait, and may be gone
  };

  child_batch() = default;
  child_batch(const child_batch&) = delete;

  bool is_full() const noexcept { return count_ == most; }
  std::size_t size() const noexcept { return count_; }
  child& operator[](std::size_t index) noexcept { return all_[index]; }
  void clear() noexcept { count_ = 0; }
  /// Of all waits that are still held.
  void let_go() noexcept {
    for (child& one : all_) one.wait.reset();
  }

  /// By whoever keeps it alive during this call, perhaps with a lock: allocates nothing.
  void add(root& one, const void* function, root_kind kind) noexcept;
  /// One that is not to be touched: it is being made, or goes.
  void add_untouched(root& one, root_kind kind) noexcept;

  /// For children that do not wait: what they have from what they are part of.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  std::optional<std::source_location> deadline_set_at;  // by whoever they are part of; none: by somebody further out
  std::optional<stop_cause> cause;                      // a copy: the scope may end once the walk has left it
  bool is_complete = true;

 private:
  child all_[most];
  std::size_t count_ = 0;
};

/// How far a walk has come in the children of one wait.
struct walk_place {
  bool is_opening = false;  // it was found behind the gate: its newest child may be starting
  bool has_begun = false;
  void* next = nullptr;
};

/// The functions of a wait for children.
struct wait_children {
  enum class answer {
    counted,  ///< the walk is counted, and what is waited for stays until leave()
    none,     ///< all have ended
    unclear,  ///< all have ended, or the parent is just about to wait: nothing was counted
    busy,     ///< a lock is taken, for which its holder must not wait: ask again
  };
  /// By the holder of the wait, or behind the gate.
  answer (*count_in)(waiter& of) noexcept;
  /// When the wait ends.
  enum class ends {
    with_all,  ///< when all children have ended
    with_any,  ///< when one has ended, which may have the others stopped
    in_time,   ///< when a time is over, too
  };
  ends (*how)(const waiter& of) noexcept;
  /// Of one that was found behind the gate: the root that waits, or is about to.
  root& (*parent)(waiter& of) noexcept;

  // By who was counted in, and holds no wait.

  /// Adds up to child_batch::most. False: those were the last.
  bool (*next)(waiter& of, walk_place& at, child_batch& into) noexcept;
  /// True: the walk was the last that was waited for, and owes a call of ended(). Else all may be gone.
  bool (*leave)(waiter& of) noexcept;
  void (*ended)(waiter& of) noexcept;
};

/// What of a wait a walk may use.
struct walk_here {
  static const wait_children* children_of(const waiter& one) noexcept { return one.type_->children; }
  static const char* name_of(const waiter& one) noexcept { return one.type_->name; }
};

// ---- roots that nothing stands above ------------------------------------------------------------------------------------

/// Held by whoever walks: one at a time.
extern constinit std::mutex walks_lock;

/// All of them, for a walk.
struct top_roots {
  struct place {
    std::size_t list = 0;
    bool has_begun = false;
  };
  /// Adds up to child_batch::most. False: those were the last. One walk at a time.
  static bool next(place& at, child_batch& into) noexcept;
  /// A walk that has begun, and does not go to the end.
  static void leave(place& at) noexcept;

  static void before_fork() noexcept;
  static void after_fork() noexcept;
};

// ---- ids ------------------------------------------------------------------------------------------------------------------

/// Which generation of roots lies where. Entries are made when an id is asked for.
struct task_ids {
  /// Makes room for so many more. Throws std::bad_alloc.
  static void reserve(std::size_t more);
  /// By who has reserved that, and keeps the root alive. Allocates nothing.
  static task_id of(root& one) noexcept;
  /// The same of a root that may be made anew at this moment, at the same address. It is not a fork.
  static task_id of_untouched(root& one) noexcept;
  /// The number of the generation that is made next.
  static std::uint64_t next_generation() noexcept;
  /// Forgets those that were made before `oldest` and are not in `alive`, which is sorted. Throws std::bad_alloc.
  static void keep_only(const task_id* alive, std::size_t count, std::uint64_t oldest);
  static std::size_t size() noexcept;

  static void before_fork() noexcept;
  static void after_fork() noexcept;

 private:
  friend task_id id_of(root& one);
  static void reserve_held(std::size_t more);
  static task_id of_held(root& one) noexcept;
  static task_id entered(const root& one, bool is_known) noexcept;
};

/// Notes that the id of a fork was asked for; whether it was before. Defined where forks are: the record of one that runs
/// through is used for the next one, of which it then knows nothing.
bool note_id_of_fork(root& fork) noexcept;

}  // namespace weft::detail
