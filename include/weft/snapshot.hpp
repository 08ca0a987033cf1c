// A snapshot: all tasks, fibers and forks that live in this process, what each of them waits for and who holds that, and which
// of them wait for each other so that none will ever go on. Part of observe.hpp.
//
//     w::take_snapshot().text(std::cerr);  // who waits for whom, now
//
// Nothing is recorded while tasks run. A list holds the tasks that nothing stands above, such as those of sync_wait, start()
// and run(); all others are found by going down from those, through the scopes and joins that they wait in. How that works
// beside tasks that start, end and are stopped meanwhile is told in docs/design/0025-snapshots.md.
#pragma once

#include <chrono>
#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>
#include <weft/async_frame.hpp>
#include <weft/items.hpp>
#include <weft/stop.hpp>
#include <weft/task_id.hpp>

namespace weft {

/// What a task of a snapshot is.
enum class task_kind : unsigned char {
  task,         ///< made by start() or run(), or by something of weft's that stands alone
  thread,       ///< a sync_wait: its thread sleeps while it waits
  fork,         ///< of a scope
  fiber,        ///< made by go(): a fork that has a stack
  body,         ///< what with_scope runs beside the forks
  child,        ///< of a when_all, when_any, timeout or the like
  shared_task,  ///< awaited by any number of others
};
const char* to_string(task_kind kind) noexcept;

/// What a task does just now.
enum class task_state : unsigned char {
  running,  ///< a worker or thread is in it
  ready,    ///< it is in a queue, or about to be
  waiting,
};
const char* to_string(task_state state) noexcept;

/// One thing that a task waits for.
struct task_wait {
  const char* what = "";     ///< "mutex", "channel, to send": of the primitive's type, and not translated
  const void* at = nullptr;  ///< the primitive, or what stands for it; null: there is none
  task_id holder;            ///< who has it, or will bring it about; nothing: nobody alone, or it is not known
};

/// A task, fiber, fork or child that lived when the snapshot was taken.
struct task_info {
  task_id id;
  task_id
      parent;  ///< what waits for it; of a fork, and of a body, the task that waits for the scope. Nothing: it stands alone
  task_kind kind = task_kind::task;
  task_state state = task_state::ready;
  async_frame function;    ///< its outermost one; without an address where that is not known
  items<task_wait> waits;  ///< one thing; of a select each case; of a task that does not wait, none
  std::optional<std::chrono::steady_clock::time_point>
      since;                 ///< when it began to wait, if it is traced (see with_trace)
  items<async_frame> stack;  ///< of one that waits: its functions, innermost first, down to its outermost one
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();  ///< max: none
  bool stop_requested = false;      ///< it was told to stop, or one of those above it was
  bool is_shielded = false;         ///< and does not heed that now
  std::optional<stop_cause> cause;  ///< why, where that is known
  int worker = -1;                  ///< the one of snapshot::workers that is in it; -1: none
};

/// A thread that uses weft.
struct worker_info {
  int thread = 0;          ///< its number in the system, as in /proc/self/task
  int pool = -1;           ///< the one of snapshot::pools that it works for; -1: none
  task_id runs;            ///< what it is in; nothing: no task, or one that is not listed
  std::size_t queued = 0;  ///< jobs that wait in its own queues
};

/// A pool that has at least one worker now.
struct pool_info {
  const void* executor = nullptr;
  unsigned workers = 0;
};

/// Tasks that wait for each other, so that none of them will ever go on: each waits for what the next one holds, or is to
/// bring about, and the last one for the first.
struct deadlock {
  items<task_id> circle;
};

/// What take_snapshot() looks at.
struct snapshot_options {
  bool stacks = true;            ///< the functions of those that wait
  bool deadlocks = true;         ///< who waits for each other; where some, or all, seem to, all is looked at once more
  std::size_t most_frames = 64;  ///< of a deeper stack, the innermost
  std::size_t most_tasks = static_cast<std::size_t>(-1);  ///< of more, some; and then the snapshot is not complete
};

struct snapshot;
/// Looks at all that lives. What that promises and costs is said below, where it stands again.
snapshot take_snapshot(const snapshot_options& options);

/// What lived when it was taken. Each task was looked at while its wait was held for some microseconds; all of them together
/// are not of one moment. A deadlock is: it was seen twice, unchanged. So is what is_stuck() says.
struct snapshot {
  items<task_info> tasks;      ///< a parent before its children
  items<worker_info> workers;  ///< threads
  items<pool_info> pools;
  std::chrono::system_clock::time_point taken;
  /// False: some may be missing. A stop was just being handed to the forks of a scope, or there were too many.
  bool is_complete = true;

  /// The circles of tasks that wait for each other.
  const items<deadlock>& deadlocks() const noexcept { return found_; }
  /// Every task waits, some for what only another task would bring about (a channel, semaphore, event or condition variable),
  /// and nothing is pending that could end any of those waits: no timer, no I/O, no call in another thread. A hint: a thread
  /// that is no task may still do it.
  bool is_stuck() const noexcept { return stuck_; }

  /// The one with this id; null: it was not there.
  const task_info* find(task_id id) const noexcept;

  /// Writes it as one JSON object (RFC 8259), in one line.
  void json(std::ostream& out) const;
  /// Writes it as a graph for Graphviz: who stands below whom, and who waits for whom.
  void dot(std::ostream& out) const;
  /// Writes it for people: first who waits for each other, then the tree of all.
  void text(std::ostream& out) const;
  /// Only the former: of each circle a line, and what each of its tasks waits for, with its stack. Nothing, if there is none.
  void deadlocks_text(std::ostream& out) const;
  /// One of them, which is of this snapshot.
  void deadlock_text(const deadlock& one, std::ostream& out) const;

 private:
  friend snapshot take_snapshot(const snapshot_options& options);

  items<deadlock> found_;
  bool stuck_ = false;
};

/// Looks at all tasks, fibers and forks of this process.
///
/// Not listed  a fork in its first run where that began within fork(), and a child of a when_all that borrows its parent's
///             root, until they wait; a child of a when_all that another worker has taken, until its parent waits; jobs that are
///             no tasks; and forks that a stop is just being handed to, and then is_complete is false.
/// Threads     any, also in a task; one at a time, others wait. Not in a signal handler.
/// Fails       throws std::bad_alloc.
/// Cost        nothing while nobody calls it. Some tenths of a microsecond for each task, during which who would end that
///             task's wait spins; more for a fiber, whose stack is unwound.
snapshot take_snapshot(const snapshot_options& options = {});

}  // namespace weft
