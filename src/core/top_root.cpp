#include <weft/detail/core/top_root.hpp>

#include <span>

#include "core/causes.hpp"
#include "core/end_causes.hpp"
#include "core/turns.hpp"
#include "core/worker.hpp"
#include "sched/sleeping_inbox.hpp"

namespace weft::detail {

top_root::top_root(root_kind kind, const weft::env* environment, end_function done) noexcept
    : root{environment, nullptr, done}, kind_{kind} {
  if (kind != root_kind::shared) list();
}

top_root::~top_root() { unlist(); }

void top_root::stop_by(stop_token told) noexcept {
  const stop_cause& why = *told.cause();
  record(event_kind::stop, why.where.line(), as_number(this), as_number(why.reason));
  request_stop();  // it may be gone after this line
}

template class sleeping_inbox<job>;

void awaited_root::throw_stopped_by(std::span<const stop_cause> part) const {
  if (own_env_.stop.stop_requested()) detail::throw_stopped(own_env_.stop);
  if (!stop_requested()) throw stopped{part};
  const stop_cause why = was_told_by(told_by_executor) ? cause_by_executor() : stopped_by_nobody();
  throw stopped{{&why, 1}};
}

blocking_root::blocking_root(stop_token stop) noexcept : awaited_root{root_kind::thread, this, stop, ended} {
  WEFT_EXPECTS(current_root() == nullptr,
               "sync_wait was called inside a task, where it would block a worker: co_await it");
}

void blocking_root::ended(root& self, bool stopped) noexcept {
  auto& mine = static_cast<blocking_root&>(self);
  mine.over_ = true;
  mine.stopped_ = stopped;
}

// Its end was on this thread, where its causes are noted until something else ends stopped.
void blocking_root::throw_stopped() const { throw_stopped_by(causes_of_end(*this)); }

bool blocking_root::run() noexcept {
  auto stop_it = [this] { stop_by(own_env_.stop); };
  const stop_callback<decltype(stop_it)&> stop{own_env_.stop, stop_it};
  run_here();
  while (!over_)
    for (job* work = take_all(); work != nullptr;) {
      job* later = work->next;
      work->run(*work);  // `work` may be gone
      work = later;
    }
  return !stopped_;
}

executor* blocking_root::lasting_executor(const root& self) noexcept {
  executor* const its = self.env != nullptr ? self.env->executor : nullptr;
  for (const root* one = &self; one != nullptr; one = one->parent)
    if (one->ends_by(ended) && its == static_cast<const blocking_root*>(one)) return nullptr;
  return its;
}

// Takes all posted jobs, and sleeps until there is one. Null: it has run an inlined job instead, which may have ended the
// wait.
job* blocking_root::take_all() noexcept {
  for (;;) {
    if (job* work = posted_.take(); work != nullptr) return work;
    if (run_inlined(this_worker())) return nullptr;
    record(event_kind::sleep, no_worker);
    posted_.sleep(age_frame_memory() ? std::chrono::seconds{1} : std::chrono::seconds{});
    job* const work = posted_.take();
    record(event_kind::wake_up, work != nullptr ? 1 : 0);
    if (work != nullptr) return work;
  }
}

void blocking_root::post(job& work) noexcept { posted_.put(work); }

}  // namespace weft::detail
