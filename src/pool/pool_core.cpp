// Long because the run loop, posting, sleeping and the end are one protocol.
#include "pool/pool_core.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <utility>
#include <weft/detail/core/root.hpp>
#include <weft/error.hpp>

#include "base/fence.hpp"
#include "base/helper_signals.hpp"
#include "base/spin.hpp"
#include "core/run_loop.hpp"
#include "pool/processors.hpp"

namespace weft::detail {
namespace {

using std::chrono::milliseconds;

constexpr std::uint32_t look_outside_every = 61;   // jobs; prime, so that it does not beat with what programs do
constexpr std::uint32_t look_at_others_every = 8;  // of these looks
constexpr milliseconds watch_every{5};

std::uint64_t nanoseconds_now() noexcept {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds{1});
}

constexpr const char* posted_too_late = "a job was posted to a pool that has shut down: its task would wait for ever";

constinit std::atomic<std::uint32_t> forks_of_the_process{0};  // alone in its process when it changes

// In the child. A worker that forked goes on there with what it was at, and then looks outside, by which it learns of it:
// what lies in its line is for the parent to run.
void count_fork() noexcept {
  forks_of_the_process.fetch_add(1, std::memory_order_relaxed);  // as declared
  pool_worker* const mine = worker_of_thread != nullptr ? worker_of_thread->of_pool : nullptr;
  if (mine != nullptr) mine->looks_outside_at = mine->jobs.get();
}

// Not once by the guard of a static, which a child forked meanwhile would find taken for ever. Two that come here at once
// have each fork counted twice, and any number is as good.
void count_forks() noexcept {
  static constinit std::atomic<bool> counts{false};
  if (counts.load(std::memory_order_relaxed)) return;  // the lock of what pthread_atfork() writes has the order
  ::pthread_atfork(nullptr, nullptr, count_fork);
  counts.store(true, std::memory_order_relaxed);  // as above
}

// An error number.
int pin_to(pthread_t thread, unsigned processor) noexcept {
  const std::size_t bytes = CPU_ALLOC_SIZE(processor + 1);
  cpu_set_t* const set = CPU_ALLOC(processor + 1);
  if (set == nullptr) return ENOMEM;
  CPU_ZERO_S(bytes, set);
  CPU_SET_S(processor, bytes, set);
  const int refused = ::pthread_setaffinity_np(thread, bytes, set);
  CPU_FREE(set);
  return refused;
}

std::uint32_t next_random(std::uint32_t& state) noexcept {
  state ^= state << 13, state ^= state >> 17, state ^= state << 5;
  return state;
}

}  // namespace

// ---- begin and end ------------------------------------------------------------------------------------------------------

// How many of its own threads may be awake at first.
unsigned pool_core::first_awake(const pool_options& options, unsigned processors) noexcept {
  const unsigned callers = options.use_caller ? 1 : 0;
  return std::min(options.threads - callers, std::max(processors - callers, 1u));
}

pool_core::pool_core(const pool_options& options, unsigned processors, parkers beds)
    : parking{options.threads - (options.use_caller ? 1u : 0u), first_awake(options, processors)},
      is_ranked_{options.priorities > 1 || options.deadline_order},
      is_alone_{options.threads == 1 && !options.use_caller},
      processors_{processors},
      options_{options},
      crowd_{own_threads(), first_awake(options, processors)},
      began_{nanoseconds_now()},
      forks_before_{forks_of_the_process.load(std::memory_order_relaxed)} {  // as declared
  for (unsigned i = 0; i != options.threads; ++i) seats_.push_back(std::make_unique<seat>(*this, i, beds));
  for (unsigned i = 0; i != options.priorities; ++i) levels_.push_back(std::make_unique<level_executor>(*this, i));
  if (options.use_caller) seats_.back()->asleep.begins(began_);
}

