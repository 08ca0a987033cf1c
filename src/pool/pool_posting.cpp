// How jobs get into a pool: from its own workers, from outside, by rank, and for one worker alone.
#include <algorithm>
#include <chrono>
#include <utility>
#include <weft/detail/core/root.hpp>

#include "core/turns.hpp"
#include "pool/pool_core.hpp"

namespace weft::detail {

void pool_core::post(job& work) noexcept {
  if (options_.deadline_order && post_by_deadline(work)) [[unlikely]]
    return;
  pool_worker* const here = this_worker().of_pool;
  if (here == nullptr || here->home != this) return post_from_outside(work, work, 1);
  here->post(work);
}

void pool_core::post_behind(job& work) noexcept {
  pool_worker* const here = this_worker().of_pool;
  if (here != nullptr && here->home == this) return here->post_behind(work);
  if (options_.deadline_order && post_by_deadline(work)) return;
  post_from_outside(work, work, 1);
}

// By a worker of this pool, where its slot is not empty or the injection queue is not: those jobs come first, so they go into
// the line before `work`. Where the injection queue has more than is taken at once, the only worker of a pool puts `work`
// into that queue, behind all of it. So jobs run in the order in which they were posted.
[[gnu::noinline]] void pool_core::post_behind_all(pool_worker& of, job& work) noexcept {
  seat& mine = static_cast<seat&>(of);
  pool_core& core = *mine.of;
  mine.next_turn = 0;
  if (core.options_.deadline_order && core.post_by_deadline(work)) return;
  if (!mine.line.put_next_behind()) core.spill(mine), mine.line.put_next_behind();
  if (!core.line_up_injected(mine) && core.size() == 1)
    core.inject(work);
  else if (!mine.line.push(work))
    make_room(mine, work);
  mine.call();
}

void pool_core::post_all(job* first) noexcept {
  if (options_.deadline_order || is_inside()) {
    while (first != nullptr) post_behind(*std::exchange(first, first->next));
    return;
  }
  if (first == nullptr) return;
  std::size_t how_many = 0;
  for (const job* one = first; one != nullptr; one = one->next) ++how_many;
  post_from_outside(*inbox<job>::turned_round(first), *first, how_many);
}

// The line is full: its newest half goes to the injection queue, and then `work`, which is newer.
[[gnu::noinline]] void pool_core::make_room(pool_worker& of, job& work) noexcept {
  seat& mine = static_cast<seat&>(of);
  mine.of->spill(mine);
  mine.of->inject(work);
  mine.call();
}

void pool_core::spill(seat& mine) noexcept {
  job* oldest = nullptr;
  std::size_t spilled;
  if (job* const newest = mine.line.spill(oldest, spilled); newest != nullptr) inject(*newest, *oldest, spilled);
}

// The jobs are linked, the newest first.
void pool_core::inject(job& newest, job& oldest, std::size_t how_many) noexcept {
  waiting_.fetch_add(how_many, std::memory_order_relaxed);  // as declared
  injected_.put(newest, oldest);
}

void pool_core::post_from_outside(job& newest, job& oldest, std::size_t how_many) noexcept {
  expect_not_forked();
  worker& here = this_worker();
  const post_hazard::mark mark{here.hazard, this};
  WEFT_EXPECTS(!has_ended(), posted_too_late);
  inject(newest, oldest, how_many);
  fence_from_outside();
  seats_.front()->call();
}

// False: the job has no deadline.
[[gnu::noinline]] bool pool_core::post_by_deadline(job& work) noexcept {
  const auto deadline = root::deadline_of(work);
  if (deadline == std::chrono::steady_clock::time_point::max()) return false;
  post_ranked(work, middle());
  return true;
}

void pool_core::post_ranked(job& work, unsigned priority) noexcept {
  worker& here = this_worker();
  const auto deadline =
      options_.deadline_order ? root::deadline_of(work).time_since_epoch().count() : ranked_jobs<job>::no_deadline;
  if (here.of_pool != nullptr && here.of_pool->home == this) return put_ranked(work, priority, deadline);
  expect_not_forked();
  const post_hazard::mark mark{here.hazard, this};
  WEFT_EXPECTS(!has_ended(), posted_too_late);
  put_ranked(work, priority, deadline);
}

// Where there is no memory to rank the job, it runs in the order of posts.
void pool_core::put_ranked(job& work, unsigned priority, std::int64_t deadline) noexcept {
  ranked_jobs<job>& queue = priority <= middle() ? before_ : after_;
  if (!queue.put(work, priority, deadline)) inject(work);
  fence_from_outside();
  seats_.front()->call();
}

void pool_core::own_executor::post(job& work) noexcept { of->of->post_to(*of, work); }
io_service* pool_core::own_executor::io() const noexcept { return of->of->io_; }

// Posts a job for one worker alone. A worker that posts for itself need not be woken: it looks there before it sleeps.
void pool_core::post_to(seat& one, job& work) noexcept {
  worker& here = this_worker();
  if (here.of_pool == &one) {
    take_posted(one);  // those were posted before this one
    return one.kept.push(work);
  }
  if (here.of_pool != nullptr && here.of_pool->home == this) return hand_in(one, work);
  expect_not_forked();
  const post_hazard::mark mark{here.hazard, this};
  WEFT_EXPECTS(!has_ended(), posted_too_late);
  hand_in(one, work);
}

void pool_core::hand_in(seat& one, job& work) noexcept {
  one.handed_in.fetch_add(1, std::memory_order_relaxed);  // as declared
  one.posted.put(work);
  call(one);
}

[[gnu::noinline]] void pool_core::wake(idler& one) noexcept {
  auto& sleeper = static_cast<seat&>(one);
  sleeper.of->expect_not_forked();
  record(event_kind::call_thread, sleeper.number_of_thread());
  sleeper.sleeps.wake();
}

bool pool_core::has_level(const executor* one) const noexcept {
  return std::ranges::any_of(levels_, [one](const auto& level) { return level.get() == one; });
}

[[gnu::noinline]] bool pool_core::shares(const executor& home, const executor* one) noexcept {
  return static_cast<const pool_core&>(home).has_level(one);
}

[[gnu::noinline]] bool pool_core::runs(const pool_worker& by, const executor& one) noexcept {
  const auto& mine = static_cast<const seat&>(by);
  return mine.of == &one || &mine.own == &one || mine.of->has_level(&one);
}

}  // namespace weft::detail
