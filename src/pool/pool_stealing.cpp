// How a worker steals jobs from others: whom it robs first, how many jobs it takes, and when it also takes the job that its
// victim would run next.
#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "core/turns.hpp"
#include "pool/pool_core.hpp"
#include "pool/processors.hpp"

namespace weft::detail {
namespace {

std::uint32_t next_random(std::uint32_t& state) noexcept {
  state ^= state << 13, state ^= state >> 17, state ^= state << 5;
  return state;
}

}  // namespace

// Lists for each worker the others in the order in which it robs them: one group of all, or, where threads are pinned,
// groups by what their processors share, the nearest first.
void pool_core::know_each_other(const std::vector<processor>& places) {
  const auto place = [&](const seat* one) -> const processor& { return places[one->index % places.size()]; };
  for (const auto& mine : seats_) {
    for (const auto& one : seats_)
      if (one != mine) mine->others.push_back(one.get());
    if (places.empty()) {
      mine->nearer = {mine->others.size()};
      continue;
    }
    const auto far = [&](const seat* one) { return distance(place(mine.get()), place(one)); };
    std::ranges::sort(mine->others, {}, [&](const seat* one) { return std::pair{far(one), one->index}; });
    for (std::size_t i = 1; i <= mine->others.size(); ++i)
      if (i == mine->others.size() || far(mine->others[i]) != far(mine->others[i - 1])) mine->nearer.push_back(i);
  }
}

// Robs the nearest workers first, and begins at a random one of those that are equally near. While it pauses
// (steal_pace.hpp) it does not even look: a look takes from a victim the line of the cache which that one writes.
job* pool_core::rob_others(seat& mine, bool desperate) noexcept {
  if (mine.pace.may_pause()) {
    if (mine.pace.pauses(nanoseconds_now())) return nullptr;
    if (std::ranges::all_of(mine.others,
                            [](const seat* one) { return one->forks.empty() && one->line.in_line() == 0; }))
      mine.pace.found_none();
  }
  std::size_t begin = 0;
  for (const std::size_t end : mine.nearer) {
    const std::size_t count = end - begin;
    const std::size_t from = count > 1 ? next_random(mine.random) % count : 0;
    for (std::size_t i = 0; i != count; ++i)
      if (job* work = rob_watched(mine, *mine.others[begin + (from + i) % count], desperate); work != nullptr)
        return work;
    begin = end;
  }
  return nullptr;
}

// Every now and then, although there are jobs here: takes from a worker that is stuck in one job. It looks at each of the
// others twice, and takes all of its jobs if its count of jobs has not changed in between. It is needed where all workers
// are busy, so that none watches.
job* pool_core::take_from_stuck(seat& mine) noexcept {
  seat& other = *mine.others[mine.looks / (2 * look_at_others_every) % mine.others.size()];
  const std::uint64_t before = std::exchange(mine.jobs_of_other, other.jobs.get());
  const bool again = mine.looks % (2 * look_at_others_every) != 0;
  return again && before == mine.jobs_of_other ? rob(mine, other, true) : nullptr;
}

job* pool_core::rob_watched(seat& mine, seat& victim, bool desperate) noexcept {
  // The job in the victim's slot is taken only if the victim has begun no job since the watcher's last look.
  bool stuck = false;
  if (desperate) {
    const std::uint64_t jobs = victim.jobs.get();
    stuck = victim.jobs_when_watched.exchange(jobs, std::memory_order_relaxed) == jobs;  // as declared
  }
  return rob(mine, victim, stuck);
}

job* pool_core::rob(seat& mine, seat& victim, bool stuck) noexcept {
  if (!victim.forks.empty())
    if (job* fork = take_fork(mine, victim); fork != nullptr) return fork;
  if (victim.line.in_line() == 0 && !(stuck && !victim.line.empty())) return nullptr;
  const std::uint64_t before = nanoseconds_now();
  job* some[decltype(mine.line)::most_stolen];
  const std::size_t count = victim.line.steal(some, stuck);
  if (count == 0) {
    mine.failed_steals.add();
    return nullptr;
  }
  mine.pace.took(before, nanoseconds_now());
  mine.steals.add(count);
  mine.next_turn = 0;
  record(event_kind::steal, static_cast<std::uint32_t>(count), victim.number_of_thread());
  return keep_rest(mine, some, count);
}

// Null: somebody else took it.
job* pool_core::take_fork(seat& mine, seat& victim) noexcept {
  const std::uint64_t before = nanoseconds_now();
  job* one;
  if (victim.forks.steal(one) != theft::done) return nullptr;
  mine.pace.took(before, nanoseconds_now());
  mine.steals.add();
  mine.next_turn = 0;
  record(event_kind::steal, 1, victim.number_of_thread());
  return one;
}

// Gives the first one to run, and puts the others into the line.
job* pool_core::keep_rest(seat& mine, job** jobs, std::size_t count) noexcept {
  for (std::size_t i = 1; i != count; ++i)
    if (!mine.line.push(*jobs[i])) inject(*jobs[i]);
  if (count > 1 || !injected_.empty()) mine.call();
  return jobs[0];
}

}  // namespace weft::detail
