// In the place of src/core/worker.hpp: one worker for each of the model's threads, without frame memory.
#pragma once

#include <coroutine>
#include <cstdint>
#include <weft/detail/context/context.hpp>
#include <weft/detail/core/cause_list.hpp>
#include <weft/executor.hpp>

#include "channel/channel_slot.hpp"
#include "relacy.hpp"
#include "trace/trace_slot.hpp"

namespace weft::detail {

class root;
class letting_go;
class frame_source;
class waiter;
struct frame;

struct job_queue {
  job* first = nullptr;
  job* last = nullptr;
  void push(job& work) noexcept {
    work.next = nullptr;
    (last != nullptr ? last->next : first) = &work;
    last = &work;
  }
  job* pop() noexcept {
    job* const work = first;
    if (work != nullptr && (first = work->next) == nullptr) last = nullptr;
    return work;
  }
};

struct inline_queue : job_queue {};

inline constexpr unsigned deepest_nesting = 64;
inline constexpr unsigned deepest_stop = 1;  // one inside another one is put off

struct run_place {
  root* current = nullptr;
  root* outer = nullptr;
  job* local = nullptr;
  const root* starting = nullptr;
};
// No model has fibers.
inline side_state set_aside(const context&) noexcept { return {}; }
inline void take_up(const side_state&) noexcept {}

enum class unwind_kind : std::uintptr_t { nothing, frames, stack };

struct run_state : run_place {
  bool is_outermost = false;
  unwind_kind unwinds = unwind_kind::nothing;
  void* unwound = nullptr;
  class fiber* fiber = nullptr;
  const context* left_by = nullptr;
  letting_go* lets_go = nullptr;
};
letting_go*& lets_go_in(class fiber& self) noexcept;

struct worker : run_state {
  struct {
    frame_source* memory = nullptr;
  } frames;
  channel_slot channels;
  trace_slot traces;
  std::coroutine_handle<> next{};
  job_queue deferred;
  unsigned nested_forks = 0, nested_stops = 0;
  waiter* deferred_stops = nullptr;
  inline_queue* inlined = nullptr;
  void* ended_below = nullptr;
  cause_list ends;
  struct pool_worker* of_pool = nullptr;
  bool (*before_it_blocks)(worker&) = nullptr;  // whether it has run something meanwhile
};

inline worker workers[8];
inline worker& this_worker() noexcept { return workers[rl::thread_index()]; }

inline worker& running_worker() noexcept { return this_worker(); }

inline bool age_frame_memory() noexcept { return false; }
inline bool run_inlined(worker& here) noexcept {
  return here.before_it_blocks != nullptr && here.before_it_blocks(here);
}

}  // namespace weft::detail
