// The turns of traced roots that switch to each other on a worker of a pool: the part of core/turns.hpp that each such switch
// passes, inline. Whatever is not as usual goes to the functions there.
//
// A switch takes one time stamp, at which the root is about to wait. That is the end of its turn, in the recorder and in the
// ledger, and the begin of the next turn, if that is the worker's very next job.
#pragma once

#include <cstdint>
#include <utility>
#include <weft/detail/core/root.hpp>

#include "core/turns.hpp"
#include "core/worker.hpp"
#include "sched/pool_worker.hpp"
#include "trace/event_ring.hpp"
#include "trace/probes.hpp"
#include "trace/request_trace.hpp"

namespace weft::detail {

/// Where `self` goes on.
inline std::uint64_t function_of(const root& self) noexcept {
  const std::coroutine_handle<> at = self.top;
  return at ? reinterpret_cast<std::uintptr_t>(static_cast<const frame*>(at.address())->resume) : 0;
}

/// Writes an event of a turn that is not the first one of its request on this worker: so there is a ring, or none to be had.
[[gnu::always_inline]] inline void record_turn(trace_slot& mine, std::uint64_t when, event_kind kind,
                                               std::uint16_t flags, std::uint64_t root,
                                               std::uint64_t function = 0) noexcept {
  if (event_ring* const ring = mine.ring; ring != nullptr) [[likely]]
    ring->write(when, kind, flags, mine.of, root, function);
  pass_probe(kind, flags, mine.of, root, function);
}

/// Counts what the open turn has run and is not counted yet.
[[gnu::always_inline]] inline void count_running(trace_slot& mine, std::uint64_t until) noexcept {
  const std::uint64_t from = mine.may_suspend != 0 ? mine.may_suspend : mine.began;
  if (until > from) mine.part->turns.ticks.add(until - from);
}

/// `self` is about to wait.
[[gnu::always_inline]] inline void may_suspend(worker& here, root& self) noexcept {
  trace_slot& mine = here.traces;
  if (mine.open != &self) return;
  const std::uint64_t now = stamp_now_in_leaf();
  count_running(mine, now);
  mine.may_suspend = now;
  mine.has_woken = false;
  self.traced_since = now;
}

/// begin_turn() of a job that a worker of a pool runs.
[[gnu::always_inline]] inline void begin_queued_turn(worker& here, root& self, request_trace& of) noexcept {
  trace_slot& mine = here.traces;
  pool_worker& pool = *here.of_pool;
  if (pool.jobs.get() != pool.next_turn) [[unlikely]]
    return begin_turn(here, self, of, true);
  if (mine.of != of.number()) [[unlikely]]
    return begin_turn(here, self, of, true);
  if (self.before_wait != root::is_traced) [[unlikely]]
    return begin_turn(here, self, of, true);
  const std::uint64_t now = mine.ended_at;
  trace_part& part = *mine.part;
  pool.next_turn = 0;
  part.turns.times.add();
  if (now > self.traced_since) part.queued.add(now - self.traced_since);
  self.traced_since = now;
  mine.began = now;
  mine.open = &self;
  record_turn(mine, now, event_kind::turn_begins, 0, as_number(&self), function_of(self));
}

/// end_turn() of the same.
[[gnu::always_inline]] inline void end_queued_turn(worker& here) noexcept {
  trace_slot& mine = here.traces;
  const std::uint64_t when = mine.may_suspend;
  if (when == 0) [[unlikely]]
    return end_turn(here);
  mine.may_suspend = 0;
  record_turn(mine, when, event_kind::turn_ends, 0, as_number(std::exchange(mine.open, nullptr)));
  if (mine.has_woken) return;
  mine.ended_at = when;
  here.of_pool->next_turn = here.of_pool->jobs.get() + 1;
}

}  // namespace weft::detail
