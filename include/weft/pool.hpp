// The pool: threads that share their work, for tasks that compute; a runtime is built on one. Also the strand, an executor that
// runs one job at a time, and the worker_group, whose threads do not share work.
//
//     w::pool workers{{.threads = 4}};
//     auto answer = w::sync_wait(w::start_on(workers, think()));
//
// Each worker has a queue of jobs, and steals from others when that is empty. What a job posts goes into its worker's queue;
// what other threads post, into a queue of the pool. A worker that finds no job sleeps: an idle pool uses no processor time.
//
// Order. A task that was woken runs next on the worker that has woken it, but no more than some 16 such tasks in a row. A task
// that yields goes behind all jobs of its worker and behind those from outside (see yield()). No job waits for ever: jobs from
// outside are taken every few dozen jobs, and jobs behind one that runs for long are stolen within some milliseconds, or some
// thousand jobs.
//
// Rejected: one queue for all workers (contention: 1000 ns a switch at 16 threads); queues that others can't steal from (a long
// job would delay those behind it).
#pragma once

#include <cstddef>
#include <cstdint>
#include <weft/detail/base/config.hpp>
#include <weft/detail/base/forward.hpp>
#include <weft/detail/pool/pool_call.hpp>
#include <weft/executor.hpp>
#include <weft/hop.hpp>
#include <weft/stop.hpp>
#include <weft/task.hpp>

namespace weft {

namespace detail {
class pool_core;    // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final
class strand_core;  // as it is
}  // namespace detail

/// The options of a pool: `pool p{{.threads = 4, .name = "crunch"}};`.
struct pool_options {
  /// How many threads; 0: available_processors(). If there are more than processors, as many are awake as there are processors,
  /// and others wake when one of those blocks or runs one job for long.
  unsigned threads = 0;
  /// How many further threads, which normally sleep. While a worker blocks, or runs one job for more than some 20 ms, one of
  /// them runs the jobs behind it (as Go's sysmon arranges). They count in size() and stats().
  unsigned spare_workers = 0;
  const char* name = "weft";    ///< names its threads "weft-0" and so on; the system keeps 15 characters
  bool pin = false;             ///< binds each thread to one processor; it steals from near ones first
  unsigned priorities = 1;      ///< how many priorities there are, at most 8: see executor(priority)
  bool deadline_order = false;  ///< runs tasks with a deadline before those without, the earliest deadline first
  /// One of `threads` is not made: the thread that calls run() takes its place meanwhile. It is not pinned, and keeps its name.
  bool use_caller = false;

  // Functions that each thread calls with its number and `with`, and so does a caller of run() that works for the pool. They
  // must not throw, and on_stop must not post.
  void (*on_start)(unsigned worker, void* with) = nullptr;  ///< before the first job
  void (*on_stop)(unsigned worker, void* with) = nullptr;   ///< after the last one
  void (*on_idle)(unsigned worker, void* with) = nullptr;   ///< before each sleep
  void* with = nullptr;
};

/// What a worker, or a whole pool, has done so far. Each figure is read by itself, so they need not agree.
struct pool_stats {
  std::uint64_t jobs = 0;   ///< jobs that it has run; a job is a task's run from one wait to the next
  std::uint64_t begun = 0;  ///< tasks that have begun here, or have come from another executor
  std::uint64_t ended = 0;  ///< tasks that have ended here, in whatever way, or have gone to another executor
  /// Tasks that have begun and not ended: bodies and forks of scopes, fibers, and what start() or start_on() runs. Of the
  /// children of a when_all only those count that another worker took or that have waited: the others, and a fork that never
  /// waits, run like function calls. A task that waits for its first turn counts only in `waiting`. The figure of one worker is
  /// negative where tasks begin elsewhere and end here. That of the pool is exact while no task runs.
  std::int64_t live = 0;
  std::uint64_t from_outside = 0;   ///< how many of the jobs were posted by other threads, and not to worker(i)
  std::uint64_t steals = 0;         ///< jobs and forks that it has stolen
  std::uint64_t failed_steals = 0;  ///< attempts to steal in which another thread was faster
  std::uint64_t sleeps = 0;
  std::uint64_t wakes = 0;  ///< how many sleeps another thread has ended; the others ended by time
  std::size_t waiting = 0;  ///< jobs and forks in its own queues now; of the pool also those in the pool's queue
  std::chrono::nanoseconds asleep{};
  std::chrono::nanoseconds awake{};  ///< also while it looks for work
};

/// What a pool does with its jobs when it shuts down.
enum class pool_shutdown {
  drain,   ///< runs them, and what they post, until none is left
  cancel,  ///< the same, but tells each task to stop before it runs
};

/// How many threads can run at once: the processors in the affinity mask of the calling thread, but at most the quota of its
/// control group (cpu.max), rounded up. At least 1.
unsigned available_processors();

/// A work-stealing thread pool.
///
/// Threads   any thread may post to it and call executor(), run() and limit_awake(). The other members are for one thread at a
///           time.
/// Lifetime  outlives all work that was started on it: weft that is built without NDEBUG ends the program with a sentence where
///           a task still waits. The destructor shuts it down, by `drain`.
/// Fails     the constructor throws error where the system gives no thread, or does not pin one; and std::bad_alloc. A child of
///           fork() has none of the threads: using the pool there ends the program with a sentence, and its destructor does
///           nothing.
/// Cost      some 20 KiB for each worker, and the stack of its thread.
class pool {
 public:
  explicit pool(pool_options options = {});  ///< starts its threads
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;
  ~pool();

