// In the place of src/detail/worker.hpp: one worker for each of the model's threads, without frame memory.
#pragma once

#include <coroutine>
#include <weft/executor.hpp>

#include "relacy.hpp"

namespace weft::detail {

class root;
class frame_source;

struct job_queue {  // nothing is put off
  job* first = nullptr;
  void push(job&) noexcept {}
  job* pop() noexcept { return nullptr; }
};

struct inline_queue : job_queue {};

inline constexpr unsigned deepest_nesting = 64;

struct run_place {
  root* current = nullptr;
  root* outer = nullptr;
  job* local = nullptr;
  const root* starting = nullptr;
};
struct run_state : run_place {
  frame_source* memory = nullptr;
  void* unwound = nullptr;
  class fiber* fiber = nullptr;
};

struct worker : run_state {
  std::coroutine_handle<> next{};
  job_queue deferred;
  unsigned nested_forks = 0;
  inline_queue* inlined = nullptr;
  void* ended_below = nullptr;
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
