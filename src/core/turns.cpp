#include "core/turns.hpp"

#include <utility>
#include <weft/detail/core/root.hpp>

#include "core/claim.hpp"
#include "core/turn_switch.hpp"
#include "sched/pool_worker.hpp"
#include "trace/probes.hpp"
#include "trace/request_trace.hpp"

namespace weft::detail {
namespace {

// What is counted of a request for which a worker has no memory, and nobody reads.
constinit trace_part nobodys_part;

// The time of the next turn's begin. That of the last turn's end, if this is the very next job, from its begin on.
std::uint64_t begin_of_turn(worker& here, bool from_queue) noexcept {
  const std::uint64_t next = here.of_pool != nullptr ? std::exchange(here.of_pool->next_turn, 0) : 0;
  if (from_queue && next != 0 && here.of_pool->jobs.get() == next) return here.traces.ended_at;
  return stamp_now();
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
    now = begin_of_turn(here, from_queue);
    if (mine.open != nullptr) write_end(here, now, turn_flags::interrupted);
  }
  if (mine.of != of.number()) {
    mine.of = of.number();
    mine.part = of.part_of(&here.frames);
    if (mine.part == nullptr) mine.part = &nobodys_part;
  }
  std::uint16_t flags = 0;
  if ((self.before_wait & root::is_traced) == 0) {
    flags = turn_flags::first;
    if (self.parent != nullptr)
      record_at(here, now, event_kind::fork, mine.of, as_number(&self), as_number(self.parent));
  }
  mine.part->turns.times.add();
  if ((self.before_wait & (root::is_traced | root::was_posted)) != 0 && now > self.traced_since) {
    if (from_queue)
      mine.part->queued.add(now - self.traced_since);
    else
      mine.part->waited("children that run at once", now - self.traced_since);
  }
  self.before_wait = static_cast<std::uint8_t>((self.before_wait & ~root::was_posted) | root::is_traced);
  self.traced_since = now;
  mine.open = &self;
  mine.may_suspend = 0;
  mine.began = now;
  record_at(here, now, event_kind::turn_begins, mine.of, as_number(&self), function_of(self), flags);
}

void end_turn(worker& here) noexcept {
  trace_slot& mine = here.traces;
  if (mine.open == nullptr) return;
  const bool waits = mine.may_suspend != 0;
  const std::uint64_t when = waits ? std::exchange(mine.may_suspend, 0) : stamp_now();
  write_end(here, when, waits ? 0 : turn_flags::ended);
  if (here.of_pool == nullptr || (waits && mine.has_woken)) return;
  mine.ended_at = when;
  here.of_pool->next_turn = here.of_pool->jobs.get() + 1;
}

void end_turn_of(worker& here, const root& self, std::uint16_t flags) noexcept {
  trace_slot& mine = here.traces;
  if (mine.open != &self) return;
  if (const std::uint64_t waits = std::exchange(mine.may_suspend, 0); waits != 0) return write_end(here, waits, flags);
  const std::uint64_t now = stamp_now();
  count_running(mine, now);
  write_end(here, now, flags);
}

std::uint64_t running_not_counted(const worker& here) noexcept {
  const trace_slot& mine = here.traces;
  if (mine.open == nullptr || mine.open != here.current) return 0;
  const std::uint64_t from = mine.may_suspend != 0 ? mine.may_suspend : mine.began, now = stamp_now();
  return now > from ? now - from : 0;
}

void count_io_of_trace(worker& here, std::size_t bytes) noexcept {
  request_trace* const of = here.frames.memory->trace();
  if (of == nullptr) return;
  if (trace_part* const part = of->part_of(&here.frames)) {
    part->io_operations.add();
    part->io_bytes.add(bytes);
  }
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
  if (here.of_pool != nullptr) here.of_pool->next_turn = 0;
  if (open == nullptr) return;
  const std::uint64_t now = stamp_now();
  mine.open = open;
  mine.part = part;
  mine.of = of;
  mine.began = now;
  record_at(here, now, event_kind::turn_begins, of, as_number(open), 0, turn_flags::goes_on);
}

}  // namespace weft::detail
