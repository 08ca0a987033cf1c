#include <weft/detail/core/root.hpp>

#include "core/worker.hpp"

namespace weft {

const void* detail::find_binding(const void* key) noexcept {
  const binding* const innermost = current_env().locals;
  return innermost != nullptr ? innermost->find(key) : nullptr;
}

const env& current_env() noexcept {
  static constinit const env none{};
  const detail::root* running = detail::this_worker().current;
  return running != nullptr && running->env != nullptr ? *running->env : none;
}

namespace detail {

// ---- root -----------------------------------------------------------------------------------------------------------------

root::root(const weft::env* environment, root* part_of, end_function done) noexcept
    : sleeper{woken}, env{environment}, parent{part_of}, end_{returned, stopped_at_end, nullptr, this}, done_{done} {
  run = run_job;
}

void root::tell_to_stop(job& work) noexcept {
  if (work.run != run_job) return;
  static_cast<root&>(work).told_by.fetch_or(told_by_executor, std::memory_order_relaxed);  // as declared
  static_cast<root&>(work).request_stop();
}

std::chrono::steady_clock::time_point root::deadline_of(job& work) noexcept {
  const weft::env* const its = work.run == run_job ? static_cast<root&>(work).env : nullptr;
  return its != nullptr ? its->deadline : std::chrono::steady_clock::time_point::max();
}

// The top frame may be that of a callee that has ended and is not destroyed yet. Its resume function is null.
std::coroutine_handle<> root::innermost() const noexcept {
  std::coroutine_handle<> at = top;
  while (at && !is_end(at) && static_cast<const frame*>(at.address())->resume == nullptr)
    at = promise_base::of(at).continuation;
  return at;
}

const root* root::ended_by(std::coroutine_handle<> at) noexcept {
  const auto& one = *static_cast<const frame*>(at.address());
  if (one.destroy != boundary::arrive_stopped) return nullptr;
  const auto& end = static_cast<const boundary&>(one);
  return end.stopped_here == stopped_at_end ? end.owner : nullptr;
}

bool root::stop_requested() const noexcept {
  for (const root* one = this; one != nullptr && !one->is_shielded(); one = one->parent)
    if (one->sleeper::stop_requested()) return true;
  return false;
}

// ---- foreign_frame ----------------------------------------------------------------------------------------------------------

void foreign_frame::resumed(frame* self) { static_cast<foreign_frame*>(self)->root_->schedule(); }

void foreign_frame::dropped(frame* self) {
  root& mine = *static_cast<foreign_frame*>(self)->root_;
  mine.ends_stopped = root::dropped;
  mine.schedule();
}

}  // namespace detail
}  // namespace weft
