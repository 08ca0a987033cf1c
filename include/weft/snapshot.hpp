// A snapshot: all tasks, fibers and forks that live in this process, what each of them waits for, who holds that, and which of
// them are deadlocked. Part of observe.hpp.
//
//     w::take_snapshot().text(std::cerr);  // who waits for whom, now
//
// Nothing is recorded while tasks run. There is a list of the outermost tasks, such as those of sync_wait, start() and run();
// all others are found from these, through the scopes and joins in which they wait. How that works while tasks start, end and
// are stopped is told in docs/design/0025-snapshots.md.
#pragma once

#include <chrono>
#include <cstddef>
#include <iosfwd>
#include <optional>
#include <source_location>
#include <string>
#include <weft/async_frame.hpp>
#include <weft/items.hpp>
#include <weft/stop.hpp>
#include <weft/task_id.hpp>

namespace weft {

/// What a task of a snapshot is.
enum class task_kind {
  task,         ///< made by start() or run(), or an outermost task that weft has made
  thread,       ///< of a sync_wait, whose thread sleeps while it waits
  fork,         ///< of a scope
  fiber,        ///< made by go(): a fork that has a stack
  body,         ///< of a scope: the callable given to with_scope
  child,        ///< of a when_all, when_any, timeout or the like
  shared_task,  ///< awaited by any number of others
};
const char* to_string(task_kind kind) noexcept;

/// What a task is doing.
enum class task_state {
  running,  ///< a worker or another thread runs it
  ready,    ///< it is in a queue, or about to be put there
  waiting,
};
const char* to_string(task_state state) noexcept;

/// One thing that a task waits for.
struct task_wait {
  const char* what = "";     ///< "mutex", "channel, to send": names the type of primitive; never translated
  const void* at = nullptr;  ///< the address of the primitive or the like; null: there is none
  task_id holder;            ///< the task that holds it, or will end the wait; empty: no single one, or unknown
};

/// A task, fiber, fork or child that lived when the snapshot was taken.
struct task_info {
  task_id id;
  task_id
      parent;  ///< the task that waits for it; of a fork, and of a body, the one that waits for the scope. Empty: none does
  task_kind kind = task_kind::task;
  task_state state = task_state::ready;
  async_frame function;    ///< its outermost function; without an address where that is not known
  items<task_wait> waits;  ///< one; for a select, each case; none if the task does not wait
  std::optional<std::chrono::steady_clock::time_point>
      since;                 ///< when it began to wait, or to run, if it is traced (see with_trace)
  items<async_frame> stack;  ///< the functions of a task that waits (or runs, if asked for), innermost first
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();  ///< max: none
  std::optional<std::source_location> deadline_set_at;  ///< the line of the scope, or of the with_deadline()
  bool stop_requested = false;                          ///< it was told to stop, or a task above it was
  bool is_shielded = false;                             ///< it is below shielded(): the stop is deferred
  std::optional<stop_cause> cause;                      ///< of the stop, if known
  int worker = -1;                                      ///< index of its worker in snapshot::workers; -1: none
};

/// A thread that uses weft.
struct worker_info {
  int thread = 0;          ///< the kernel's id, as in /proc/self/task
  int pool = -1;           ///< the index in snapshot::pools of its pool; -1: none
  task_id runs;            ///< the task that it runs; empty: none, or one that is not listed
  std::size_t queued = 0;  ///< jobs in its own queues
  std::optional<std::chrono::steady_clock::time_point>
      since;  ///< when it began to run its present job, if that is traced
};

/// A pool that has at least one worker now.
struct pool_info {
  const void* executor = nullptr;
  unsigned workers = 0;
};

/// A deadlock: tasks of which each waits for what the next one holds, or is to bring about, and the last one for the first.
struct deadlock {
  items<task_id> circle;
};

/// What take_snapshot() looks at.
struct snapshot_options {
  bool stacks = true;           ///< of tasks that wait
  bool running_stacks = false;  ///< and of tasks that run: sends SIGPROF to threads that compute; see below
  bool deadlocks = true;        ///< looks for deadlocks; where some, or all, tasks seem stuck, all are walked once more
  std::size_t most_frames = 64;                           ///< of each stack; of a deeper one, the innermost
  std::size_t most_tasks = static_cast<std::size_t>(-1);  ///< if there are more, lists some; is_complete is false
};

struct snapshot;
/// Looks at all tasks, fibers and forks of this process. Documented at its second declaration, at the end.
snapshot take_snapshot(const snapshot_options& options);

/// All that lived when the snapshot was taken. Each task was looked at while its wait was held for some microseconds, so
/// different tasks may be seen at different moments. A deadlock is certain: it was seen twice, unchanged. So is the result of
/// is_stuck().
struct snapshot {
  items<task_info> tasks;      ///< a parent before its children
  items<worker_info> workers;  ///< threads
  items<pool_info> pools;
  std::chrono::system_clock::time_point taken;
  /// False: some may be missing, since a stop was just being handed to the forks of a scope, or there were too many.
  bool is_complete = true;

  /// The deadlocks.
  const items<deadlock>& deadlocks() const noexcept { return found_; }
  /// Whether every task waits, at least one of them for something that only another task would bring about (by a channel,
  /// semaphore, event or condition variable), and nothing is pending that could end any of these waits: no timer, no I/O, no
  /// call in another thread. A hint: a thread that runs no task may still do it.
  bool is_stuck() const noexcept { return stuck_; }

  /// The task with this id; null: it is not in the snapshot.
  const task_info* find(task_id id) const noexcept;

  /// Writes the snapshot as one JSON object (RFC 8259), in one line.
  void json(std::ostream& out) const;
  /// Writes it as a graph for Graphviz: which task is below which, and which waits for which.
  void dot(std::ostream& out) const;
  /// Writes it for people: first the deadlocks, then the tree of all tasks.
  void text(std::ostream& out) const;
  /// Writes only the deadlocks: for each a line, and then what each of its tasks waits for, with its stack. Nothing, if there
  /// is none.
  void deadlocks_text(std::ostream& out) const;
  /// Writes one deadlock, which is of this snapshot.
  void deadlock_text(const deadlock& one, std::ostream& out) const;

 private:
  friend snapshot take_snapshot(const snapshot_options& options);

  items<deadlock> found_;
  bool stuck_ = false;
};

/// Looks at all tasks, fibers and forks of this process.
///
/// Not listed  until they first wait: a fork in its first run, if that began within fork(), and a child of a when_all that
///             borrows its parent's root. Until its parent waits: a child of a when_all that another worker has taken. Jobs
///             that are no tasks. Forks that a stop is just being handed to: is_complete is false then.
/// Running     with running_stacks, a thread that computes is sent SIGPROF, in whose handler it unwinds its own stack: the
///             plain functions come first, and then the coroutines. A thread in a system call is sent nothing, since a signal
///             could end the call; of that thread, and of the calling one, only the coroutines are shown. A program's own
///             handler of SIGPROF still gets the signals that are not weft's. A task that has ended, or has moved to another
///             thread meanwhile, has no stack.
/// Threads     any, also in a task. One call at a time: others wait. Not in a signal handler.
/// Fails       throws std::bad_alloc.
/// Cost        nothing while nobody calls it. Some tenths of a microsecond for each task, for which a thread that would end
///             that task's wait spins; more for a fiber, whose stack is unwound. With running_stacks, also some microseconds
///             for each thread that computes, up to a tenth of a second where one does not answer, and a second walk.
snapshot take_snapshot(const snapshot_options& options = {});

}  // namespace weft
