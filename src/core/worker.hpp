// All that belongs to one running thread hangs off one pointer, and only the library's own functions read it, which no
// coroutine inlines: a coroutine may go on on another thread, and the address of a thread-local that a compiler kept
// over that would belong to the thread it left. Memory belongs to the worker, not to the thread: a thread that ends
// leaves its worker to the next one that starts, with the frames that are still alive in it.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <weft/detail/context/context.hpp>
#include <weft/executor.hpp>

#include "base/post_hazard.hpp"
#include "channel/channel_slot.hpp"
#include "fiber/fiber_slot.hpp"
#include "memory/heap.hpp"
#include "pool/pool_slot.hpp"
#include "stack/stack_slot.hpp"

namespace weft::detail {

class root;
class letting_go;
class frame_source;
class waiter;
struct frame;

/// Jobs, first in first out.
struct job_queue {
  job* first = nullptr;
  job* last = nullptr;

  void push(job& work) noexcept {
    work.next = nullptr;
    (last != nullptr ? last->next : first) = &work;
    last = &work;
  }
  job* pop() noexcept {
    job* work = first;
    if (work != nullptr && (first = work->next) == nullptr) last = nullptr;
    return work;
  }
};

/// The jobs posted to an inline executor from within one of its jobs on this thread.
struct inline_queue : job_queue {};

/// So many runs nest on a thread's stack; what would be deeper goes through the run loop or an executor.
inline constexpr unsigned deepest_nesting = 64;
/// So many waits forward their stops by the call that stops the one around them: up to 700 bytes of stack each.
inline constexpr unsigned deepest_stop = 16;

/// Whose code runs on a thread's stack. All that the first run of a fork changes, if that runs through.
struct run_place {
  root* current = nullptr;         // whose code runs now
  root* outer = nullptr;           // whose code called the run loop; null: none's
  job* local = nullptr;            // what the run loop does when nothing is next: starting siblings, last in first out
  const root* starting = nullptr;  // the child that was started here and has not been away from this stack since
};

/// What a stop, or the end of a coroutine half-way, destroys on a thread.
enum class unwind_kind : std::uintptr_t {
  nothing,
  frames,  ///< those of the root that runs
  stack,   ///< that of a coroutine, by an exception
};

/// What a nested run of the run loop must leave as it found it, besides where frames come from.
struct run_state : run_place {
  // The loop of a pool's worker has resumed what runs, and nothing has run on this stack since but what went on from that by
  // transfer: so a fiber may go across to the next one. Written by root::run_outermost() and run().
  bool is_outermost = false;
  unwind_kind unwinds = unwind_kind::nothing;
  void* unwound = nullptr;       // the frame that a stop has just destroyed: its owner's destructor skips it
  class fiber* fiber = nullptr;  // whose stack this runs on, in the root that runs
  // Of that fiber, or of the one that made this call outside of its stack: it has the control words of the thread's own code.
  const context* left_by = nullptr;
  letting_go* lets_go = nullptr;  // the destruction of frames that runs on this stack, if it is no fiber's
};
/// The same of a fiber's stack.
letting_go*& lets_go_in(class fiber& self) noexcept;

struct worker : run_state {
  heap frames;                     // its `memory` follows `current` and its env
  std::coroutine_handle<> next{};  // where the run loop goes on, instead of a nested resume
  job_queue deferred;              // what the run loop does after that: forks that nested too deep to start at once
  unsigned nested_forks = 0;       // how many forks are in their first run on this stack, or stopped ones in their last
  unsigned nested_stops = 0;       // how many waits forward their stops, each inside the one before
  waiter* deferred_stops = nullptr;       // stops that wait until the outermost of these has returned
  inline_queue* inlined = nullptr;        // the innermost run of inline_executor on this thread
  void* ended_below = nullptr;            // for a boundary where a stop arrives: the frame that was destroyed last
  worker* spare = nullptr;                // link in the list of workers without a thread
  worker* made_before = nullptr;          // link in the list of all
  struct pool_worker* of_pool = nullptr;  // what the thread runs of a pool; null: it is none of a pool's
  post_hazard hazard;

  // What subsystems above keep in a worker. It knows none of their fields.
  fiber_slot fibers;
  channel_slot channels;
  stack_slot stacks;
  pool_slot pools;
};

/// The calling thread's worker; null before its first use. Read it through this_worker().
[[gnu::tls_model("initial-exec")]] extern constinit thread_local worker* worker_of_thread;

/// The calling thread was looked after: it has a signal stack, that of its worker or one of its own. What switches stacks
/// reads it by its distance from the thread pointer; see context.hpp.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local bool ready_for_stacks;

/// Makes the calling thread's worker, or takes over that of a thread that ended.
WEFT_SELDOM worker& first_use() noexcept;

/// The calling thread's worker. Only for functions of the library that are not inlined into coroutines.
inline worker& this_worker() noexcept {
  if (worker_of_thread != nullptr) [[likely]]
    return *worker_of_thread;
  return first_use();
}

/// The worker that was made last; the others by `made_before`. None is ever taken out.
worker* newest_worker() noexcept;

/// Waits for each thread that is posting to `it`. By whoever is about to destroy it, when all that was posted has run.
void wait_for_posters(const void* it) noexcept;

/// The calling thread's worker where a root runs, so that there is one.
inline worker& running_worker() noexcept { return *worker_of_thread; }

/// Runs one of the jobs posted from within the present run of an inline_executor on this thread: by a job of that run
/// that is about to block, perhaps for just that one. False: there was none.
bool run_inlined(worker& here) noexcept;

}  // namespace weft::detail
