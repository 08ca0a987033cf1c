// The pool: threads that share their work. It is what to run tasks on that compute, and what a runtime is built on. And
// the strand, which has its jobs run one at a time, and the worker_group, whose threads have each their own.
//
//     w::pool workers{{.threads = 4}};
//     auto answer = w::sync_wait(w::start_on(workers, think()));
//
// Each worker has its own jobs and takes those of others when it has none. What a job posts goes to its own worker, what
// comes from outside to a queue of all. A worker that finds nothing sleeps: an idle pool costs no processor time.
//
// Order. A task that was woken is what its waker's worker does next, but no more than some 16 times in a row; one that
// yields goes behind all that waits there, and behind what came from outside (see yield()). Nothing waits for ever: jobs
// from outside are looked at every few dozen jobs, and what waits on a worker that is at one job for long is taken over by
// another one within some milliseconds, or some thousand jobs.
//
// Rejected: one queue for all (each switch meets all others there: 1000 ns at 16 threads); a worker's queue that others
// can't take from (what its worker does for long holds up the rest).
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

/// What a pool is given: `pool p{{.threads = 4, .name = "crunch"}};`.
struct pool_options {
  /// How many; 0: available_processors(). Of more than there are processors, as many work at once as there are processors,
  /// and the others once some of those block, or are at one job for long.
  unsigned threads = 0;
  /// So many threads besides, which sleep: as long as a worker blocks, or is at one job for more than some 20 ms, one of them
  /// takes over what waits behind it, as Go's sysmon has it. They count in size() and stats().
  unsigned spare_workers = 0;
  const char* name = "weft";    ///< of its threads, which are "weft-0" and so on; 15 characters are kept
  bool pin = false;             ///< each stays on one processor, and takes work from those near it first
  unsigned priorities = 1;      ///< how many there are, see executor(priority); 8 at most
  bool deadline_order = false;  ///< tasks with a deadline come before those without, the earliest first
  /// One of `threads` is none of its own: a thread that calls run() works for it meanwhile. That is not pinned, and keeps its
  /// name.
  bool use_caller = false;

  // What its threads call, each with its number and `with`, and so does a caller in each run() in which it works; none may
  // throw, and on_stop must not post.
  void (*on_start)(unsigned worker, void* with) = nullptr;  ///< before the first job
  void (*on_stop)(unsigned worker, void* with) = nullptr;   ///< after the last one
  void (*on_idle)(unsigned worker, void* with) = nullptr;   ///< before each sleep
  void* with = nullptr;
};

/// What a worker has done so far, or all of a pool. Counts of one moment each: they need not agree with each other.
struct pool_stats {
  std::uint64_t jobs = 0;   ///< that it ran: each a task's way from one wait to the next, so each is a switch
  std::uint64_t begun = 0;  ///< tasks that began to run here, or came here: see live
  std::uint64_t ended = 0;  ///< tasks that ended here, however, or went on to another executor
  /// Tasks that are between: they run, or wait. A scope's body and forks, fibers, what was started or runs by start_on; of a
  /// when_all's children those that another worker took or that have waited, since the others are run as if they were
  /// called, and so is a fork that runs through within fork(). What is still in line for its first turn is only in
  /// `waiting`. Of one worker it is below 0 where tasks begin elsewhere and end here; where none run, that of all is exact.
  std::int64_t live = 0;
  std::uint64_t from_outside = 0;   ///< of these, that came from no thread of the pool, and for no worker by name
  std::uint64_t steals = 0;         ///< jobs and forks that it took from others
  std::uint64_t failed_steals = 0;  ///< that it tried to take, and somebody else was faster
  std::uint64_t sleeps = 0;
  std::uint64_t wakes = 0;  ///< of these, that somebody ended; the others by time
  std::size_t waiting = 0;  ///< jobs and forks in its own queues now; of all: and those that no worker has taken yet
  std::chrono::nanoseconds asleep{};
  std::chrono::nanoseconds awake{};  ///< also while it looks for work
};

/// What becomes of the jobs of a pool that shuts down.
enum class pool_shutdown : unsigned char {
  drain,   ///< they run, and what they post, until there are none
  cancel,  ///< the same, but each task is told to stop before its turn
};

/// How many threads can run at once: the processors that the affinity mask of the calling thread allows, but no more than
/// the quota of its control group (cpu.max), rounded up. At least 1.
unsigned available_processors();

/// Threads that run jobs and take them from each other.
///
/// Threads   the pool as an executor, executor(), run() and limit_awake() are used from any; the pool itself by one at a
///           time.
/// Lifetime  outlives all work that was started on it: built without NDEBUG, weft ends the program with a sentence where a task
///           still waits. Its destructor shuts it down, by `drain`.
/// Fails     the constructor throws a weft::error where the system gives no thread, or lets one not stay where it is to,
///           and std::bad_alloc. A process that was
///           forked has none of the threads: there, using the pool ends the program with a sentence, and its destructor
///           does nothing.
/// Cost      each worker has some 20 KiB, and its thread's stack.
class pool {
 public:
  explicit pool(pool_options options = {});  ///< starts its threads
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;
  ~pool();

  /// The pool is an executor wherever one is taken: `start_on(pool, …)`, `strand{pool}`, `{.executor = &pool}`. That is
  /// executor(), so a task on either is on both.
  operator weft::executor&() const noexcept { return executor(); }  // NOLINT: stands for it

  weft::executor& executor() const noexcept;

