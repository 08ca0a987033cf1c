// The place among the workers for a thread that calls run(): the thread takes it, works there until its task has ended, and
// gives it to the next one.
#include <utility>

#include "core/run_loop.hpp"
#include "core/walk_gate.hpp"
#include "pool/pool_core.hpp"

namespace weft::detail {

void pool_core::enter_as_caller(bool& inside) noexcept {
  expect_not_forked();
  WEFT_EXPECTS(!has_ended(), posted_too_late);
  {
    const std::lock_guard guard{callers_lock_};
    if (std::exchange(callers_place_taken_, true)) return;
    inside = true;
  }
  work_as_caller();
}

bool pool_core::wait_as_caller(bool& inside, const bool& over) noexcept {
  {
    std::unique_lock guard{callers_lock_};
    callers_turn_.wait(guard, [&] { return over || !callers_place_taken_; });
    if (over) return false;
    callers_place_taken_ = inside = true;
  }
  work_as_caller();
  return true;
}

// It notifies under the lock, since a caller that sleeps may return, and destroy the pool, as soon as it sees `over`. The
// hazard has whoever destroys the pool wait for this thread.
void pool_core::tell_caller(const bool& inside, bool& over, job& end) noexcept {
  const post_hazard::mark mark{this_worker().hazard, this};
  {
    const std::lock_guard guard{callers_lock_};
    if (!inside) {
      over = true;
      return callers_turn_.notify_all();
    }
  }
  post_to(*seats_.back(), end);
}

// Begins to work as a worker of the pool. By the thread that has just taken the place.
void pool_core::work_as_caller() noexcept {
  holders_.add();
  seat& mine = *seats_.back();
  worker& here = this_worker();
  callers_before_ = std::exchange(here.of_pool, &mine);
  const std::uint64_t now = nanoseconds_now();
  mine.asleep.ends(now);
  mine.budget.is_busy(now);
  mine.look_pace = detail::look_pace{now};
  come();
  watched_as_caller_.emplace(mine, mine.asleep, here, mine.index, ready_jobs);
  call_hook(options_.on_start, mine);
}

// Forks stay in the deque, where others take them. Jobs in the line go to the injection queue, since thieves take only half
// of a line at a time.
void pool_core::leave_as_caller() noexcept {
  seat& mine = *seats_.back();
  call_hook(options_.on_stop, mine);
  watched_as_caller_.reset();
  while (job* const work = mine.line.pop()) inject(*work);
  go();
  mine.asleep.begins(nanoseconds_now());
  this_worker().of_pool = callers_before_;
  walk_gate::pass();
  {
    const std::lock_guard guard{callers_lock_};
    callers_place_taken_ = false;
    callers_turn_.notify_all();
  }
  drop();
}

// Runs what is left in a closed pool without threads of its own: by a thread that is not one of its workers.
void pool_core::run_the_rest_as_caller() noexcept {
  if (has_ended()) return;
  bool inside = false;
  enter_as_caller(inside);
  if (!inside) return;
  {
    const run_scope outside{this_worker()};  // it may end inside a task
    run_the_rest();
  }
  leave_as_caller();
}

}  // namespace weft::detail
