// The loop of a worker: what it runs next, where it looks when it has nothing, and how it sleeps.
//
// Long because the order in which all of these places are looked at is what keeps any job from waiting for ever.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <weft/detail/core/root.hpp>

#include "base/spin.hpp"
#include "core/run_loop.hpp"
#include "pool/pool_core.hpp"

namespace weft::detail {

// Null: there is none.
void pool_core::call_hook(void (*hook)(unsigned worker, void* with), const seat& mine) const noexcept {
  if (hook == nullptr) return;
  const auto call = [&] { hook(mine.index, options_.with); };
  call_no_throw(call, "a function of pool_options (on_start, on_stop or on_idle) threw, where nobody could catch it");
}

void pool_core::run(seat& mine) noexcept {
  if (gate_.pass()) {
    worker& here = this_worker();
    here.of_pool = &mine;
    mine.thread_number.store(::gettid(), std::memory_order_relaxed);  // as declared
    call_hook(options_.on_start, mine);
    while (job* work = next(mine)) run_one(here, mine, *work);
    call_hook(options_.on_stop, mine);
    here.of_pool = nullptr;
  }
  drop();
}

inline void pool_core::run_one(worker& here, seat& mine, job& work) noexcept {
  mine.jobs.add();
  if (state() == pool_state::cancelling) [[unlikely]]  // seen at some time
    root::tell_to_stop(work);
  root::run_outermost(here, work);  // it may be gone
}

bool pool_core::look_at_job_above(worker& here, const executor& below, job& work) noexcept {
  const auto* const mine = static_cast<const seat*>(here.of_pool);
  if (mine == nullptr || (here.pools.strand != &below && !runs(*mine, below))) return false;
  root::count_in(here, work);
  if (mine->of->state() == pool_state::cancelling) root::tell_to_stop(work);
  return true;
}

// Null: the pool has ended.
inline job* pool_core::next(seat& mine) noexcept {
  if (mine.jobs.get() == mine.looks_outside_at) [[unlikely]]
    if (job* work = look_outside(mine); work != nullptr || has_ended()) return work;
  if (is_ranked_)
    if (job* work = before_.take(); work != nullptr) return work;
  if (mine.forks.in_slots() != 0)  // thieves only take
    if (job* work = mine.forks.pop(); work != nullptr) return work;
  if (job* work = mine.line.pop(); work != nullptr) return work;
  if (job* work = mine.forks.pop_stored(); work != nullptr) return work;
  if (job* work = take_own(mine); work != nullptr) return work;
  if (mine.brought != nullptr) return take_brought(mine);
  return look_elsewhere(mine);
}

// Every now and then, although there are jobs here: what else there is, so that nothing waits for ever.
[[gnu::noinline]] job* pool_core::look_outside(seat& mine) noexcept {
  expect_not_forked();
  mine.sleeps.poll();
  mine.looks_outside_at = mine.jobs.get() + look_outside_every;
  if (is_limited_.load(std::memory_order_relaxed) && idle_.too_many() && mine.kept.empty()) [[unlikely]]  // as declared
    return step_back(mine);
  const bool own_first = ++mine.looks % 2 == 0;
  if (is_ranked_ && mine.looks % 4 == 0)
    if (job* work = after_.take(); work != nullptr) return work;
  if (mine.looks % look_at_others_every == 0 && mine.has_others)
    if (job* work = take_from_stuck(mine); work != nullptr) return work;
  if (own_first)
    if (job* work = take_own(mine); work != nullptr) return work;
  if (size() == 1 && !mine.line.empty()) {  // none comes before what was there before
    if (mine.line.put_next_behind()) line_up_injected(mine);
  } else if (job* work = take_injected(mine); work != nullptr) {
    return work;
  }
  if (!own_first)
    if (job* work = take_own(mine); work != nullptr) return work;
  if (job* work = mine.line.pop(); work != nullptr) return work;  // forks that fork come before it for ever
  if (job* work = mine.forks.pop(); work != nullptr) return work;
  return mine.forks.pop_stored();
}

// More are awake than limit_awake() lets: what is not for it alone is for those that stay awake.
[[gnu::noinline]] job* pool_core::step_back(seat& mine) noexcept {
  while (job* const work = mine.line.pop()) inject(*work);
  for (job* work; (work = mine.forks.pop()) != nullptr || (work = mine.forks.pop_stored()) != nullptr;) inject(*work);
  return look_elsewhere(mine);
}

[[gnu::noinline]] job* pool_core::look_elsewhere(seat& mine) noexcept {
  expect_not_forked();
  const std::uint64_t now = nanoseconds_now();
  if (mine.pace.has_one()) mine.pace.has_done(now);
  mine.budget.is_idle(now);
  bool searches = idle_.start_search(), desperate = false;
  for (;;) {
    job* work = searches && !idle_.too_many() ? search(mine, desperate) : poll(mine);
    if (work == nullptr && options_.on_idle != nullptr) {
      call_hook(options_.on_idle, mine);
      expect_not_forked();
      work = mine.line.pop();  // it may have posted
      if (work == nullptr) work = take_own(mine);
    }
    // At the end, what a job has woken is not left to come late: it belongs to what there is to run.
    if (work == nullptr && state() != pool_state::open) {
      wait_watch::settle();
      work = mine.line.pop();
      if (work == nullptr) work = take_own(mine);
    }
    if (work == nullptr && !idle_.too_many()) work = look_on(mine);
    if (work != nullptr) {
      found(mine, searches, mine.has_others);
      mine.budget.is_busy(nanoseconds_now());
      return work;
    }
    if (!sleep(mine, searches, desperate)) return nullptr;
    searches = true;
  }
}

job* pool_core::search(seat& mine, bool desperate) noexcept {
  const unsigned patience = size() == 1 || size() > processors_ ? 2 : 40;
  for (unsigned round = 0; round < patience || mine.pace.pauses(); ++round) {
    if (job* work = look_round(mine, desperate); work != nullptr) return work;
    if (round >= patience && !has_processors())
      ::sched_yield();  // it pauses, and there may be one that has no processor
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

// With leave to search or without: for the others it is as awake as one that has a job. The more there are, the seldomer
// each looks, since that takes the lines of the cache that they write from those that work.
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

// What is for it alone, and what its parker has for it, which may be posted here.
job* pool_core::poll(seat& mine) noexcept {
  if (mine.sleeps.poll())
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

// True: to be woken is to search. False: the pool has ended.
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
  doze(mine, until);
  const bool by_itself = woke(mine);
  desperate = by_itself && how == nap::watches;
  if (desperate && chooses_awake()) choose_awake(mine);
  if (!by_itself) mine.wakes.add();
  return !has_ended();
}

void pool_core::doze(seat& mine, parker::time_point until) noexcept {
  mine.parks.add();
  if (age_frame_memory()) until = std::min(until, std::chrono::steady_clock::now() + std::chrono::milliseconds{1000});
  const std::uint64_t fell_asleep = nanoseconds_now();
  mine.asleep.begins(fell_asleep);
  mine.sleeps.commit(until);
  const std::uint64_t woke_up = nanoseconds_now();
  mine.asleep.ends(woke_up);
  mine.yields.slept(woke_up - fell_asleep);
  mine.budget.has_slept();
}

// The pool is marked as ended.
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

// By a caller, of a pool without a thread of its own that is closed.
void pool_core::run_the_rest() noexcept {
  worker& here = this_worker();
  while (!has_ended())
    if (job* const work = next(*seats_.back()); work != nullptr) run_one(here, *seats_.back(), *work);
}

// ---- where jobs come from -------------------------------------------------------------------------------------------

job* pool_core::take_own(seat& mine) noexcept {
  take_posted(mine);  // also where some are kept: a job that posts itself again would come before these for ever
  return mine.kept.pop();
}

job* pool_core::take_injected(seat& mine) noexcept {
  if (is_alone_) return take_brought(mine);
  job* some[decltype(mine.line)::most_stolen];
  const std::size_t count = take_injected(mine, some, std::size(some), size());
  return count != 0 ? keep_rest(mine, some, count) : nullptr;
}

// So many of them at most, of as many workers' share. How many.
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

// By the only worker, which takes all there are at once: they need not go through its line, which is for thieves, too.
job* pool_core::take_brought(seat& mine) noexcept {
  if (mine.brought == nullptr) {
    mine.brought = injected_.take_all();
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

// Some of what waits for all workers goes to the end of this one's line. Whether that is all.
bool pool_core::line_up_injected(seat& mine) noexcept {
  job* some[decltype(mine.line)::most_stolen];
  const std::size_t most = std::min(std::size(some), mine.line.room());
  const std::size_t count = take_injected(mine, some, most, 1);
  std::size_t lined_up = 0;
  while (lined_up != count && mine.line.push(*some[lined_up])) ++lined_up;
  for (std::size_t i = lined_up; i != count; ++i) inject(*some[i]);  // there is no memory
  return lined_up == count && count < most;
}

// The truth behind a heavy_fence(), for what was put anywhere before a light_fence().
bool pool_core::any_job() const noexcept {
  if (!injected_.empty() || !before_.empty() || !after_.empty()) return true;
  return std::ranges::any_of(seats_, [](const auto& one) { return !one->forks.empty() || one->line.in_line() != 0; });
}

// The same for what is for one worker alone.
bool pool_core::any_own_job() const noexcept {
  return std::ranges::any_of(seats_, [](const auto& one) { return !one->posted.empty(); });
}

}  // namespace weft::detail