pool_core* pool_core::make(const pool_options& options, parkers beds) {
  prepare_fences();
  count_forks();
  static_cast<void>(this_worker());  // what is begun once a process is, before a thread could be at it in a fork()
  pool_options mine = options;
  const unsigned processors = available_processors();
  if (mine.threads == 0) mine.threads = processors;
  WEFT_EXPECTS(mine.threads <= 16'384, "a pool of more than 16384 threads was asked for");
  WEFT_EXPECTS(mine.priorities >= 1 && mine.priorities <= 8, "a pool has from 1 to 8 priorities");
  std::vector<processor> places;
  if (mine.pin) places = processors_here(allowed_processors());
  std::unique_ptr<pool_core> core{new pool_core{mine, processors, beds}};
  core->know_each_other(places);
  pool_core* const started = core.release();  // whoever drops it last deletes
  if (const int refused = started->start_threads(mine.name != nullptr ? mine.name : "weft", places); refused != 0) {
    started->drop();
    throw error{std::error_code{refused, std::generic_category()}, "start the threads of a pool"};
  }
  return started;
}

// Whom each takes work from: one group of all, or by what they share where each has its place.
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

// All or none: they wait at the gate for each other.
int pool_core::start_threads(const char* name, const std::vector<processor>& places) noexcept {
  const helper_signals as_helper;
  int refused = 0;
  std::size_t started = 0;
  while (started != own_threads()) {
    seat& one = *seats_[started];
    holders_.add();
    refused = ::pthread_create(
        &one.thread, nullptr,
        [](void* argument) -> void* {
          seat& mine = *static_cast<seat*>(argument);
          mine.of->run(mine);
          return nullptr;
        },
        &one);
    if (refused != 0) {
      holders_.take_back();
      break;
    }
    char number[8], full[16];
    const int digits = std::snprintf(number, sizeof number, "-%zu", started);
    std::snprintf(full, sizeof full, "%.*s%s", 15 - digits, name, number);
    ::pthread_setname_np(one.thread, full);
    ++started;
    if (!places.empty()) refused = pin_to(one.thread, places[one.index % places.size()].number);
    if (refused != 0) break;
  }
  gate_.open(refused == 0);
  if (refused != 0)
    for (std::size_t i = 0; i != started; ++i) ::pthread_join(seats_[i]->thread, nullptr);
  return refused;
}

void pool_core::shut_down(pool_shutdown how) noexcept {
  if (is_forked()) return;
  close(how == pool_shutdown::cancel ? pool_state::cancelling : pool_state::draining);
  if (is_inside()) return;
  if (own_threads() == 0) run_the_rest_as_caller();
  join_threads();
}

void pool_core::join_threads() noexcept {
  if (joined_) return;
  joined_ = true;
  for (unsigned i = 0; i != own_threads(); ++i) ::pthread_join(seats_[i]->thread, nullptr);
}

void pool_core::release() noexcept {
  if (is_forked()) return;  // its threads, and what they held, stayed behind
  shut_down(pool_shutdown::drain);
  goes_with_caller_ = own_threads() == 0 && is_inside();
  if (!joined_)  // on one of its threads
    for (unsigned i = 0; i != own_threads(); ++i) ::pthread_detach(seats_[i]->thread);
  wait_for_posters(this);
  drop();
}

void pool_core::drop() noexcept {
  if (!holders_.let_go()) return;
#if !defined(NDEBUG)
  expect_no_task();
#endif
  delete this;
}

// Where no thread is left the counts are exact.
void pool_core::expect_no_task() const noexcept {
  std::uint64_t begun = 0, ended = 0;
  for (const auto& one : seats_) begun += one->begun.get(), ended += one->ended.get();
  WEFT_EXPECTS(
      begun == ended,
      "a pool was destroyed while a task of it waits: whoever wakes that would post to what is gone. Await all "
      "that runs on a pool before it goes, in a scope or by sync_wait, or have it stopped");
}

bool pool_core::is_forked() const noexcept {
  return forks_of_the_process.load(std::memory_order_relaxed) != forks_before_;  // as declared
}

void pool_core::expect_not_forked() const noexcept {
  WEFT_EXPECTS(!is_forked(),
               "a pool was used in a process that was forked after the pool was made, and has none of its "
               "threads: make a pool there");
}

bool pool_core::is_inside() const noexcept {
  const pool_worker* mine = this_worker().of_pool;
  return mine != nullptr && mine->home == this;
}

executor& pool_core::executor_at(unsigned priority) noexcept {
  if (priority == middle()) return *this;
  return *levels_[priority];
}

unsigned pool_core::worker_id() const noexcept {
  return is_inside() ? static_cast<const seat*>(this_worker().of_pool)->index : size();
}

pool_stats pool_core::stats(unsigned which) const noexcept {
  const seat& one = *seats_[which];
  const std::uint64_t now = nanoseconds_now();
  const std::uint64_t asleep = one.asleep.get(now).so_far;
  const std::uint64_t life = now - began_;
  const std::uint64_t ended = one.ended.get(), begun = one.begun.get();        // ended first
  const std::uint64_t taken_up = one.taken_up.get();                           // before
  const std::uint64_t handed = one.handed_in.load(std::memory_order_relaxed);  // as declared
  return {
      .jobs = one.jobs.get(),
      .begun = begun,
      .ended = ended,
      .live = static_cast<std::int64_t>(begun - ended),
      .from_outside = one.injected.get(),
      .steals = one.steals.get(),
      .failed_steals = one.failed_steals.get(),
      .sleeps = one.parks.get(),
      .wakes = one.wakes.get(),
      .waiting = one.line.size() + one.forks.size() + one.kept.size() + handed - std::min(handed, taken_up) +
                 one.are_brought.load(std::memory_order_relaxed),  // as declared
      .asleep = std::chrono::nanoseconds{asleep},
      .awake = std::chrono::nanoseconds{life > asleep ? life - asleep : 0},
  };
}

std::size_t pool_core::waiting_for_any() const noexcept {
  const std::size_t brought = seats_.front()->were_brought.load(std::memory_order_relaxed);  // as declared
  const std::size_t all = waiting_.load(std::memory_order_relaxed);                          // as declared
  return all - std::min(all, brought) + before_.size() + after_.size();
}

// ---- a caller that works here -------------------------------------------------------------------------------------------------

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

// The lock is held while it tells one that sleeps, who goes on behind it. Whoever destroys the pool waits for this thread.
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

// By the thread that has just been given the place.
void pool_core::work_as_caller() noexcept {
  holders_.add();
  seat& mine = *seats_.back();
  callers_before_ = std::exchange(this_worker().of_pool, &mine);
  const std::uint64_t now = nanoseconds_now();
  mine.asleep.ends(now);
  mine.budget.is_busy(now);
  come();
  call_hook(options_.on_start, mine);
}

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

// Forks stay where they are, for others to take; what lies in the line is taken from there only by halves.
void pool_core::leave_as_caller() noexcept {
  seat& mine = *seats_.back();
  call_hook(options_.on_stop, mine);
  while (job* const work = mine.line.pop()) inject(*work);
  go();
  mine.asleep.begins(nanoseconds_now());
  this_worker().of_pool = callers_before_;
  {
    const std::lock_guard guard{callers_lock_};
    callers_place_taken_ = false;
    callers_turn_.notify_all();
  }
  drop();
}

// By a caller, of a pool without a thread of its own that is closed.
void pool_core::run_the_rest() noexcept {
  worker& here = this_worker();
  while (!has_ended())
    if (job* const work = next(*seats_.back()); work != nullptr) run_one(here, *seats_.back(), *work);
}

// Such a pool's end, by who has no place in it.
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

// ---- posting --------------------------------------------------------------------------------------------------------------

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

// By a worker of one's own, where something lies in its slot or waits for all workers: that goes before. Where more waits than
// is taken at once, the only worker puts the job behind all of it: what is taken from there goes behind the line, too, so
// the order is that of the posts.
[[gnu::noinline]] void pool_core::post_behind_all(pool_worker& of, job& work) noexcept {
  seat& mine = static_cast<seat&>(of);
  pool_core& core = *mine.of;
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

// The line is full: its newest half goes to where all take from, and then `work`, which came last.
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

// They are linked, the newest first.
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
  seats_.front()->call();
}

// False: it has none.
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

// Where there is no memory for its rank, it comes in turn.
void pool_core::put_ranked(job& work, unsigned priority, std::int64_t deadline) noexcept {
  ranked_jobs<job>& queue = priority <= middle() ? before_ : after_;
  if (!queue.put(work, priority, deadline)) inject(work);
  seats_.front()->call();
}

void pool_core::own_executor::post(job& work) noexcept { of->of->post_to(*of, work); }

// For one worker alone. What it posts for itself, it finds before it sleeps.
void pool_core::post_to(seat& one, job& work) noexcept {
  worker& here = this_worker();
  if (here.of_pool == &one) {
    of_its_own(one);  // they were there before
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

// ---- a worker's turn --------------------------------------------------------------------------------------------------------

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

// The near ones before the others, and among those as near, any one first. Who pauses does not even look, since that takes
// the line of the cache that they write from those that work.
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
  if (age_frame_memory()) until = std::min(until, std::chrono::steady_clock::now() + milliseconds{1000});
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

// ---- where jobs come from ---------------------------------------------------------------------------------------------------

job* pool_core::take_own(seat& mine) noexcept {
  of_its_own(mine);  // also where some are kept: a job that posts itself again would come before these for ever
  return mine.kept.pop();
}

// What others have posted for it alone.
inline void pool_core::of_its_own(seat& mine) noexcept {
  if (mine.posted.empty()) return;
  for (job* one = mine.posted.take(); one != nullptr;) {
    job* const later = one->next;
    mine.kept.push(*one);
    mine.taken_up.add();
    one = later;
  }
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

// Every now and then, although there are jobs here: what waits at another worker that is at one job for long. Each is looked
// at twice, and between these must have come on. All others may be busy, so that none watches.
job* pool_core::take_from_stuck(seat& mine) noexcept {
  seat& other = *mine.others[mine.looks / (2 * look_at_others_every) % mine.others.size()];
  const std::uint64_t before = std::exchange(mine.jobs_of_other, other.jobs.get());
  const bool again = mine.looks % (2 * look_at_others_every) != 0;
  return again && before == mine.jobs_of_other ? rob(mine, other, true) : nullptr;
}

job* pool_core::rob_watched(seat& mine, seat& victim, bool desperate) noexcept {
  // What it does next is taken only if it has got nowhere since the watcher's last look.
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
  return keep_rest(mine, some, count);
}

// Null: somebody else was faster.
job* pool_core::take_fork(seat& mine, seat& victim) noexcept {
  const std::uint64_t before = nanoseconds_now();
  job* one;
  if (victim.forks.steal(one) != theft::done) return nullptr;
  mine.pace.took(before, nanoseconds_now());
  mine.steals.add();
  return one;
}

// The first of them; the others go into the line.
job* pool_core::keep_rest(seat& mine, job** jobs, std::size_t count) noexcept {
  for (std::size_t i = 1; i != count; ++i)
    if (!mine.line.push(*jobs[i])) inject(*jobs[i]);
  if (count > 1 || !injected_.empty()) mine.call();
  return jobs[0];
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
