// What a pool is: its workers, the set of those that have nothing to do, the jobs from outside, and its end.
//
// How its workers sleep, and when it ends, is in parking.hpp; how its destruction waits for threads that post, in
// post_hazard.hpp.
//
// The pool and its threads share the core, and the last of them deletes it: a job of the pool may destroy the pool.
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>
#include <weft/pool.hpp>

#include "base/post_hazard.hpp"
#include "base/ref_count.hpp"
#include "base/starting_gate.hpp"
#include "core/worker.hpp"
#include "pool/look_pace.hpp"
#include "pool/pool_list.hpp"
#include "pool/pool_size.hpp"
#include "pool/process_forks.hpp"
#include "pool/processor_set.hpp"
#include "pool/processors.hpp"
#include "pool/spin_budget.hpp"
#include "pool/steal_pace.hpp"
#include "pool/yield_before_park.hpp"
#include "sched/idle_set.hpp"
#include "sched/injection.hpp"
#include "sched/parker.hpp"
#include "sched/parking.hpp"
#include "sched/pool_worker.hpp"
#include "sched/ranked_jobs.hpp"
#include "sched/worker_watch.hpp"

namespace weft::detail {

inline std::uint64_t nanoseconds_now() noexcept {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds{1});
}

/// Gives each worker the parker that it sleeps in, which outlives the pool's threads. Null: a futex of its own.
struct parkers {
  parker& (*of)(unsigned worker, void* with) = nullptr;
  void* with = nullptr;
  io_service* io = nullptr;  ///< what tasks on the pool have their descriptors watched by; null: that of the process
};

class pool_core final : public executor, private parking<pool_core> {
 public:
  /// Throws error, or std::bad_alloc.
  static pool_core* make(const pool_options& options, parkers beds = {});

  ~pool_core() = default;  // by drop()

  void post(job& work) noexcept override;
  void post_behind(job& work) noexcept override;
  bool runs_in_parallel() const noexcept override { return true; }
  io_service* io() const noexcept override { return io_; }
  /// Posts linked jobs, the first one first.
  void post_all(job* first) noexcept;

  unsigned size() const noexcept { return static_cast<unsigned>(seats_.size()); }
  bool is_inside() const noexcept;
  /// The executor that runs jobs on this worker alone.
  executor& executor_of(unsigned which) noexcept { return seats_[which]->own; }
  unsigned priorities() const noexcept { return options_.priorities; }
  /// The executor that runs jobs at this priority.
  executor& executor_at(unsigned priority) noexcept;
  /// The number of the worker that the calling thread is; size() if it is none of this pool.
  unsigned worker_id() const noexcept;
  pool_stats stats(unsigned which) const noexcept;
  /// Jobs that no worker has taken yet.
  std::size_t waiting_for_any() const noexcept;
  /// Called before a job of a strand that runs on `below`. If this thread is a worker of the pool that `below` is, or
  /// stands on, it counts the job's task in, and tells the task to stop if the pool is being cancelled. Whether this thread
  /// is one.
  static bool look_at_job_above(worker& here, const executor& below, job& work) noexcept;
  void limit_awake(unsigned threads) noexcept;
  /// Whether all its workers sleep, or are about to. A hint.
  bool is_asleep() const noexcept { return idle_.all_inside(); }
  /// Wakes one that sleeps, if any does, to look for work. Any thread, before the pool goes.
  void call_one() noexcept {
    if (idler* one = idle_.pick_any(); one != nullptr) wake(*one);
  }
  void shut_down(pool_shutdown how) noexcept;

  /// Whether that worker is the callers' place: that of a thread that calls run(), while it does.
  bool is_for_callers(unsigned which) const noexcept { return options_.use_caller && which + 1 == options_.threads; }
  bool has_callers_place() const noexcept { return options_.use_caller; }
  /// Takes the callers' place for the calling thread and sets `inside`, unless another thread has it.
  void enter_as_caller(bool& inside) noexcept;
  /// The same as soon as the place is free. False: the caller's task ended before that, which sets `over`.
  bool wait_as_caller(bool& inside, const bool& over) noexcept;
  /// By the thread in that place: works until a job that was posted for it alone has set `over`.
  void help_until(const bool& over) noexcept;
  /// By the thread in that place: leaves it. The core may be gone after this call.
  void leave_as_caller() noexcept;
  /// A caller's task has ended: posts `end` to the caller alone if it is `inside`; else sets `over`. The caller may be gone.
  void tell_caller(const bool& inside, bool& over, job& end) noexcept;