  /// Makes the pool usable wherever an executor is taken: `start_on(pool, …)`, `strand{pool}`, `{.executor = &pool}`. It stands
  /// for executor().
  operator weft::executor&() const noexcept { return executor(); }  // NOLINT: stands for it

  weft::executor& executor() const noexcept;

  /// An executor whose jobs run before less urgent ones: 0 is the most urgent priority. executor() has the middle one: of two
  /// priorities the less urgent, of three 1. A running job is not interrupted, and one job in some dozens is taken regardless
  /// of priority, so none waits for ever. Jobs of a priority are posted to a queue of the pool, in order. Children of a
  /// when_all may be taken by any worker, at any priority, in any order.
  weft::executor& executor(unsigned priority) const noexcept;

  /// Posts a list of jobs to executor(), linked by `next` and ended by null, in order. Each may have run before this returns.
  /// For an executor of a program's own on top of this one, which has many at a time.
  ///
  /// Threads   any. On a thread of the pool the jobs go behind those in its queue. Does not block.
  /// Fails     as a post: ends the program with a sentence after the pool's end, and in a child of fork().
  /// Cost      two passes over the list, and from outside one atomic exchange and one check for sleeping workers, which single
  ///           posts take for each job. With `deadline_order` as much as single posts.
  void post_all(job* first) const noexcept;

  /// How many threads it has, with spare ones and the caller's.
  unsigned size() const noexcept;

  /// Whether the calling thread is one of its own.
  bool is_inside() const noexcept;

  /// The number of the calling thread among its threads, from 0; size() for other threads.
  unsigned worker_id() const noexcept;

  /// An executor that runs its jobs on one thread of the pool, in order, after that thread's other jobs. No other thread steals
  /// them. Children of a when_all on it run one after the other.
  weft::executor& worker(unsigned which) const noexcept;

  /// Runs an awaitable on the pool from its beginning, and blocks the calling thread until it has ended. With `use_caller` that
  /// thread works for the pool meanwhile, as its last worker. Of several callers only one does so at a time; the others sleep.
  ///
  /// Cancel    when `stop` is stopped, so is the task.
  /// Fails     throws what the task threw, or `stopped` if it ended stopped. Called inside a task, or by a job on one of the
  ///           pool's own threads, it ends the program with a sentence: co_await start_on() there.
  template <detail::awaitable_argument Awaitable>
  await_result<Awaitable> run(Awaitable&& awaitable, stop_token stop = {}) const {
    detail::pool_call call{*core_, executor(), stop};
    if (!call.may_help()) return sync_wait(start_on(executor(), std::forward<Awaitable>(awaitable)), stop);
    using value_type = await_result<Awaitable>;
    detail::frame_guard<value_type> ended{
        detail::task_access::release(detail::as_task(std::forward<Awaitable>(awaitable)))};
    call.adopt(ended.frame, ended.frame.promise());
    if (!call.run()) {
      ended.frame = nullptr;  // unwound
      call.throw_stopped();
    }
    return ended.frame.promise().take();
  }
  template <int = 0>
  void run(detail::refused<>, stop_token = {}) const;
  template <int = 0>
  detail::void_is_no_awaitable run(...) const;

