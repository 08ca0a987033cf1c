// What readers of this process's memory are told of pools and their workers; see base/debug_note.hpp.
#pragma once

#include "base/debug_note.hpp"
#include "pool/pool_core.hpp"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // of classes with bases: supported by both compilers

namespace weft::detail {

struct debug_pool {
  using seat = pool_core::seat;
  using forks = decltype(seat::forks);
  using line = decltype(seat::line);
  using store = decltype(forks::stored_);

  // Of a worker, from where worker::of_pool points to: all are in the pool's own workers.
  static inline const debug_field fields[] = {
      {"seat.pool", offsetof(seat, of)},
      {"seat.index", offsetof(seat, index)},
      {"seat.thread", offsetof(seat, thread_number)},
      {"seat.home", offsetof(seat, home)},
      {"seat.jobs", offsetof(seat, jobs)},
      {"seat.begun", offsetof(seat, begun)},
      {"seat.ended", offsetof(seat, ended)},
      {"seat.steals", offsetof(seat, steals)},
      {"seat.sleeps", offsetof(seat, parks)},
      {"seat.asleep", offsetof(seat, asleep)},
      {"seat.line_size", offsetof(seat, line) + offsetof(line, size_)},
      {"seat.line_next", offsetof(seat, line) + offsetof(line, next_)},
      {"seat.forks_top", offsetof(seat, forks) + offsetof(forks, top_)},
      {"seat.forks_bottom", offsetof(seat, forks) + offsetof(forks, bottom_)},
      {"seat.forks_unit", forks::unit},
      {"seat.forks_stored", offsetof(seat, forks) + offsetof(forks, stored_) + offsetof(store, size_)},
      {"seat.kept", offsetof(seat, kept) + offsetof(pool_core::kept_jobs, count_)},
      {"seat.handed_in", offsetof(seat, handed_in)},
      {"seat.taken_up", offsetof(seat, taken_up)},
      {"seat.are_brought", offsetof(seat, are_brought)},
      {"pool.waiting", offsetof(pool_core, waiting_)},
      {"pool.began", offsetof(pool_core, began_)},
  };
};

}  // namespace weft::detail

#pragma GCC diagnostic pop
