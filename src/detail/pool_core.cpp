#include "detail/pool_core.hpp"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <weft/detail/root.hpp>
#include <weft/error.hpp>

#include "detail/fence.hpp"
#include "detail/processors.hpp"
#include "detail/spin.hpp"

namespace weft::detail {
namespace {

using std::chrono::milliseconds;

constexpr std::uint32_t look_outside_every = 61;  // jobs; prime, so that it does not beat with what programs do
constexpr milliseconds watch_every{5};

constexpr const char* posted_too_late = "a job was posted to a pool that has shut down: its task would wait for ever";

constinit std::atomic<std::uint32_t> forks_of_the_process{0};  // alone in its process when it changes

void count_forks() noexcept {
  static const bool once = ::pthread_atfork(nullptr, nullptr, [] {
                             forks_of_the_process.fetch_add(1, std::memory_order_relaxed);  // as declared
                           }) == 0;
  static_cast<void>(once);
}

std::uint32_t next_random(std::uint32_t& state) noexcept {
  state ^= state << 13, state ^= state >> 17, state ^= state << 5;
  return state;
}

}  // namespace

// ---- begin and end ------------------------------------------------------------------------------------------------------

pool_core::pool_core(const pool_options& options)
    : idle_{options.threads},
      patience_{options.threads <= available_processors() && options.threads > 1 ? 40u : 2u},
      forks_before_{forks_of_the_process.load(std::memory_order_relaxed)} {  // as declared
  for (unsigned i = 0; i != options.threads; ++i) seats_.push_back(std::make_unique<seat>(*this, i));
}

pool_core* pool_core::make(const pool_options& options) {
  prepare_fences();
  count_forks();
  pool_options mine = options;
  if (mine.threads == 0) mine.threads = available_processors();
  WEFT_EXPECTS(mine.threads <= 16'384, "a pool of more than 16384 threads was asked for");
  auto* core = new pool_core{mine};
  if (const int refused = core->start_threads(mine.name != nullptr ? mine.name : "weft"); refused != 0) {
    core->drop();
    throw error{std::error_code{refused, std::generic_category()}, "start the threads of a pool"};
  }
  return core;
}

// All or none: they wait at the gate for each other. Signals of the process are for the program's own threads.
int pool_core::start_threads(const char* name) noexcept {
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  int refused = 0;
  std::size_t started = 0;
  while (started != seats_.size()) {
    seat& one = *seats_[started];
    holders_.fetch_add(1, std::memory_order_relaxed);  // whoever takes it away has the edge
    refused = ::pthread_create(
        &one.thread, nullptr,
        [](void* argument) -> void* {
          seat& mine = *static_cast<seat*>(argument);
          mine.of->run(mine);
          return nullptr;
        },
        &one);
    if (refused != 0) {
      holders_.fetch_sub(1, std::memory_order_relaxed);  // of the thread that there is not
      break;
    }
    char number[8], full[16];
    const int digits = std::snprintf(number, sizeof number, "-%zu", started);
    std::snprintf(full, sizeof full, "%.*s%s", 15 - digits, name, number);
    ::pthread_setname_np(one.thread, full);
    ++started;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  gate_.store(refused == 0 ? gate::open : gate::shut, std::memory_order_release);  // -> gate
  gate_.notify_all();
  if (refused != 0)
    for (std::size_t i = 0; i != started; ++i) ::pthread_join(seats_[i]->thread, nullptr);
  return refused;
}

void pool_core::shut_down(pool_shutdown how) noexcept {
  if (is_forked()) return;
  auto expected = state::open;
  const auto wanted = how == pool_shutdown::cancel ? state::cancelling : state::draining;
  if (!state_.compare_exchange_strong(expected, wanted, std::memory_order_relaxed, std::memory_order_relaxed) &&
      expected == state::draining && wanted == state::cancelling)
    state_.compare_exchange_strong(expected, wanted, std::memory_order_relaxed, std::memory_order_relaxed);
  heavy_fence();  // who enters the idle set last sees it, or is in there already
  if (idler* one = idle_.pick_any(); one != nullptr) wake(*one);
  if (!is_inside()) join_threads();
}

void pool_core::join_threads() noexcept {
  if (joined_) return;
  joined_ = true;
  for (const auto& one : seats_) ::pthread_join(one->thread, nullptr);
}

void pool_core::release() noexcept {
  if (is_forked()) return;  // its threads, and what they held, stayed behind
  shut_down(pool_shutdown::drain);
  if (!joined_)  // on one of its threads
    for (const auto& one : seats_) ::pthread_detach(one->thread);
  wait_for_posters(this);
  drop();
}

void pool_core::drop() noexcept {
  if (holders_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;  // -> gone, <- gone
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

// ---- posting --------------------------------------------------------------------------------------------------------------

void pool_core::post(job& work) noexcept {
  pool_worker* const here = this_worker().of_pool;
  if (here == nullptr || here->home != this) return post_from_outside(work);
  seat& mine = static_cast<seat&>(*here);
  bool first;
  if (job* before = mine.line.push_next(work, first); before != nullptr) [[unlikely]]
    return make_room(mine, *before);
  mine.call(first);
}

void pool_core::post_behind(job& work) noexcept {
  pool_worker* const here = this_worker().of_pool;
  if (here == nullptr || here->home != this) return post_from_outside(work);
  seat& mine = static_cast<seat&>(*here);
  if (!mine.line.push(work)) [[unlikely]]
    return make_room(mine, work);
  mine.call();
}

// The line is full: its newest half goes to where all take from, and then `work`, which came last.
[[gnu::noinline]] void pool_core::make_room(seat& mine, job& work) noexcept {
  job* oldest = nullptr;
  job* const newest = mine.line.spill(oldest);
  work.next = newest;
  injected_.put(work, *oldest);
  mine.call();
}

void pool_core::post_from_outside(job& work) noexcept {
  expect_not_forked();
  worker& here = this_worker();
  const void* const outer = here.posting_to.load(std::memory_order_relaxed);              // the thread's own
  here.posting_to.store(this, std::memory_order_relaxed);                                 // the job carries it
  WEFT_EXPECTS(state_.load(std::memory_order_relaxed) != state::ended, posted_too_late);  // as declared
  injected_.put(work);
  seats_.front()->call();
  here.posting_to.store(outer, std::memory_order_release);  // -> posted: the pool may be gone from here on
}

[[gnu::noinline]] void pool_core::wake(idler& one) noexcept {
  auto& sleeper = static_cast<seat&>(one);
  sleeper.of->expect_not_forked();
  sleeper.sleeps.wake();
}

// ---- a worker's turn --------------------------------------------------------------------------------------------------------

void pool_core::run(seat& mine) noexcept {
  gate_.wait(gate::closed, std::memory_order_relaxed);        // the load below has the edge
  if (gate_.load(std::memory_order_acquire) == gate::open) {  // <- gate
    worker& here = this_worker();
    here.of_pool = &mine;
    while (job* work = next(mine)) run_one(mine, *work);
    here.of_pool = nullptr;
  }
  drop();
}

void pool_core::run_one(seat& mine, job& work) noexcept {
  mine.jobs.add();
  if (state_.load(std::memory_order_relaxed) == state::cancelling) [[unlikely]]  // seen at some time
    root::tell_to_stop(work);
  work.run(work);  // it may be gone
}

void pool_core::tell_if_cancelling(const executor& below, job& work) noexcept {
  const pool_worker* const mine = this_worker().of_pool;
  if (mine == nullptr || mine->home != &below) return;
  if (static_cast<const seat*>(mine)->of->state_.load(std::memory_order_relaxed) == state::cancelling)  // as above
    root::tell_to_stop(work);
}

// Null: the pool has ended.
job* pool_core::next(seat& mine) noexcept {
  if (++mine.ticks % look_outside_every == 0) [[unlikely]]
    if (job* work = look_outside(mine); work != nullptr) return work;
  if (job* work = mine.forks.pop(); work != nullptr) return work;
  if (job* work = mine.line.pop(); work != nullptr) return work;
  return look_elsewhere(mine);
}

// Every now and then, although there are jobs here: what else there is, so that nothing waits for ever.
[[gnu::noinline]] job* pool_core::look_outside(seat& mine) noexcept {
  mine.sleeps.poll();
  if (job* work = take_injected(mine); work != nullptr) return work;
  return mine.line.pop();
}

[[gnu::noinline]] job* pool_core::look_elsewhere(seat& mine) noexcept {
  expect_not_forked();
  bool searches = idle_.start_search(), desperate = false;
  for (;;) {
    if (searches) {
      if (job* work = search(mine, desperate); work != nullptr) {
        if (idle_.stop_search()) {
          heavy_fence();
          if (any_job()) mine.call();
        }
        return work;
      }
    }
    if (!sleep(mine, searches, desperate)) return nullptr;
    searches = true;
  }
}

job* pool_core::search(seat& mine, bool desperate) noexcept {
  for (unsigned round = 0; round != patience_; ++round) {
    if (mine.sleeps.poll())
      if (job* work = mine.line.pop(); work != nullptr) return work;
    if (job* work = take_injected(mine); work != nullptr) return work;
    const std::size_t from = next_random(mine.random) % seats_.size();
    for (std::size_t i = 0; i != seats_.size(); ++i) {
      seat& victim = *seats_[(from + i) % seats_.size()];
      if (&victim == &mine) continue;
      if (job* work = rob(mine, victim, desperate); work != nullptr) return work;
    }
    for (int i = 0; i != 8; ++i) spin_wait::pause();
  }
  return nullptr;
}

// True: to be woken is to search. False: the pool has ended.
bool pool_core::sleep(seat& mine, bool searched, bool& desperate) noexcept {
  parker& bed = mine.sleeps;
  bed.prepare();
  const idle_set::entered how = idle_.enter(mine, searched);
  heavy_fence();
  const state now = state_.load(std::memory_order_relaxed);  // as declared
  if (now == state::ended) return false;
  if (any_job()) {
    idle_.leave(mine);
    spin_wait{}.once();
    return true;
  }
  if (now != state::open && how == idle_set::entered::last && idle_.close_since(mine)) {
    end();
    return false;
  }
  mine.parks.add();
  const auto most = how == idle_set::entered::watches ? watch_every
                    : age_frame_memory()              ? milliseconds{1000}
                                                      : milliseconds::max();
  bed.commit(most == milliseconds::max() ? parker::time_point::max() : std::chrono::steady_clock::now() + most);
  desperate = idle_.leave(mine) && how == idle_set::entered::watches;
  if (!desperate) mine.wakes.add();
  return state_.load(std::memory_order_relaxed) != state::ended;  // as declared
}

// By the last worker, in the idle set, which is closed.
void pool_core::end() noexcept {
  state_.store(state::ended, std::memory_order_relaxed);  // as declared
  heavy_fence();
  WEFT_EXPECTS(!any_job(), posted_too_late);
  while (idler* one = idle_.pick_any()) wake(*one);
}

// ---- where jobs come from ---------------------------------------------------------------------------------------------------

job* pool_core::take_injected(seat& mine) noexcept {
  job* some[decltype(mine.line)::most_stolen];
  const std::size_t count = injected_.take(some, std::size(some), seats_.size());
  if (count == 0) return nullptr;
  mine.injected.add(count);
  return keep_rest(mine, some, count);
}

job* pool_core::rob(seat& mine, seat& victim, bool desperate) noexcept {
  job* one;
  if (victim.forks.steal(one) == theft::done) {
    mine.steals.add();
    return one;
  }
  // What it does next is taken only if it has got nowhere since the watcher's last look.
  bool stuck = false;
  if (desperate) {
    const std::uint64_t jobs = victim.jobs.get();
    stuck = victim.jobs_when_watched.exchange(jobs, std::memory_order_relaxed) == jobs;  // as declared
  }
  if (victim.line.in_line() == 0 && !(stuck && !victim.line.empty())) return nullptr;
  job* some[decltype(mine.line)::most_stolen];
  const std::size_t count = victim.line.steal(some, stuck);
  if (count == 0) {
    mine.failed_steals.add();
    return nullptr;
  }
  mine.steals.add(count);
  return keep_rest(mine, some, count);
}

// The first of them; the others go into the line.
job* pool_core::keep_rest(seat& mine, job** jobs, std::size_t count) noexcept {
  for (std::size_t i = 1; i != count; ++i)
    if (!mine.line.push(*jobs[i])) injected_.put(*jobs[i]);
  if (count > 1 || !injected_.empty()) mine.call();
  return jobs[0];
}

// The truth behind a heavy_fence(), for what was put anywhere before a light_fence().
bool pool_core::any_job() const noexcept {
  if (!injected_.empty()) return true;
  return std::ranges::any_of(seats_, [](const auto& one) { return !one->forks.empty() || one->line.in_line() != 0; });
}

}  // namespace weft::detail
