#include <weft/pool.hpp>

#include <algorithm>

#include "pool/gone_executor.hpp"
#include "pool/pool_core.hpp"
#include "pool/processors.hpp"
#include "pool/strand_core.hpp"

namespace weft {

unsigned available_processors() { return detail::processors_of("/proc/self/cgroup", "/sys/fs/cgroup"); }

pool::pool(pool_options options) : core_{detail::pool_core::make(options)} {}
pool::~pool() { core_->release(); }

executor& pool::executor() const noexcept { return *core_; }
void pool::post_all(job* first) const noexcept { core_->post_all(first); }
unsigned pool::size() const noexcept { return core_->size(); }
bool pool::is_inside() const noexcept { return core_->is_inside(); }
unsigned pool::worker_id() const noexcept { return core_->worker_id(); }
void pool::limit_awake(unsigned threads) noexcept { core_->limit_awake(threads); }
void pool::shutdown(pool_shutdown how) noexcept { core_->shut_down(how); }

executor& pool::executor(unsigned priority) const noexcept {
  WEFT_EXPECTS(priority < core_->priorities(),
               "an executor was asked for of a priority that the pool does not have: pool_options::priorities says how "
               "many, and they are numbered from 0");
  return core_->executor_at(priority);
}

executor& pool::worker(unsigned which) const noexcept {
  WEFT_EXPECTS(which < size(), "a worker was asked for that the pool does not have: they are numbered from 0");
  WEFT_EXPECTS(
      !core_->is_for_callers(which),
      "the last worker of a pool with use_caller was asked for: no thread is there but for the time of a run(), "
      "so what is posted to it might wait for ever");
  return core_->executor_of(which);
}

pool_stats pool::stats(unsigned worker) const noexcept {
  WEFT_EXPECTS(worker < size(), "counts were asked for of a worker that the pool does not have");
  return core_->stats(worker);
}

pool_stats pool::stats() const noexcept {
  pool_stats all;
  for (unsigned i = 0; i != size(); ++i) {
    const pool_stats one = core_->stats(i);
    all.jobs += one.jobs;
    all.begun += one.begun;
    all.ended += one.ended;
    all.from_outside += one.from_outside;
    all.steals += one.steals;
    all.failed_steals += one.failed_steals;
    all.sleeps += one.sleeps;
    all.wakes += one.wakes;
    all.waiting += one.waiting;
    all.asleep += one.asleep;
    all.awake += one.awake;
  }
  all.waiting += core_->waiting_for_any();
  all.live = std::max(static_cast<std::int64_t>(all.begun - all.ended), std::int64_t{0});
  return all;
}

// ---- run ----------------------------------------------------------------------------------------------------------------

namespace detail {

pool_call::pool_call(pool_core& of, weft::executor& there, stop_token stop) noexcept
    : awaited_root{root_kind::task, &there, stop, ended}, of_{&of} {
  WEFT_EXPECTS(current_root() == nullptr,
               "run was called inside a task, where it would block a worker: co_await start_on(pool, ...)");
  WEFT_EXPECTS(!of.is_inside(), "run was called by a job on one of the pool's own threads, where it would block that");
  if (of.has_callers_place()) of.enter_as_caller(inside_);
}

pool_call::~pool_call() {
  if (inside_) of_->leave_as_caller();
}

bool pool_call::may_help() const noexcept { return of_->has_callers_place(); }

// On whatever worker; the thread that called is told by a job for it alone.
void pool_call::ended(root& self, bool stopped) noexcept {
  auto& mine = static_cast<pool_call&>(self);
  mine.stopped_ = stopped;
  if (stopped) ::new (&mine.causes_) cause_list{this_worker().ends};
  leave_root();
  mine.of_->tell_caller(mine.inside_, mine.end_.over, mine.end_);  // mine may be gone after this line
}

void pool_call::throw_stopped() const { throw_stopped_by(causes_.of_root(*this)); }

void pool_call::end_of_call::hear_of_it(job& self) noexcept { static_cast<end_of_call&>(self).over = true; }

bool pool_call::run() noexcept {
  auto stop_it = [this] { stop_by(own_env_.stop); };
  const stop_callback<decltype(stop_it)&> stop{own_env_.stop, stop_it};
  schedule();
  if (inside_ || of_->wait_as_caller(inside_, end_.over)) of_->help_until(end_.over);
  return !stopped_;
}

}  // namespace detail

// -------------------------------------------------------------------------------------------------------------------------

strand::strand(weft::executor& below) : core_{new detail::strand_core{*this, below}} {}
strand::~strand() {
  core_->release();
  detail::leave_gone_strand(*this);
}

void strand::post(job& work) noexcept { core_->post(work); }
detail::io_service* strand::io() const noexcept { return core_->below().io(); }
bool strand::is_inside() const noexcept { return core_->is_inside(); }

}  // namespace weft