  /// Limits how many of its own threads may be awake at once, to leave processors to other programs for a while. 0, or size()
  /// and more, removes the limit: see pool_options::threads for how many are awake then.
  ///
  /// All posted jobs still run, also at the end of the pool. A thread that blocks in a job counts as awake: if all that may be
  /// awake block in wait for jobs that have not begun, the program hangs until the limit is raised. A post to worker(i) wakes
  /// that thread in spite of the limit. A thread in run(), with `use_caller`, is not counted.
  ///
  /// Threads   any, also those of the pool. Does not block: a thread beyond the limit ends its job, may run some 60 more,
  ///           leaves the rest of its queue to others, and sleeps.
  /// Cost      a lock, a fence on all processors, and a wake-up if jobs wait; nothing while the limit stays.
  void limit_awake(unsigned threads) noexcept;

  /// What one worker, or the pool, has done so far. Reads some dozen words for each worker, and does not delay them.
  pool_stats stats(unsigned worker) const noexcept;
  pool_stats stats() const noexcept;

  /// Ends the pool: runs the jobs that there are, and blocks until all of its threads have ended. A second call does nothing.
  ///
  /// Posts are accepted until the last thread ends, since a wake-up of a task can't be told from new work; a later one ends the
  /// program with a sentence. So other threads must stop posting before, or while a job still runs here. The pool does not end
  /// as long as jobs keep coming. Called on one of its own threads it does not block: that thread goes on, and the last thread
  /// to end frees the pool's memory. So the pool may also be destroyed there.
  void shutdown(pool_shutdown how = pool_shutdown::drain) noexcept;

 private:
  friend class runtime;
  explicit pool(detail::pool_core& core) noexcept : core_{&core} {}
  detail::pool_core* core_;
};

/// Threads that do not share work: a job runs on the thread that it is posted to, and is not stolen. Otherwise as a pool, whose
/// options it takes.
///
///     w::worker_group shards{4};
///     co_await w::start_on(shards.worker(key % 4), update(key));
class worker_group {
 public:
  /// `workers`: how many threads, numbered from 0.
  explicit worker_group(unsigned workers) : threads_{{.threads = workers}} {}
  explicit worker_group(pool_options options) : threads_{options} {}  ///< as of a pool

  /// Runs its jobs in order of posting, on just that thread.
  weft::executor& worker(unsigned which) const noexcept { return threads_.worker(which); }

  unsigned size() const noexcept { return threads_.size(); }
  /// The number of the calling thread among its threads, from 0; size() for other threads.
  unsigned worker_id() const noexcept { return threads_.worker_id(); }
  pool_stats stats(unsigned worker) const noexcept { return threads_.stats(worker); }
  pool_stats stats() const noexcept { return threads_.stats(); }
  void shutdown(pool_shutdown how = pool_shutdown::drain) noexcept { threads_.shutdown(how); }

 private:
  pool threads_;
};

/// An executor that runs its jobs one at a time, in the order in which they are posted, on another executor. Data that only its
/// tasks use needs no lock: each sees what those before it did. While one of its tasks waits, others run.
///
///     w::strand account{workers};
///     co_await w::start_on(account, transfer(from, to));
///
/// Threads   any. It runs some dozens of jobs in a row, then lets other jobs of the executor below run. Children of a when_all
///           on it run one after the other.
/// Cancel    where a pool below is shut down by `cancel`, its tasks are told to stop, too.
/// Lifetime  outlives all work that was started on it, and the executor below outlives it. It may be destroyed by its own last
///           job, or while that returns. Destroyed with jobs in its queue it ends the program with a sentence. So does the
///           wake-up of a task whose strand was destroyed meanwhile, unless that memory was reused.
/// Fails     the constructor throws std::bad_alloc.
/// Cost      a post is one atomic read-modify-write, and a post to the executor below if no job was running. One allocation.
class strand final : public weft::executor {
 public:
  explicit strand(weft::executor& below);  ///< `below` runs its jobs
  strand(const strand&) = delete;
  strand& operator=(const strand&) = delete;
  ~strand();

  void post(job& work) noexcept override;
  detail::io_service* io() const noexcept override;

  /// Gives the strand itself, as pool::executor() does for a pool. For a strand on another one, since `strand{other}` would
  /// copy.
  weft::executor& executor() noexcept { return *this; }

  /// Whether the calling thread runs one of its jobs.
  bool is_inside() const noexcept;

 private:
  detail::strand_core* core_;
};

}  // namespace weft
