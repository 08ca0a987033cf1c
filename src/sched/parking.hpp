// How a pool's workers park, how a post wakes them, and how the pool ends. It is ordered by the pairs of fences that
// idle_set.hpp describes, and all of these fences are here, so that the pool and the models of it run the same code.
//
// The end. A closed pool goes on until no job is left. That is when all workers are in the idle set, and the last one that
// entered it has seen all queues empty: only a worker that is awake, or a post from outside, could add a job. The last
// worker marks the pool as ended and wakes all, and each returns.
//
// The only worker of a pool asks the kernel for no fence when it sleeps, also where it is a thread that calls. It need not see
// its own posts, since it posts while it is awake. All other posts come from other threads, whose put costs more than an
// ordinary fence does. So both sides make one of those. While nobody is in a caller's place there is nobody to wake: who comes
// there searches behind a heavy fence.
//
//   open -> closing   by close(), which wakes a worker to look whether there are jobs
//   closing -> ended  by the last worker in the idle set, with all queues empty
#pragma once

#include <atomic>
#include <cstdint>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/base/config.hpp>

#include "base/fence.hpp"
#include "sched/idle_set.hpp"

namespace weft::detail {

/// Wakes an idle worker after a push.
struct notifier {
  idle_set* const idle;
  void (*const wake)(idler&) noexcept;

  /// After a push: wakes a worker if one is idle and none searches. `hot`: this worker takes what it pushed next.
  void call(bool hot = false) noexcept {
    if (calls_for_one(hot)) [[unlikely]]
      call_one(hot);
  }
  /// Whether call() would wake a worker, by one look at the packed word.
  bool calls_for_one(bool hot = false) const noexcept {
    light_fence();
    return idle->calls_for_one(hot);
  }
  /// The rest of call(). Apart, so that a push that wakes nobody saves no registers.
  WEFT_SELDOM void call_one(bool hot = false) noexcept {
    if (idler* one = idle->pick(hot); one != nullptr) wake(*one);
  }
};

enum class pool_state : std::uint8_t { open, draining, cancelling, ended };

/// What fall_asleep() has found.
enum class nap : std::uint8_t { ended, has_job, sleeps, watches };

/// The base of a Pool. That has wake(idler&), any_job(), any_next() for jobs that some worker is to do next, any_own_job() for
/// those of some worker alone, and has_own_job(worker). Asked behind a heavy_fence(), these see all that was put before a
/// light_fence(); behind a full_fence(), all that was put before one of those.
template <class Pool>
class parking {
  // Its transitions stand above. Relaxed: it carries nothing. A worker that acts on `ended` was woken for it, or has seen
  // it behind the lock of the idle set; closing is seen by all at some time.
  atomic<pool_state> state_{pool_state::open};

 protected:
  /// `has_one`: there is never more than one worker, its own thread or one that calls.
  parking(std::uint32_t workers, std::uint32_t most_awake, bool has_one) noexcept
      : idle_{workers, most_awake}, has_one_{has_one} {}

  pool_state state() const noexcept { return state_.load(std::memory_order_relaxed); }  // as declared
  const atomic<pool_state>& watched_state() const noexcept { return state_; }           // read before each job
  bool has_ended() const noexcept { return state() == pool_state::ended; }

  /// After a push, before notifier::call(), by a thread that is no worker of the pool, or need not be: the only worker of one
  /// could do without.
  void fence_from_outside() noexcept {
    if (!has_one_) return;  // call() has the fence
    full_fence();
  }

  /// Wakes that worker, if it is parked. Called after a push of a job for it alone.
  void call(idler& one) noexcept {
    fence_from_outside();
    light_fence();
    if (idle_.pick(one)) Pool::wake(one);
  }

