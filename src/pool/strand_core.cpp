#include "pool/strand_core.hpp"

#include <utility>
#include <weft/detail/base/config.hpp>

#include "base/thread_id.hpp"
#include "core/worker.hpp"
#include "pool/pool_core.hpp"

namespace weft::detail {
namespace {

constexpr const char* destroyed_full = "a strand was destroyed with jobs inside: their tasks would wait for ever";

}  // namespace

bool strand_core::is_inside() const noexcept {
  return server_.load(std::memory_order_relaxed) == this_thread_id();  // as declared
}

void strand_core::run_one(job& work) noexcept {
  worker& here = this_worker();
  const bool is_above_pool = pool_core::look_at_job_above(here, *below_, work);
  const executor* const outer = std::exchange(here.pools.strand, is_above_pool ? itself_ : nullptr);
  server_.store(this_thread_id(), std::memory_order_relaxed);  // as declared
  work.run(work);                                              // it may be gone
  server_.store(0, std::memory_order_relaxed);                 // as declared
  here.pools.strand = outer;
}

void strand_core::serve(job& turn) noexcept {
  auto& mine = static_cast<strand_core&>(turn);
  for (unsigned served = 0;;) {
    job* work = mine.taken_.load(std::memory_order_relaxed);                                      // as declared
    if (work == nullptr) mine.taken_.store(work = mine.jobs_.take(), std::memory_order_relaxed);  // as declared
    for (; work != nullptr; work = mine.taken_.load(std::memory_order_relaxed)) {                 // as declared
      if (served++ == most_in_a_row) return mine.below_->post_behind(mine);                       // it may be gone
      mine.taken_.store(work->next, std::memory_order_relaxed);                                   // as declared
      mine.run_one(*work);
    }
    switch (mine.jobs_.leave()) {
      case serial_queue<job>::left::idle: return;  // it may be gone
      case serial_queue<job>::left::more: break;
      case serial_queue<job>::left::last: delete &mine; return;
    }
  }
}

void strand_core::release() noexcept {
  WEFT_EXPECTS(taken_.load(std::memory_order_relaxed) == nullptr, destroyed_full);  // as declared
  switch (jobs_.abandon()) {
    case serial_queue<job>::abandoned::free: delete this; return;
    case serial_queue<job>::abandoned::served: return;
    case serial_queue<job>::abandoned::full: fail(destroyed_full);
  }
}

}  // namespace weft::detail