  /// Runs what is posted to it before what is less urgent: 0 comes first, and executor() is the one in the middle, so of
  /// two priorities the less urgent, of three 1. A job that runs is not interrupted, and one in some dozens is taken from
  /// elsewhere, so nothing waits for ever. Each post goes through a queue of all workers, in order. Children of a when_all
  /// are for all workers to take, at every priority, without an order among them.
  weft::executor& executor(unsigned priority) const noexcept;

  /// Posts jobs to executor() that are linked by `next`, up to null, the first one first in line; each may have run before
  /// this returns. For who has many at a time, such as an executor of one's own above this one.
  ///
  /// Threads   any. On one of the pool's own, each goes behind what waits there. Does not wait.
  /// Fails     as a post does: after the end, and in a process that was forked, it ends the program with a sentence.
  /// Cost      from outside one exchange and one look at who sleeps for all of them, where each post takes both; and two
  ///           passes over the list. With `deadline_order` that of a post each.
  void post_all(job* first) const noexcept;

  /// How many threads it has.
  unsigned size() const noexcept;

  /// Whether the calling thread is one of its own.
  bool is_inside() const noexcept;

  /// Which of its threads the calling one is, from 0; size(): none.
  unsigned worker_id() const noexcept;

  /// Runs what is posted to it on just that thread, in order, behind what this has to do otherwise, and nobody else takes
  /// it: for what belongs to one thread. Children of a when_all on it run one after the other.
  weft::executor& worker(unsigned which) const noexcept;

  /// Runs an awaitable on it from its beginning, and blocks the calling thread until that has ended. With `use_caller`
  /// that thread works for the pool meanwhile, as its last worker, as soon as no other one does; until then it sleeps.
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

  /// Sets how many of its own threads may be awake at once from now on. 0, or as many as it has or more, takes the limit
  /// away: then as many are awake as are of use, see pool_options::threads. For a program that leaves processors to others
  /// for a while.
  ///
  /// All that was posted runs, also at the end of the pool. A thread that blocks in a job counts as awake: where so many
  /// wait for jobs that have not begun, these begin when the limit is raised. What is posted to worker(i) wakes that thread
  /// in spite of the limit. A thread that is in run(), with `use_caller`, may come on top.
  ///
  /// Threads   any, also the pool's own. Does not wait: a thread that is too many ends the job that it is at, may run some
  ///           60 more, leaves what it has besides to those that stay awake, and sleeps.
  /// Cost      a lock, a fence on all processors, and a wake-up if jobs wait; nothing while it stands.
  void limit_awake(unsigned threads) noexcept;

  /// What has been done so far, by one or by all. Stops nobody: reads some dozen words a worker.
  pool_stats stats(unsigned worker) const noexcept;
  pool_stats stats() const noexcept;

  /// Ends it: runs what there is, and waits until all threads have left; a second call does nothing. Since a wake-up can't
  /// be told from new work, posts are taken until the last thread leaves; one that comes later ends the program with a
  /// sentence. So whoever starts work from other threads stops before, or while something still runs here; as long as that
  /// goes on, a drain does. On one of its own threads it does not wait: that thread goes on, and the last one to leave tidies up; so
  /// a pool may also be destroyed there.
  void shutdown(pool_shutdown how = pool_shutdown::drain) noexcept;

 private:
  friend class runtime;
  explicit pool(detail::pool_core& core) noexcept : core_{&core} {}
  detail::pool_core* core_;
};

/// Threads of which each has its own work: what is posted to one runs there, and nobody takes it. As a pool otherwise, whose
/// options it takes, and which ends it.
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
  /// Which of its threads the calling one is, from 0; size(): none.
  unsigned worker_id() const noexcept { return threads_.worker_id(); }
  pool_stats stats(unsigned worker) const noexcept { return threads_.stats(worker); }
  pool_stats stats() const noexcept { return threads_.stats(); }
  void shutdown(pool_shutdown how = pool_shutdown::drain) noexcept { threads_.shutdown(how); }

 private:
  pool threads_;
};

/// An executor over another one that runs one job at a time, in the order of posting, and has no thread of its own: what
/// its tasks share needs no lock, and each sees what those before it did. A task that waits lets others run meanwhile.
///
///     w::strand account{workers};
///     co_await w::start_on(account, transfer(from, to));
///
/// Threads   any. Its jobs run where the executor below runs them, some dozens in a row, then others there have their turn.
///           Children of a when_all on it run one after the other.
/// Cancel    a pool below that is shut down by `cancel` tells its tasks to stop, too.
/// Lifetime  outlives all work that was started on it, as the executor below does. It may be destroyed by a job of its
///           own, or while its last one returns; with jobs inside it ends the program with a sentence. So does the wake-up
///           of a task that waited as its strand went, if that one's memory has not been used again.
/// Fails     the constructor throws std::bad_alloc.
/// Cost      a post is one atomic read-modify-write, and a post below where nothing ran. One allocation for its life.
class strand final : public weft::executor {
 public:
  explicit strand(weft::executor& below);  ///< where its jobs run
  strand(const strand&) = delete;
  strand& operator=(const strand&) = delete;
  ~strand();

  void post(job& work) noexcept override;
  detail::io_service* io() const noexcept override;

  /// Itself: as a pool has one, and for a strand over a strand, which `strand{other}` would copy.
  weft::executor& executor() noexcept { return *this; }

  /// Whether the calling thread is at one of its jobs.
  bool is_inside() const noexcept;

 private:
  detail::strand_core* core_;
};

}  // namespace weft
