// What the flight recorder keeps in each worker: the thread's ring of events, and which traced root it runs.
#pragma once

#include <cstdint>

namespace weft::detail {

class event_ring;
struct trace_part;

struct trace_slot {
  event_ring* ring = nullptr;     // null: this thread has recorded nothing yet
  bool has_no_ring = false;       // there was no memory for one, or the program wants none
  const void* open = nullptr;     // the traced root whose turn this is: it has begun and not ended
  trace_part* part = nullptr;     // this worker's figures of request `of`; nobody's, if there was no memory
  std::uint32_t of = 0;           // the last traced request that it ran something of; 0: none
  std::uint64_t began = 0;        // when the open turn began
  std::uint64_t may_suspend = 0;  // when the open turn's root was last about to wait; 0: not since the turn began
  bool has_woken = false;         // it has woken a traced root since then
  // When the last turn ended here. The next turn begins then, if it is that of the very next job and nothing has happened
  // meanwhile (pool_worker::next_turn): so a switch between traced roots takes one time stamp, not two.
  std::uint64_t ended_at = 0;
};

}  // namespace weft::detail
