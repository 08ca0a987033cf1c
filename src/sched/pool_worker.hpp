// One of a pool's workers: its jobs and its counts. The thread that runs it is another object (core/worker.hpp), and
// finds this one by `worker::of_pool`.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/base/config.hpp>
#include <weft/executor.hpp>

#include "base/count.hpp"
#include "sched/deque.hpp"
#include "sched/idle_set.hpp"
#include "sched/parking.hpp"
#include "sched/run_queue.hpp"

namespace weft::detail {

class root;
struct frame;

struct pool_worker : notifier {
  /// Functions of the pool that a worker calls, besides the notifier.
  struct calls {
    /// Posts a job that the worker's line has no room for. By its thread.
    void (*make_room)(pool_worker&, job&) noexcept;
    /// Posts a job behind all that wait, where some of those are not in the line. By its thread.
    void (*post_behind)(pool_worker&, job&) noexcept;
    /// Whether all workers of the pool run jobs that are posted to `one`.
    bool (*shares)(const executor& home, const executor* one) noexcept;
    /// Whether this worker runs jobs that are posted to `one`.
    bool (*runs)(const pool_worker&, const executor& one) noexcept;
  };

  pool_worker(executor& of, const atomic<pool_state>& state, const std::atomic<std::size_t>& beside_lines,
              const notifier& others_by, const calls& how, bool others, bool ordered, bool ranked) noexcept
      : notifier{others_by},
        home{&of},
        state_of_pool{&state},
        beside{&beside_lines},
        call_pool{how},
        has_others{others},
        orders{ordered},
        is_ranked{ranked} {}

  executor* const home;
  const atomic<pool_state>* const state_of_pool;  // read relaxed, as in parking.hpp: it carries nothing
  // Not 0: a job that goes behind all others is posted by call_pool.post_behind. See pool_core::waiting_.
  const std::atomic<std::size_t>* const beside;  // read relaxed: a hint, as pool_core::waiting_
  const calls call_pool;
  const bool has_others;  // other workers could take what this one offers
  const bool orders;      // some jobs that its thread posts to the pool do not go into its line
  const bool is_ranked;   // some jobs come before those of its line

  /// Whether a task with the executor `its` may go on in any of the pool's workers.
  bool shares(const executor* its) const noexcept { return its == home || call_pool.shares(*home, its); }

  /// Whether a task with the executor `its`, which may be null, is one of the pool's.
  bool runs(const executor* its) const noexcept {
    return its == home || (its != nullptr && call_pool.runs(*this, *its));
  }

  deque<job, 1024> forks;            // forks, which other workers may take
  run_queue<job, 256, 65'536> line;  // jobs that this worker has posted

  // Tasks that have begun on this worker, and tasks that have ended on it, or left it for another executor.
  count begun, ended;
  count jobs;
  // Its thread's: which job would follow directly upon the last turn of a traced root; 0: none, as jobs have come from elsewhere
  // than from the job that ran last. See core/turns.hpp.
  std::uint64_t next_turn = 0;
  std::uint64_t looks_outside_at = 60;  // when `jobs` has this value, the worker looks at queues besides its own
  count steals, failed_steals, parks, wakes, injected;

  /// By its thread: posts a job to run next.
  void post(job& work) noexcept {
    bool first;
    if (job* const before = line.push_next(work, first); before != nullptr) [[unlikely]]
      return spill(*before);
    call(first);
  }

  /// By its thread: posts a job behind all that wait, in its line and for all workers.
  [[gnu::always_inline]] void post_behind(job& work) noexcept {
    if (static_cast<bool>(static_cast<int>(line.has_next()) | static_cast<int>(others_wait()))) [[unlikely]]
      return call_pool.post_behind(*this, work);
    if (!line.push(work)) [[unlikely]]
      return spill(work);
    call();
  }

  /// Whether post_behind() has to look at more than the line.
  bool others_wait() const noexcept { return beside->load(std::memory_order_relaxed) != 0; }  // as declared

  /// By its thread: offers a fork to other workers. False: there is no memory, so the caller runs it.
  bool offer(job& fork) noexcept {
    if (!forks.push(fork)) [[unlikely]]
      return offer_beyond(fork);
    call();
    return true;
  }
  /// The same where all slots of the deque are taken.
  [[gnu::noinline]] bool offer_beyond(job& fork) noexcept {
    if (!forks.push_beyond(fork)) return false;
    call();
    return true;
  }

 private:
  WEFT_SELDOM void spill(job& work) noexcept { call_pool.make_room(*this, work); }
};

}  // namespace weft::detail