  /// By a worker that has found a job, before it runs it. If it was the last one to search, it wakes another one if there
  /// is more, or if some worker has a job to do next and nobody watches: it was perhaps posted while this one did.
  void found(notifier& mine, bool searched, bool has_others) noexcept {
    if (!searched || !idle_.stop_search() || !has_others) return;
    heavy_fence();
    if (const bool more = pool().any_job(); more || pool().any_next()) mine.call(!more);
  }

  /// By a worker that has found no job: enters the idle set. Where the result says so, it sleeps in `mine.sleeps`, and
  /// calls woke() then.
  template <class Seat>
  nap fall_asleep(Seat& mine, bool searched) noexcept {
    mine.sleeps.prepare();
    const auto [last, watches, enough] = idle_.enter(mine, searched);
    fence_of_sleeper();
    const pool_state now = state();
    if (now == pool_state::ended) return nap::ended;
    if ((!enough && pool().any_job()) || pool().has_own_job(mine)) {
      idle_.leave(mine);
      return nap::has_job;
    }
    // Where any_own_job(), that job is for another worker alone, which its poster is about to wake.
    if (now != pool_state::open && last && !pool().any_own_job() && idle_.close_since(mine)) {
      end();
      return nap::ended;
    }
    return watches ? nap::watches : nap::sleeps;
  }
  /// By a worker that has slept: it searches from here on, if the pool has not ended. True: no other thread had woken it.
  bool woke(idler& mine) noexcept { return idle_.leave(mine); }

  /// Registers the calling thread as a worker, in a place that is free; the caller must then search.
  void come() noexcept {
    idle_.come();
    heavy_fence();  // (no model: the set's lock orders what there is to see, too)
  }
  /// Takes the calling thread out again. It must have left no job where other workers do not look.
  void go() noexcept {
    idle_.go();
    heavy_fence();  // (no model: as above)
    wake_for_what_is_left();
  }

  /// By any thread, one at a time: how many workers may be awake from now on. Where more may than before, one is woken if
  /// there is a job, and wakes others; where fewer may, those awake find out by too_many().
  void let_wake(std::uint32_t most) noexcept {
    idle_.let_wake(most);
    heavy_fence();
    wake_for_what_is_left();
  }

  /// By any thread: has the pool end when no job is left. A pool that drains may be cancelled later.
  void close(pool_state wanted) noexcept {
    if (transition(pool_state::open, wanted) == pool_state::draining && wanted == pool_state::cancelling)
      transition(pool_state::draining, wanted);
    heavy_fence();  // the last worker to enter the idle set sees it, or is in there already (no model: the set's lock says so, too)
    if (idler* one = idle_.pick_any(); one != nullptr) Pool::wake(*one);
  }

  alignas(64) idle_set idle_;  // on lines of its own: the state is read before each job

 private:
  const bool has_one_;  // as the constructor has it

  void fence_of_sleeper() const noexcept {
    if (has_one_)
      full_fence();
    else
      heavy_fence();
  }

  Pool& pool() noexcept { return static_cast<Pool&>(*this); }

  // Changes the state if it is `from`. Gives the state before.
  pool_state transition(pool_state from, pool_state to) noexcept {
    state_.compare_exchange_strong(from, to, std::memory_order_relaxed,  // as declared
                                   std::memory_order_relaxed);           // as declared
    return from;
  }
  void transition_to_ended() noexcept { state_.store(pool_state::ended, std::memory_order_relaxed); }  // as declared

  // Behind a heavy_fence().
  void wake_for_what_is_left() noexcept {
    const bool closing = state() != pool_state::open;
    if (closing || pool().any_job())
      if (idler* one = closing ? idle_.pick_any() : idle_.pick(); one != nullptr) Pool::wake(*one);
  }

  // By the last worker, in the idle set, which is closed to others.
  void end() noexcept {
    transition_to_ended();
    heavy_fence();  // (no model: by it ends() finds a job that was posted too late)
    pool().ends();
    while (idler* one = idle_.pick_any()) Pool::wake(*one);
  }
};

}  // namespace weft::detail
