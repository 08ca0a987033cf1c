#include <weft/pool.hpp>

#include "detail/pool_core.hpp"
#include "detail/processors.hpp"
#include "detail/strand_core.hpp"

namespace weft {

unsigned available_processors() { return detail::processors_of("/proc/self/cgroup", "/sys/fs/cgroup"); }

pool::pool(pool_options options) : core_{detail::pool_core::make(options)} {}
pool::~pool() { core_->release(); }

executor& pool::executor() const noexcept { return *core_; }
unsigned pool::size() const noexcept { return core_->size(); }
bool pool::is_inside() const noexcept { return core_->is_inside(); }
unsigned pool::worker_id() const noexcept { return core_->worker_id(); }
void pool::shutdown(pool_shutdown how) noexcept { core_->shut_down(how); }

executor& pool::worker(unsigned which) const noexcept {
  WEFT_EXPECTS(which < size(), "a worker was asked for that the pool does not have: they are numbered from 0");
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
    all.from_outside += one.from_outside;
    all.steals += one.steals;
    all.failed_steals += one.failed_steals;
    all.sleeps += one.sleeps;
    all.wakes += one.wakes;
    all.waiting += one.waiting;
    all.asleep += one.asleep;
    all.awake += one.awake;
  }
  return all;
}

strand::strand(weft::executor& below) : core_{new detail::strand_core{below}} {}
strand::~strand() { core_->release(); }

void strand::post(job& work) noexcept { core_->post(work); }
bool strand::is_inside() const noexcept { return core_->is_inside(); }

}  // namespace weft
