// All that weft keeps for one running thread is in its worker, which one thread-local pointer leads to. Only functions of
// the library that no coroutine inlines read it: a coroutine may go on on another thread, and a compiler may keep the
// address of a thread-local over that. Memory belongs to the worker, not to the thread: a thread that ends leaves its
// worker, with the frames that are still alive in it, to the next thread that starts.
#pragma once

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <weft/detail/context/context.hpp>
#include <weft/detail/core/cause_list.hpp>
#include <weft/executor.hpp>

#include "base/post_hazard.hpp"
#include "channel/channel_slot.hpp"
#include "fiber/fiber_slot.hpp"
#include "io/io_slot.hpp"
#include "memory/heap.hpp"
#include "pool/pool_slot.hpp"
#include "stack/stack_slot.hpp"
#include "trace/trace_slot.hpp"

namespace weft::detail {

class root;
class letting_go;
class frame_source;
class waiter;
struct frame;
struct worker_wheel;

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

/// So many runs nest on a thread's stack; deeper ones go through the run loop or an executor.
inline constexpr unsigned deepest_nesting = 64;
/// So many stops nest, each in the call that stops the parent, with up to 700 bytes of stack each; deeper ones are deferred.
inline constexpr unsigned deepest_stop = 16;

/// Which root runs on a thread's stack. A fork that runs through changes nothing of a worker but this.
struct run_place {
  root* current = nullptr;         // the root that runs now
  root* outer = nullptr;           // the root whose code called the run loop; null: none
  job* local = nullptr;            // jobs for the run loop when nothing is next: starting siblings, last in first out
  const root* starting = nullptr;  // the child that was started on this stack and has not suspended since
};

/// What is being destroyed on a thread by a stop, or by the destruction of a coroutine that has not ended.
enum class unwind_kind : std::uintptr_t {
  nothing,
  frames,  ///< the frames of the root that runs
  stack,   ///< the stack of a coroutine, by an exception
};

/// What a nested run of the run loop restores, besides the memory for frames.
struct run_state : run_place {
  // Whether the loop of a pool's worker has resumed what runs here, with nothing but symmetric transfers since. Then a
  // fiber may switch directly to the next one. Written by root::run_outermost() and run().
  bool is_outermost = false;
  unwind_kind unwinds = unwind_kind::nothing;
  void* unwound = nullptr;  // the frame that a stop has just destroyed, so that the destructor of its owner skips it
  class fiber* fiber = nullptr;  // on whose stack this runs, in the current root
  // The context that switched to that fiber, or to the fiber that made this call outside of its stack. It has the control
  // words of the thread's own code.
  const context* left_by = nullptr;
  letting_go* lets_go = nullptr;  // the outermost destruction of frames on this stack, if it is not that of a fiber
};
/// The same for the stack of a fiber.
letting_go*& lets_go_in(class fiber& self) noexcept;

struct worker : run_state {
  heap frames;                       // its `memory` follows `current` and its env
  std::coroutine_handle<> next{};    // what the run loop resumes next
  job_queue deferred;                // run by the run loop after all that: forks that nested too deep to start at once
  unsigned nested_forks = 0;         // forks in their first run on this stack, and stopped ones in their last
  unsigned nested_stops = 0;         // waits that forward a stop, each inside the one before
  waiter* deferred_stops = nullptr;  // stops that wait until the outermost of these has returned
  inline_queue* inlined = nullptr;   // the innermost run of inline_executor on this thread
  void* ended_below = nullptr;       // read by a boundary where a stop arrives: the frame that was destroyed last
  cause_list ends;                   // why the root whose frames were begun to be destroyed last ends stopped
  worker* spare = nullptr;           // link in the list of workers without a thread
  worker* made_before = nullptr;     // link in the list of all
  struct pool_worker* of_pool = nullptr;  // not null: the thread is this worker of a pool
  worker_wheel* wheel = nullptr;          // what was armed here while it was one; null: nothing yet
  bool wheel_refused = false;             // for lack of memory or room: it uses the common one from then on
  post_hazard hazard;
  // Waits whose children start on this thread, while their parents have not parked: the newest, linked by waiter::prev.
  // Written by the thread, read by a walk behind the gate (core/walk_gate.hpp).
  //   edge opens  the wait, and its link to the one before  ->  the walk. No model: what it reads is not watched there
  std::atomic<waiter*> opening{nullptr};
  std::atomic<int> thread_number{0};  // the kernel's number of the thread; 0: it has ended. A figure, no edge

  // What subsystems of higher layers keep in a worker, which knows none of their fields.
  fiber_slot fibers;
  io_slot io;
  channel_slot channels;
  stack_slot stacks;
  pool_slot pools;
  trace_slot traces;
};

/// The calling thread's worker; null before its first use. Read it through this_worker().
[[gnu::tls_model("initial-exec")]] extern constinit thread_local worker* worker_of_thread;

/// Whether the calling thread is prepared for switches of stacks: it has a signal stack, that of its worker or one of its
/// own. Code that switches reads it by its distance from the thread pointer; see context.hpp.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local bool ready_for_stacks;

/// Called by each thread that uses weft for the first time, once it has its worker: by it, an observer begins that the environment
/// asks for. Null: nobody is to be told. Written before main(), while there is one thread.
using first_use_function = void (*)() noexcept;  // a name, since g++ 12 takes constinit for the result's otherwise
extern constinit first_use_function at_first_use;

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

/// Waits until no thread is posting to `it`. Called before `it` is destroyed, when all that was posted to it has run.
void wait_for_posters(const void* it) noexcept;

/// The calling thread's worker where a root runs, and so there is one.
inline worker& running_worker() noexcept { return *worker_of_thread; }

/// Runs one of the jobs that were posted from within the present run of an inline_executor on this thread. Called by a job
/// of that run which is about to block, perhaps until just that job has run. False: there was none.
bool run_inlined(worker& here) noexcept;

}  // namespace weft::detail
