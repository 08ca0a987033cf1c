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
void pool::shutdown(pool_shutdown how) noexcept { core_->shut_down(how); }

strand::strand(weft::executor& below) : core_{new detail::strand_core{below}} {}
strand::~strand() { core_->release(); }

void strand::post(job& work) noexcept { core_->post(work); }
bool strand::is_inside() const noexcept { return core_->is_inside(); }

}  // namespace weft
