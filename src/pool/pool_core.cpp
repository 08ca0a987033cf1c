// How a pool begins and ends, and its figures. The loop of its workers is in pool_turn.cpp, posting in pool_posting.cpp,
// whom a worker robs and how in pool_stealing.cpp, the place of a thread that calls in pool_caller.cpp.
#include "pool/pool_core.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>
#include <weft/error.hpp>

#include "base/fence.hpp"
#include "base/helper_signals.hpp"
#include "core/turns.hpp"
#include "pool/processors.hpp"

namespace weft::detail {
namespace {

// Gives an error number; 0: it is pinned.
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

}  // namespace

// ---- begin and end --------------------------------------------------------------------------------------------------

// How many of the pool's own threads may be awake at first: as many as there are processors.
unsigned pool_core::first_awake(const pool_options& options, unsigned processors) noexcept {
  const unsigned callers = options.use_caller ? 1 : 0;
  return std::min(options.threads - callers, std::max(processors - callers, 1u));
}

pool_core::pool_core(const pool_options& options, unsigned processors, parkers beds)
    : parking{options.threads - (options.use_caller ? 1u : 0u), first_awake(options, processors), options.threads == 1},
      is_alone_{options.threads == 1 && !options.use_caller},
      is_ranked_{options.priorities > 1 || options.deadline_order},
      processors_{processors},
      options_{options},
      of_maker_{processor_set::here()},
      io_{beds.io},
      crowd_{own_threads(), first_awake(options, processors)},
      began_{nanoseconds_now()},
      forks_before_{forks_of_process.load(std::memory_order_relaxed)} {  // as declared
  std::snprintf(name_, sizeof name_, "%s", options.name != nullptr ? options.name : "weft");
  for (unsigned i = 0; i != options.threads; ++i) seats_.push_back(std::make_unique<seat>(*this, i, beds));
  for (unsigned i = 0; i != options.priorities; ++i) levels_.push_back(std::make_unique<level_executor>(*this, i));
  if (options.use_caller) seats_.back()->asleep.begins(began_);
}

pool_core* pool_core::make(const pool_options& options, parkers beds) {
  prepare_fences();
  count_forks();
  static_cast<void>(
      this_worker());  // so that what a process initializes once is not under way in another thread during a fork()
  pool_options mine = options;
  unsigned processors = available_processors();
  if (mine.threads == 0) mine.threads = processors;
  if (mine.spare_workers != 0) {  // what is more than may be awake is there for those that block or stand
    WEFT_EXPECTS(mine.spare_workers <= 16'384, "a pool with more than 16384 spare workers was asked for");
    processors = std::min(processors, mine.threads);
    mine.threads += mine.spare_workers;
  }
  WEFT_EXPECTS(mine.threads <= 16'384, "a pool of more than 16384 threads was asked for");
  WEFT_EXPECTS(mine.priorities >= 1 && mine.priorities <= 8, "a pool has from 1 to 8 priorities");
  std::vector<processor> places;
  if (mine.pin) places = processors_here(allowed_processors());
  std::unique_ptr<pool_core> core{new pool_core{mine, processors, beds}};
  core->know_each_other(places);
  pool_core* const started = core.release();  // the last one to drop it deletes it
  if (const int refused = started->start_threads(started->name_, places); refused != 0) {
    started->drop();
    throw error{std::error_code{refused, std::generic_category()}, "start the threads of a pool"};
  }
  enter_pool(started->place_, *started);
  return started;
}

// Starts all threads or none: they wait at the gate until all have started, or one could not be.
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
          if (mine.of->options_.pin) is_pinned_here(mine.of->of_maker_);
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
  if (how == pool_shutdown::cancel && state() != pool_state::cancelling)
    record(event_kind::stop, 0, as_number(this), as_number("a pool was shut down by cancel"));
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
  if (is_forked()) return;  // its threads, and what they held, are in the parent process
  shut_down(pool_shutdown::drain);
  goes_with_caller_ = own_threads() == 0 && is_inside();
  if (!joined_)  // release() was called on one of its threads
    for (unsigned i = 0; i != own_threads(); ++i) ::pthread_detach(seats_[i]->thread);
  wait_for_posters(this);
  drop();
}

void pool_core::drop() noexcept {
  if (!holders_.let_go()) return;
#if !defined(NDEBUG)
  expect_no_task();
#endif
  leave_pool(place_);
  delete this;
}

// Called when no thread is left, so the counts are exact.
void pool_core::expect_no_task() const noexcept {
  std::uint64_t begun = 0, ended = 0;
  for (const auto& one : seats_) begun += one->begun.get(), ended += one->ended.get();
  WEFT_EXPECTS(
      begun == ended,
      "a pool was destroyed while a task of it waits: whoever wakes that would post to what is gone. Await all "
      "that runs on a pool before it goes, in a scope or by sync_wait, or have it stopped");
}

// ---- figures ------------------------------------------------------------------------------------------

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
  const std::uint64_t ended = one.ended.get(),
                      begun = one.begun.get();        // `ended` is read first, so that it is not above `begun`
  const std::uint64_t taken_up = one.taken_up.get();  // read before `handed`
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

}  // namespace weft::detail