  /// Called by the destructor of the pool.
  void release() noexcept;

  /// Of its threads, as far as they show it: up to 15 characters.
  const char* name() const noexcept { return name_; }

 private:
  friend parking<pool_core>;
  friend struct debug_pool;
  struct seat;

  // A worker looks outside once in so many jobs; at sockets alone perhaps more often.
  static constexpr std::uint32_t look_outside_every = look_pace::most_jobs;
  // And in one of so many of those looks, at another worker, which may be at one job for long.
  static constexpr std::uint32_t look_at_others_every = 8;
  // How long the worker that watches sleeps.
  static constexpr std::chrono::milliseconds watch_every{5};

  static constexpr const char* posted_too_late =
      "a job was posted to a pool that has shut down: its task would wait for ever";

  // The executor that runs jobs on one worker alone.
  struct own_executor final : executor {
    explicit own_executor(seat& one) noexcept : of{&one} {}
    void post(job& work) noexcept override;
    io_service* io() const noexcept override;
    seat* of;
  };

  // The executor of one priority, but for the middle one, whose executor is the core itself.
  struct level_executor final : executor {
    level_executor(pool_core& core, unsigned at) noexcept : of{&core}, priority{at} {}
    void post(job& work) noexcept override { of->post_ranked(work, priority); }
    bool runs_in_parallel() const noexcept override { return true; }
    io_service* io() const noexcept override { return of->io_; }
    pool_core* of;
    unsigned priority;
  };

  // The jobs for one worker alone that it has taken over. Its thread's, but for the number, which any thread reads.
  class kept_jobs {
   public:
    void push(job& work) noexcept {
      jobs_.push(work);
      count_.add();
    }
    job* pop() noexcept {
      job* const work = jobs_.pop();
      if (work != nullptr) count_.subtract_one();
      return work;
    }
    bool empty() const noexcept { return jobs_.first == nullptr; }
    std::size_t size() const noexcept { return count_.get(); }

   private:
    friend struct debug_pool;

    job_queue jobs_;
    count count_;
  };

  // A worker, and what the core knows of it besides.
  struct alignas(64) seat : pool_worker, idler {
    seat(pool_core& core, unsigned which, parkers beds) noexcept
        : pool_worker{core,
                      core.watched_state(),
                      core.options_.deadline_order ? core.always_ : core.waiting_,
                      {&core.idle_, pool_core::wake},
                      {pool_core::make_room, pool_core::post_behind_all, pool_core::shares, pool_core::runs},
                      core.options_.threads > 1,
                      core.options_.deadline_order,
                      core.is_ranked_},
          own{*this},
          of{&core},
          index{which},
          sleeps{beds.of != nullptr ? beds.of(which, beds.with) : bed} {}
    ~seat();

    std::uint32_t number_of_thread() const noexcept {
      return static_cast<std::uint32_t>(thread_number.load(std::memory_order_relaxed));  // as declared
    }

