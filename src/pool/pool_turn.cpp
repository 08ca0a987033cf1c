// The loop of a worker: which job it runs next, where it looks when it has none, and how it sleeps. The order in which it
// looks at the queues is what keeps a job from waiting for ever.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <weft/detail/core/root.hpp>

#include "base/spin.hpp"
#include "core/run_loop.hpp"
#include "core/turns.hpp"
#include "core/walk_gate.hpp"
#include "pool/debug_fields.hpp"
#include "pool/pool_core.hpp"
#include "sched/worker_watch.hpp"

namespace weft::detail {
namespace {

// How often a worker looks at all queues before it sleeps: seldom if it is the only one, or if there are more workers than
// processors, since then nobody posts meanwhile.
constexpr unsigned rounds_of_search = 40, rounds_of_search_where_crowded = 2;

}  // namespace

extern "C" [[gnu::visibility("hidden"), gnu::used]] constinit const debug_table weft_debug_pool{debug_pool::fields};
WEFT_DEBUG_NOTE("weft_debug_pool");

// `hook` may be null.
void pool_core::call_hook(void (*hook)(unsigned worker, void* with), const seat& mine) const noexcept {
  if (hook == nullptr) return;
  const auto call = [&] { hook(mine.index, options_.with); };
  call_no_throw(call, "a function of pool_options (on_start, on_stop or on_idle) threw, where nobody could catch it");
}

std::size_t pool_core::ready_jobs(const pool_worker& one) noexcept {
  const auto& its = static_cast<const seat&>(one);
  const std::uint64_t in = its.handed_in.load(std::memory_order_relaxed);  // as declared
  const std::uint64_t out = its.taken_up.get();
  return its.line.in_line() + its.forks.size() + its.kept.size() + (in > out ? static_cast<std::size_t>(in - out) : 0);
}

void pool_core::run(seat& mine) noexcept {
  if (gate_.pass()) {
    worker& here = this_worker();
    here.of_pool = &mine;
    mine.thread_number.store(::gettid(), std::memory_order_relaxed);  // as declared
    call_hook(options_.on_start, mine);
    {
      const watched_worker watched{mine, mine.asleep, here, mine.index, ready_jobs};
      while (job* work = next(mine)) run_one(here, mine, *work);
    }
    call_hook(options_.on_stop, mine);
    here.of_pool = nullptr;
    walk_gate::pass();
  }
  drop();
}

inline void pool_core::run_one(worker& here, seat& mine, job& work) noexcept {
  mine.jobs.add();
  if (state() == pool_state::cancelling) [[unlikely]]  // seen at some time
    root::tell_to_stop(work);
  root::run_outermost(here, work);  // the job may be gone after this line
}

bool pool_core::look_at_job_above(worker& here, const executor& below, job& work) noexcept {
  const auto* const mine = static_cast<const seat*>(here.of_pool);
  if (mine == nullptr || (here.pools.strand != &below && !runs(*mine, below))) return false;
  root::count_in(here, work);
  if (mine->of->state() == pool_state::cancelling) root::tell_to_stop(work);
  return true;
}

// The next job to run; waits until there is one. Null: the pool has ended.
inline job* pool_core::next(seat& mine) noexcept {
  if (mine.jobs.get() == mine.looks_outside_at) [[unlikely]]
    if (job* work = look_outside(mine); work != nullptr || has_ended()) return work;
  if (is_ranked_)
    if (job* work = before_.take(); work != nullptr) return work;
  if (mine.forks.in_slots() != 0)  // a hint that holds: others only take from there
    if (job* work = mine.forks.pop(); work != nullptr) return work;
  if (job* work = mine.line.pop(); work != nullptr) return work;
  if (job* work = mine.forks.pop_stored(); work != nullptr) return work;
  if (job* work = take_own(mine); work != nullptr) return work;
  if (mine.brought != nullptr) return take_brought(mine);
  return look_elsewhere(mine);
}

// At intervals, although there are jobs in its own queue: looks at the other queues, so that no job in them waits for ever.
[[gnu::noinline]] job* pool_core::look_outside(seat& mine) noexcept {
  expect_not_forked();
  mine.next_turn = 0;
  mine.sleeps.poll(true);
  const std::uint64_t jobs = mine.jobs.get();
  const bool at_sockets_alone = jobs < mine.looks_at_jobs_at;
  if (!at_sockets_alone) mine.looks_at_jobs_at = jobs + look_outside_every;
  mine.looks_outside_at = mine.looks_at_jobs_at;
  if (&mine.sleeps != &mine.bed) {
    const std::uint64_t ran = jobs - std::exchange(mine.looked_at_sockets_at, jobs);
    mine.looks_outside_at = std::min(mine.looks_outside_at, jobs + mine.look_pace.looked(nanoseconds_now(), ran));
  }
  // What sockets have woken for this worker alone has every other turn.
  if (at_sockets_alone) return (mine.own_had_turn = !mine.own_had_turn) ? take_own(mine) : nullptr;
  if (is_limited_.load(std::memory_order_relaxed) && idle_.too_many() && mine.kept.empty()) [[unlikely]]  // as declared
    return step_back(mine);
  const bool own_first = ++mine.looks % 2 == 0;
  if (is_ranked_ &&
      mine.looks % 4 == 2)  // not where it looks at the others, who would never have their turn beside a flood
    if (job* work = after_.take(); work != nullptr) return work;
  if (mine.looks % look_at_others_every == 0 && mine.has_others)
    if (job* work = take_from_stuck(mine); work != nullptr) return work;
  if (own_first)
    if (job* work = take_own(mine); work != nullptr) return work;
  if (size() == 1 && !mine.line.empty()) {  // a job from outside must not overtake what is in the line
    if (mine.line.put_next_behind()) line_up_injected(mine);
  } else if (job* work = take_injected(mine); work != nullptr) {
    return work;
  }
  if (!own_first)
    if (job* work = take_own(mine); work != nullptr) return work;
  if (job* work = mine.line.pop(); work != nullptr) return work;  // else forks that fork would overtake it for ever
  if (job* work = mine.forks.pop(); work != nullptr) return work;
  return mine.forks.pop_stored();
}

// More workers are awake than limit_awake() allows: gives all jobs that are not for this worker alone to the others, and then
// goes to sleep, unless there is a job for it alone.
[[gnu::noinline]] job* pool_core::step_back(seat& mine) noexcept {
  while (job* const work = mine.line.pop()) inject(*work);
  for (job* work; (work = mine.forks.pop()) != nullptr || (work = mine.forks.pop_stored()) != nullptr;) inject(*work);
  return look_elsewhere(mine);
}

[[gnu::noinline]] job* pool_core::look_elsewhere(seat& mine) noexcept {
  expect_not_forked();
  mine.next_turn = 0;
  const std::uint64_t now = nanoseconds_now();
  if (mine.pace.has_one()) mine.pace.has_done(now);
  mine.budget.is_idle(now);
  bool searches = idle_.start_search(), desperate = false;
  for (;;) {
    job* work = searches && !idle_.too_many() ? search(mine, desperate) : poll(mine);
    if (work == nullptr && options_.on_idle != nullptr) {
      found(mine, std::exchange(searches, false), mine.has_others);  // it may take long: others search meanwhile
      call_hook(options_.on_idle, mine);
      expect_not_forked();
      work = mine.line.pop();  // the hook may have posted
      if (work == nullptr) work = take_own(mine);
    }
    // A pool that is closed ends when no job is left, so late wake-ups (wait_watch) are done now.
    if (work == nullptr && state() != pool_state::open) {
      wait_watch::settle();
      work = mine.line.pop();
      if (work == nullptr) work = take_own(mine);
    }
    if (work == nullptr && !idle_.too_many()) work = look_on(mine);
    if (work != nullptr) {
      found(mine, searches, mine.has_others);
      const std::uint64_t found_at = nanoseconds_now();
      mine.budget.is_busy(found_at);
      mine.look_pace.was_idle(found_at - now);
      return work;
    }
    if (!sleep(mine, searches, desperate)) return nullptr;
    searches = true;
  }
}

job* pool_core::search(seat& mine, bool desperate) noexcept {
  if (mine.had_event && !mine.pace.pauses())
    return look_round(mine, desperate);  // the next event, too, is only seen in its sleep
  const bool is_crowded = size() == 1 || size() > processors_;
  const unsigned rounds = is_crowded ? rounds_of_search_where_crowded : rounds_of_search;
  for (unsigned round = 0; round < rounds || mine.pace.pauses(); ++round) {
    if (job* work = look_round(mine, desperate); work != nullptr) return work;
    if (round >= rounds && !has_processors())
      ::sched_yield();  // this worker pauses, and another thread may need the processor
    else
      for (int i = 0; i != 8; ++i) spin_wait::pause();
  }
  if (!is_alone_ || !mine.yields.is_worth_it()) return nullptr;
  for (unsigned i = 0; i != yield_before_park::times; ++i) {
    const std::uint64_t before = nanoseconds_now();
    ::sched_yield();
    if (job* work = look_round(mine, desperate); work != nullptr) {
      mine.yields.was_worth_it();
      return work;
    }
    if (!mine.yields.came_back(nanoseconds_now() - before)) break;
  }
  return nullptr;
}

// Spins for as long as its spin_budget allows, and looks for jobs meanwhile, also if start_search() refused: posters count it
// as a worker that is awake. The more workers there are, the less often each looks, since a look takes cache lines from the
// worker that writes them.
job* pool_core::look_on(seat& mine) noexcept {
  const std::uint64_t most = has_processors() ? mine.budget.left() : 0;
  if (most == 0) return nullptr;
  const std::uint64_t began = nanoseconds_now();
  std::uint64_t now = began, longest = 0;
  job* work = nullptr;
  while (work == nullptr && now - began < most && state() == pool_state::open) {
    for (std::size_t i = 8; i < 8 * mine.others.size(); ++i) spin_wait::pause();
    ::sched_yield();
    const std::uint64_t before = std::exchange(now, nanoseconds_now());
    longest = std::max(longest, now - before);
    work = look_round(mine, false);
  }
  mine.budget.was_used(now - began, longest);
  return work;
}

// Looks for jobs for this worker alone, and for those that its parker posts.
job* pool_core::poll(seat& mine) noexcept {
  if (mine.sleeps.poll(false))
    if (job* work = mine.line.pop(); work != nullptr) return work;
  return take_own(mine);
}

job* pool_core::look_round(seat& mine, bool desperate) noexcept {
  if (job* work = poll(mine); work != nullptr) return work;
  if (job* work = take_injected(mine); work != nullptr) return work;
  if (!is_alone_)
    if (job* work = rob_others(mine, desperate); work != nullptr) return work;
  if (!is_ranked_) return nullptr;
  if (job* work = before_.take(); work != nullptr) return work;
  return after_.take();
}

// Sleeps until there may be a job. True: it is to search from here on. False: the pool has ended.
bool pool_core::sleep(seat& mine, bool searched, bool& desperate) noexcept {
  const nap how = fall_asleep(mine, searched);
  if (how == nap::ended) return false;
  if (how == nap::has_job) {
    spin_wait{}.once();
    return true;
  }
  auto until = parker::time_point::max();
  if (how == nap::watches)
    until = std::chrono::steady_clock::now() + (chooses_awake() ? begin_to_watch(mine, desperate) : watch_every);
  bool is_late;
  const bool by_itself = doze(mine, until, is_late);
  desperate = by_itself && is_late && how == nap::watches;  // an event of its parker's ends a sleep, too
  if (desperate && chooses_awake()) choose_awake(mine);
  if (!by_itself) mine.wakes.add();
  return !has_ended();
}

// True: no other thread has woken it. `is_late`: whether it has slept until then.
bool pool_core::doze(seat& mine, parker::time_point until, bool& is_late) noexcept {
  mine.parks.add();
  record(event_kind::sleep, mine.index);
  auto wakes_at = until;
  if (age_frame_memory())
    wakes_at = std::min(until, std::chrono::steady_clock::now() + std::chrono::milliseconds{1000});
  const std::uint64_t fell_asleep = nanoseconds_now();
  mine.asleep.begins(fell_asleep);
  mine.sleeps.commit(wakes_at);
  const std::uint64_t woke_up = nanoseconds_now();
  mine.asleep.ends(woke_up);
  watcher_bed::ring_if_asleep();
  is_late = std::chrono::nanoseconds{woke_up} >= until.time_since_epoch();
  const bool by_itself = woke(mine);
  record(event_kind::wake_up, by_itself ? 0 : 1);
  // An event of its parker's, which is also what another thread has asked of that; memory's age is none.
  mine.had_event = by_itself && std::chrono::nanoseconds{woke_up} < wakes_at.time_since_epoch();
  mine.yields.slept(woke_up - fell_asleep, mine.had_event);
  mine.budget.has_slept(mine.had_event);
  return by_itself;
}

// Called when the pool has been marked as ended.
void pool_core::ends() noexcept { WEFT_EXPECTS(!any_job() && !any_own_job(), posted_too_late); }

// ---- for a thread that calls ----------------------------------------------------------------------------------------

void pool_core::help_until(const bool& over) noexcept {
  worker& here = this_worker();
  seat& mine = *seats_.back();
  while (!over) {
    job* const work = next(mine);
    WEFT_EXPECTS(work != nullptr, "a pool was shut down while a thread was in its run(): its task would wait for ever");
    run_one(here, mine, *work);
  }
  if (goes_with_caller_) run_the_rest();
}

// Runs what is left in a closed pool without threads of its own. By the thread that has the callers' place.
void pool_core::run_the_rest() noexcept {
  worker& here = this_worker();
  while (!has_ended())
    if (job* const work = next(*seats_.back()); work != nullptr) run_one(here, *seats_.back(), *work);
}

// ---- where jobs come from -------------------------------------------------------------------------------------------

job* pool_core::take_own(seat& mine) noexcept {
  take_posted(mine);  // also where it keeps some: a job that posts itself again would overtake them for ever
  return mine.kept.pop();
}

job* pool_core::take_injected(seat& mine) noexcept {
  if (is_alone_) return take_brought(mine);
  job* some[decltype(mine.line)::most_stolen];
  const std::size_t count = take_injected(mine, some, std::size(some), size());
  return count != 0 ? keep_rest(mine, some, count) : nullptr;
}

// Takes jobs from the injection queue: this worker's share, if so many workers share them, but no more than `most`. How many.
std::size_t pool_core::take_injected(seat& mine, job** into, std::size_t most, unsigned workers) noexcept {
  std::size_t count = 0;
  if (is_alone_) {
    while (count != most) {
      job* const one = take_brought(mine);
      if (one == nullptr) break;
      into[count++] = one;
    }
  } else if ((count = injected_.take(into, most, workers)) != 0) {
    mine.injected.add(count);
    waiting_.fetch_sub(count, std::memory_order_relaxed);  // as declared
  }
  return count;
}

// By the only worker of a pool: it takes the whole injection queue at once, and then one job a call. They need not go
// through its line, which exists for thieves.
job* pool_core::take_brought(seat& mine) noexcept {
  if (mine.brought == nullptr) {
    mine.brought = injected_.take_all();
    mine.next_turn = 0;
    if (mine.brought == nullptr) return nullptr;
    std::size_t count = 0;
    for (const job* one = mine.brought; one != nullptr; one = one->next) ++count;
    mine.were_brought.store(count, std::memory_order_relaxed);  // as declared
    mine.are_brought.store(count, std::memory_order_relaxed);   // as declared
  }
  job* const oldest = mine.brought;
  mine.brought = oldest->next;
  mine.injected.add();
  mine.are_brought.store(mine.are_brought.load(std::memory_order_relaxed) - 1,
                         std::memory_order_relaxed);  // as declared
  if (mine.brought == nullptr) {
    waiting_.fetch_sub(mine.were_brought.load(std::memory_order_relaxed), std::memory_order_relaxed);  // as declared
    mine.were_brought.store(0, std::memory_order_relaxed);                                             // as declared
  }
  return oldest;
}

// Moves jobs from the injection queue to the end of this worker's line. Whether it has moved all of them.
bool pool_core::line_up_injected(seat& mine) noexcept {
  job* some[decltype(mine.line)::most_stolen];
  const std::size_t most = std::min(std::size(some), mine.line.room());
  const std::size_t count = take_injected(mine, some, most, 1);
  std::size_t lined_up = 0;
  while (lined_up != count && mine.line.push(*some[lined_up])) ++lined_up;
  for (std::size_t i = lined_up; i != count; ++i) inject(*some[i]);  // the line could not grow
  return lined_up == count && count < most;
}

// Whether there is a job for any worker. Asked behind a heavy_fence(), it sees all that was posted before a light_fence(), and
// behind a full_fence() all that was before one.
bool pool_core::any_job() const noexcept {
  if (!injected_.empty() || !before_.empty() || !after_.empty()) return true;
  return std::ranges::any_of(seats_, [](const auto& one) { return !one->forks.empty() || one->line.in_line() != 0; });
}

// The same for jobs that their worker is to do next.
bool pool_core::any_next() const noexcept {
  return std::ranges::any_of(seats_, [](const auto& one) { return one->line.has_next(); });
}

// The same for jobs that are for one worker alone.
bool pool_core::any_own_job() const noexcept {
  return std::ranges::any_of(seats_, [](const auto& one) { return !one->posted.empty(); });
}

}  // namespace weft::detail
