// What readers of this process's memory are told of core: roots, what they wait in, frames, workers. Included by the one
// source that has the list of workers; see base/debug_note.hpp.
#pragma once

#include <weft/detail/core/root.hpp>
#include <weft/detail/core/wait_layout.hpp>
#include <weft/detail/core/waiter.hpp>
#include <weft/env.hpp>
#include <weft/stop.hpp>

#include "base/debug_note.hpp"
#include "core/worker.hpp"
#include "memory/slabs.hpp"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // of classes with bases: supported by both compilers

namespace weft::detail {

static_assert(sizeof(std::source_location) == sizeof(void*) && sizeof(stop_token) == sizeof(void*));

struct debug_core {
  // The words of a sleeper lie where its root does: it is the root's first base.
  static inline const debug_field fields[] = {
      // not constexpr: there no function becomes an address
      {"sleeper.word", offsetof(root, word_)},
      {"sleeper.current", offsetof(root, current_)},
      {"sleeper.wake", offsetof(root, wake_)},
      {"state.mask", sleeper::state_mask},
      {"state.running", sleeper::running},
      {"state.waiting", sleeper::waiting},
      {"state.tentative", sleeper::tentative},
      {"state.stopping", sleeper::stopping},
      {"state.finished", sleeper::finished},
      {"state.finished_stopped", sleeper::finished_stopped},
      {"state.stop_bit", sleeper::stop_bit},
      {"state.shield_bit", sleeper::shield_bit},
      {"state.ticket_mask", sleeper::ticket_mask},

      {"waiter.next", offsetof(waiter, next)},
      {"waiter.prev", offsetof(waiter, prev)},
      {"waiter.sleeper", offsetof(waiter, sleeper_)},
      {"waiter.ticket", offsetof(waiter, ticket_)},
      {"waiter.type", offsetof(waiter, type_)},
      {"wait_type.name", offsetof(wait_type, name)},
      {"wait_type.layout", offsetof(wait_type, layout)},
      {"layout.subject", offsetof(wait_layout, subject)},
      {"layout.held_by", offsetof(wait_layout, held_by)},
      {"layout.subject_at", offsetof(wait_layout, subject_at)},
      {"layout.subject_plus", offsetof(wait_layout, subject_plus)},
      {"layout.word_at", offsetof(wait_layout, word_at)},
      {"layout.marks", offsetof(wait_layout, marks)},
      {"layout.word2_at", offsetof(wait_layout, word2_at)},
      {"layout.unless_at", offsetof(wait_layout, unless_at)},
      {"layout.unless_is", offsetof(wait_layout, unless_is)},
      {"layout.children", offsetof(wait_layout, children)},
      {"layout.lists", std::size(wait_layout{}.children)},
      {"layout.list_bytes", sizeof(wait_layout::list)},
      {"layout.body_at", offsetof(wait_layout, body_at)},
      {"layout.body_over_at", offsetof(wait_layout, body_over_at)},
      {"layout.parent_at", offsetof(wait_layout, parent_at)},
      {"layout.decides_at", offsetof(wait_layout, decides_at)},
      {"layout.bytes", sizeof(wait_layout)},
      {"layout.nowhere", wait_layout::nowhere},
      {"place.stored", static_cast<std::uint64_t>(wait_layout::place::stored)},
      {"place.itself", static_cast<std::uint64_t>(wait_layout::place::itself)},
      {"place.cases", static_cast<std::uint64_t>(wait_layout::place::cases)},
      {"holder.somebody", wait_layout::somebody},
      {"holder.subject", static_cast<std::uint64_t>(wait_layout::holder::subject)},
      {"holder.word", static_cast<std::uint64_t>(wait_layout::holder::word)},

      {"root.bytes", sizeof(root)},
      {"root.run", offsetof(root, run)},
      {"root.top", offsetof(root, top)},
      {"root.env", offsetof(root, env)},
      {"root.before_wait", offsetof(root, before_wait)},
      {"root.is_traced", root::is_traced},
      {"root.traced_since", offsetof(root, traced_since)},
      {"root.parent", offsetof(root, parent)},
      {"root.is_fork", offsetof(root, is_fork)},
      {"root.is_lent", offsetof(root, before_wait)},  // its lowest bit
      {"root.ends_stopped", offsetof(root, ends_stopped)},
      {"root.end", offsetof(root, end_)},
      {"root.woken", reinterpret_cast<const void*>(root::woken)},
      {"root.run_job", reinterpret_cast<const void*>(root::run_job)},
      {"root.returned", reinterpret_cast<const void*>(root::returned)},

      {"frame.resume", offsetof(frame, resume)},
      {"frame.destroy", offsetof(frame, destroy)},
      {"promise.continuation", sizeof(frame) + offsetof(promise_base, continuation)},
      {"promise.owner", sizeof(frame) + offsetof(promise_base, owner)},
      {"boundary.arrive_stopped", reinterpret_cast<const void*>(boundary::arrive_stopped)},

      {"env.executor", offsetof(env, executor)},
      {"env.deadline", offsetof(env, deadline)},
      {"env.stop", offsetof(env, stop)},  // the address of its source
      {"env.frames", offsetof(env, frames)},
      {"stop_source.state", offsetof(stop_source, state_)},
      {"stop_source.requested", stop_source::requested},
      {"stop_source.reason", offsetof(stop_source, cause_) + offsetof(stop_cause, reason)},
      {"stop_source.where", offsetof(stop_source, cause_) + offsetof(stop_cause, where)},
      // A source_location is the address of what both compilers make of it: two texts and two numbers.
      {"source_location.file", std::uint64_t{0}},
      {"source_location.function", sizeof(void*)},
      {"source_location.line", 2 * sizeof(void*)},

      {"worker.current", offsetof(worker, current)},
      {"worker.outer", offsetof(worker, outer)},
      {"worker.local", offsetof(worker, local)},
      {"worker.starting", offsetof(worker, starting)},
      {"worker.next", offsetof(worker, next)},
      {"worker.deferred", offsetof(worker, deferred)},
      {"worker.opening", offsetof(worker, opening)},
      {"worker.turn_of", offsetof(worker, traces) + offsetof(trace_slot, open)},
      {"worker.turn_began", offsetof(worker, traces) + offsetof(trace_slot, began)},
      {"worker.turn_may_end", offsetof(worker, traces) + offsetof(trace_slot, may_suspend)},
      {"worker.thread", offsetof(worker, thread_number)},
      {"worker.made_before", offsetof(worker, made_before)},
      {"worker.of_pool", offsetof(worker, of_pool)},
      {"worker.slabs", offsetof(worker, frames) + offsetof(heap, slabs)},
      {"slab.next", offsetof(slab, next)},
      {"slab.bytes", slab::bytes},
      {"job.next", offsetof(job, next)},
      {"job.run", offsetof(job, run)},
  };
};

}  // namespace weft::detail

#pragma GCC diagnostic pop