    own_executor own;
    kept_jobs kept;     // its thread's: jobs for it alone, posted by itself or taken out of `posted`
    inbox<job> posted;  // jobs for it alone that others have posted. Its edge: what the poster wrote  ->  the job
    std::atomic<std::uint64_t> handed_in{0};  // how many were put into `posted` so far. A figure, no edge
    count taken_up;                           // how many were taken out of it
    // Of the only worker of a pool: the jobs that it has taken from the injection queue, the oldest first, its thread's;
    // how many these were, and are. Figures, no edge.
    job* brought = nullptr;
    std::atomic<std::size_t> were_brought{0}, are_brought{0};
    pool_core* of;
    unsigned index;
    std::vector<seat*> others;        // those that it steals from, in groups, the nearest first
    std::vector<std::size_t> nearer;  // for each group, the index of its end in `others`
    time_asleep asleep;
    std::uint32_t random = index * 2654435761u + 1;
    std::uint32_t looks = 0;
    std::uint64_t jobs_of_other = 0;  // the count of the other worker at take_from_stuck()'s first look
    futex_parker bed;
    parker& sleeps;          // `bed`, unless the pool was given parkers
    bool had_event = false;  // its thread's: an event of its parker's, as of a socket, has ended its last sleep
    yield_before_park yields;
    steal_pace pace;
    detail::look_pace look_pace{nanoseconds_now()};
    // Counts of jobs: at its last look at sockets, and where it looks at the queues of others, too.
    std::uint64_t looked_at_sockets_at = 0, looks_at_jobs_at = look_outside_every - 1;
    bool own_had_turn = false;  // at the last look at sockets alone
    spin_budget budget;
    std::atomic<std::uint64_t> jobs_when_watched{0};  // written by the worker that watches. A hint, no edge
    pthread_t thread{};
    std::atomic<int> thread_number{0};  // the kernel's number of the thread; 0: it has not begun. A figure, no edge
    // Used by the worker that watches. At its last look: how long this thread had run, and had waited for a processor (from
    // the kernel's file); how many jobs it had begun, and since when it has begun none.
    std::uint64_t processor_time = 0, waiting_time = 0;
    int schedule_file = -1;
    std::uint64_t looked_at = 0, had_slept = 0, got_to = 0, stands_since = 0;
  };

  pool_core(const pool_options& options, unsigned processors, parkers beds);

  void know_each_other(const std::vector<processor>& places);
  int start_threads(const char* name, const std::vector<processor>& places) noexcept;
  void join_threads() noexcept;
  void call_hook(void (*hook)(unsigned worker, void* with), const seat& mine) const noexcept;
  unsigned own_threads() const noexcept { return options_.threads - (options_.use_caller ? 1 : 0); }
  void work_as_caller() noexcept;
  static std::size_t ready_jobs(const pool_worker& one) noexcept;  // what waits in its queues; any thread
  void run_the_rest() noexcept;
  void run_the_rest_as_caller() noexcept;
  void drop() noexcept;
  void expect_no_task() const noexcept;
  void ends() noexcept;
  // Whether this process is a child of the one in which the pool was made.
  bool is_forked() const noexcept {
    return forks_of_process.load(std::memory_order_relaxed) != forks_before_;  // as declared
  }
  void expect_not_forked() const noexcept {
    WEFT_EXPECTS(!is_forked(),
                 "a pool was used in a process that was forked after the pool was made, and has none of its "
                 "threads: make a pool there");
  }

  void run(seat& mine) noexcept;
  // Each job passes these two, so they are inlined into the loops.
  [[gnu::always_inline]] inline void run_one(worker& here, seat& mine, job& work) noexcept;
  [[gnu::always_inline]] inline job* next(seat& mine) noexcept;
  job* look_outside(seat& mine) noexcept;
  job* look_elsewhere(seat& mine) noexcept;
  job* search(seat& mine, bool desperate) noexcept;
  job* look_on(seat& mine) noexcept;
  job* poll(seat& mine) noexcept;
  job* look_round(seat& mine, bool desperate) noexcept;
  job* rob_others(seat& mine, bool desperate) noexcept;
  job* step_back(seat& mine) noexcept;
  bool sleep(seat& mine, bool searched, bool& desperate) noexcept;
  bool doze(seat& mine, parker::time_point until, bool& is_late) noexcept;

  // How many workers may be awake at once: limited where there are more threads than processors, or by limit_awake().
  static unsigned first_awake(const pool_options& options, unsigned processors) noexcept;
  // Whether each worker that may be awake has a processor.
  bool has_processors() const noexcept { return idle_.may_be_awake() <= processors_; }
  bool chooses_awake() const noexcept { return size() > processors_; }
  pool_load look(const seat& looks) noexcept;
  std::chrono::microseconds begin_to_watch(seat& mine, bool again) noexcept;
  void choose_awake(seat& mine) noexcept;

