#include "core/turns.hpp"

#include <utility>
#include <weft/detail/core/root.hpp>

#include "core/claim.hpp"
#include "sched/pool_worker.hpp"
#include "trace/probes.hpp"
#include "trace/request_trace.hpp"

namespace weft::detail {
namespace {

std::uint64_t as_address(void (*function)(frame*)) noexcept { return reinterpret_cast<std::uintptr_t>(function); }

// Where it goes on.
std::uint64_t function_of(const root& self) noexcept {
  const std::coroutine_handle<> at = self.top;
  return at ? as_address(static_cast<const frame*>(at.address())->resume) : 0;
}

// The time of the next turn's begin. That of the last turn's end, if this is the very next job.
std::uint64_t begin_of_turn(worker& here) noexcept {
  trace_slot& mine = here.traces;
  const std::uint64_t ended_at = std::exchange(mine.ended_at, 0);
  if (ended_at != 0 && here.of_pool != nullptr && here.of_pool->jobs.get() == mine.jobs_then + 1 &&
      !here.of_pool->has_looked_around)
    return ended_at;
  return stamp_now();
}

void count_running(trace_slot& mine, std::uint64_t until) noexcept {
  if (mine.part != nullptr && until > mine.counted_from) mine.part->turns.ticks.add(until - mine.counted_from);
  mine.counted_from = until;
}

void write_end(worker& here, std::uint64_t when, std::uint16_t flags) noexcept {
  trace_slot& mine = here.traces;
  record_at(here, when, event_kind::turn_ends, mine.of, as_number(std::exchange(mine.open, nullptr)), 0, flags);
}

}  // namespace

[[gnu::noinline]] static event_ring* make_ring_of(worker& here) noexcept {
  if (here.traces.has_no_ring) return nullptr;
  event_ring* const ring = make_ring();
  here.traces.ring = ring;
  here.traces.has_no_ring = ring == nullptr;
  return ring;
}

event_ring* ring_of(worker& here) noexcept {
  return here.traces.ring != nullptr ? here.traces.ring : make_ring_of(here);
}

void record_at(worker& here, std::uint64_t when, event_kind kind, std::uint32_t number, std::uint64_t first,
               std::uint64_t second, std::uint16_t flags) noexcept {
  if (event_ring* const ring = ring_of(here)) ring->write(when, kind, flags, number, first, second);
  pass_probe(kind, flags, number, first, second);
}

void begin_turn(worker& here, root& self, request_trace& of, bool from_queue) noexcept {
  trace_slot& mine = here.traces;
  if (mine.open == &self && mine.may_suspend == 0) return;  // it runs on, with another environment, say
  std::uint64_t now;
  if (mine.open != nullptr && mine.may_suspend != 0) {
    now = stamp_now();
    write_end(here, mine.may_suspend, 0);
  } else {
    now = begin_of_turn(here);
    if (mine.open != nullptr) write_end(here, now, turn_flags::interrupted);
  }
  if (mine.of != of.number()) {
    mine.of = of.number();
    mine.part = of.part_of(&here.frames);
  }
  std::uint16_t flags = 0;
  if ((self.before_wait & root::is_traced) == 0) {
    flags = turn_flags::first;
    if (self.parent != nullptr)
      record_at(here, now, event_kind::fork, mine.of, as_number(&self), as_number(self.parent));
  }
  if (mine.part != nullptr) {
    mine.part->turns.times.add();
    if ((self.before_wait & (root::is_traced | root::was_posted)) != 0 && now > self.traced_since) {
      if (from_queue)
        mine.part->queued.add(now - self.traced_since);
      else
        mine.part->waited("children that run at once", now - self.traced_since);
    }
  }
  self.before_wait = static_cast<std::uint8_t>((self.before_wait & ~root::was_posted) | root::is_traced);
  self.traced_since = now;
  mine.open = &self;
  mine.may_suspend = 0;
  mine.has_woken = false;
  mine.counted_from = now;
  record_at(here, now, event_kind::turn_begins, mine.of, as_number(&self), function_of(self), flags);
}

void end_turn(worker& here) noexcept {
  trace_slot& mine = here.traces;
  if (mine.open == nullptr) return;
  const bool waits = mine.may_suspend != 0;
  const std::uint64_t when = waits ? std::exchange(mine.may_suspend, 0) : stamp_now();
  write_end(here, when, waits ? 0 : turn_flags::ended);
  if (here.of_pool == nullptr || mine.has_woken) return;
  mine.ended_at = when;
  mine.jobs_then = here.of_pool->jobs.get();
  here.of_pool->has_looked_around = false;
}

void end_turn_of(worker& here, const root& self, std::uint16_t flags) noexcept {
  trace_slot& mine = here.traces;
  if (mine.open != &self) return;
  if (const std::uint64_t waits = std::exchange(mine.may_suspend, 0); waits != 0) return write_end(here, waits, flags);
  const std::uint64_t now = stamp_now();
  count_running(mine, now);
  write_end(here, now, flags);
}

void count_running_up_to_now(worker& here) noexcept {
  if (here.traces.open != nullptr && here.traces.open == here.current) count_running(here.traces, stamp_now());
}

void count_io_of_trace(worker& here, std::size_t bytes) noexcept {
  request_trace* const of = here.frames.memory->trace();
  if (of == nullptr) return;
  if (trace_part* const part = of->part_of(&here.frames)) {
    part->io_operations.add();
    part->io_bytes.add(bytes);
  }
}

void may_suspend(worker& here, root& self) noexcept {
  trace_slot& mine = here.traces;
  if (mine.open != &self) return;
  const std::uint64_t now = stamp_now();
  mine.may_suspend = now;
  mine.has_woken = false;
  self.traced_since = now;
  count_running(mine, now);
}

void note_wait_of_borrower(worker& here, root& self, bool is_old) noexcept {
  const std::uint64_t now = stamp_now();
  if (!is_old) record_at(here, now, event_kind::fork, here.traces.of, as_number(&self), as_number(self.parent));
  self.traced_since = now;
  self.before_wait = root::is_traced;
}

void has_woken(worker& here, root& self) noexcept {
  request_trace* const of = self.env != nullptr && self.env->frames != nullptr ? self.env->frames->trace() : nullptr;
  if (of == nullptr) return;
  const std::uint64_t now = stamp_now();
  const char* const kind = stop_here::wait_of(self).kind();
  here.traces.has_woken = true;
  if (trace_part* const part = of->number() == here.traces.of ? here.traces.part : of->part_of(&here.frames))
    if (now > self.traced_since) part->waited(kind, now - self.traced_since);
  self.traced_since = now;
  record_at(here, now, event_kind::wake, of->number(), as_number(&self), as_number(kind));
}

void outer_turn::go_on(worker& here) const noexcept {
  trace_slot& mine = here.traces;
  if (mine.open != nullptr && mine.open == open && mine.may_suspend == 0) return;  // nothing traced has run inside
  end_turn(here);
  mine.ended_at = 0;
  if (open == nullptr) return;
  const std::uint64_t now = stamp_now();
  mine.open = open;
  mine.part = part;
  mine.of = of;
  mine.counted_from = now;
  mine.has_woken = false;
  record_at(here, now, event_kind::turn_begins, of, as_number(open), 0, turn_flags::goes_on);
}

}  // namespace weft::detail