  job* take_own(seat& mine) noexcept;
  // Moves what others have posted for this worker alone to what it keeps.
  static void take_posted(seat& mine) noexcept {
    if (mine.posted.empty()) return;
    mine.next_turn = 0;
    for (job* one = mine.posted.take(); one != nullptr;) {
      job* const later = one->next;
      mine.kept.push(*one);
      mine.taken_up.add();
      one = later;
    }
  }
  job* take_injected(seat& mine) noexcept;
  std::size_t take_injected(seat& mine, job** into, std::size_t most, unsigned workers) noexcept;
  job* take_brought(seat& mine) noexcept;
  bool line_up_injected(seat& mine) noexcept;
  job* take_from_stuck(seat& mine) noexcept;
  job* rob_watched(seat& mine, seat& victim, bool desperate) noexcept;
  job* rob(seat& mine, seat& victim, bool stuck) noexcept;
  job* take_fork(seat& mine, seat& victim) noexcept;
  job* keep_rest(seat& mine, job** jobs, std::size_t count) noexcept;
  bool any_job() const noexcept;
  bool any_next() const noexcept;
  bool any_own_job() const noexcept;
  static bool has_own_job(const seat& mine) noexcept { return !mine.posted.empty(); }

  void inject(job& work) noexcept { inject(work, work, 1); }
  void inject(job& newest, job& oldest, std::size_t how_many) noexcept;
  void post_from_outside(job& newest, job& oldest, std::size_t how_many) noexcept;
  bool post_by_deadline(job& work) noexcept;
  void post_ranked(job& work, unsigned priority) noexcept;
  void put_ranked(job& work, unsigned priority, std::int64_t deadline) noexcept;
  unsigned middle() const noexcept { return options_.priorities / 2; }
  void post_to(seat& one, job& work) noexcept;
  void hand_in(seat& one, job& work) noexcept;
  static void wake(idler& one) noexcept;
  static void make_room(pool_worker& of, job& work) noexcept;
  void spill(seat& mine) noexcept;
  static void post_behind_all(pool_worker& of, job& work) noexcept;
  bool has_level(const executor* one) const noexcept;
  static bool shares(const executor& home, const executor* one) noexcept;
  static bool runs(const pool_worker& by, const executor& one) noexcept;

  std::vector<std::unique_ptr<seat>> seats_;
  alignas(64) injection<job> injected_;
  // How many jobs are in the injection queue, or are about to be, or were taken out by the only worker and have not begun.
  // No edge: a thread that knows of a post sees it counted.
  std::atomic<std::size_t> waiting_{0};
  const std::atomic<std::size_t> always_{1};
  ranked_jobs<job> before_, after_;  // jobs that run before those in the workers' queues, and jobs that run after them
  std::vector<std::unique_ptr<level_executor>> levels_;
  const bool
      is_alone_;  // there is one worker, and it has a thread of its own: what it takes need not be left to others
  const bool is_ranked_;  // some jobs are ranked
  const unsigned processors_;
  const pool_options options_;
  const processor_set of_maker_;  // of the thread that made the pool
  io_service* const io_;
  crowd crowd_;
  std::chrono::steady_clock::time_point watched_{};  // when choose_awake() looked last
  tiny_lock watching_;                               // guards `crowd_` and `watched_`
  std::atomic<bool> is_limited_{false};              // set by limit_awake(). A hint, no edge
  const std::uint64_t began_;
  const std::uint32_t forks_before_;  // the value of forks_of_process when the pool was made
  pool_place place_;
  char name_[16]{};
  bool joined_ = false;
  bool goes_with_caller_ = false;  // a caller's job destroyed the pool, which has no thread of its own
  std::optional<watched_worker> watched_as_caller_;  // by the thread in the callers' place
  pool_worker* callers_before_ = nullptr;            // the worker that the thread in the callers' place was before
  std::mutex callers_lock_;                          // guards the next one, and `inside` and `over` of each call
  bool callers_place_taken_ = false;
  std::condition_variable callers_turn_;  // for callers that wait for the place, or for the end of their task

  starting_gate gate_;
  ref_count holders_{1};  // the pool, its threads, and a caller; the last one deletes the core
};

}  // namespace weft::detail
