// How a thread gets its worker, at its first use of weft, and how it leaves that worker to the next thread when it ends.
// Not in worker.hpp, which all of core includes, since the first worker of a program begins parts of core that include that
// header.
#include "core/worker.hpp"

#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <new>
#include <utility>
#include <weft/detail/core/async_stack.hpp>
#include <weft/detail/core/walk.hpp>

#include "base/asan.hpp"
#include "base/fence.hpp"
#include "base/unloading.hpp"
#include "core/chaos.hpp"
#include "core/debug_fields.hpp"
#include "core/timer_store.hpp"
#include "core/walk_gate.hpp"
#include "memory/slabs.hpp"
#include "trace/event_ring.hpp"

namespace weft::detail {
namespace {

constinit std::mutex spare_lock;
constinit worker* spare_workers = nullptr;
constinit worker* all_workers = nullptr;  // under the same lock; none is ever taken out

constexpr debug_field list_of_workers[] = {{"workers", &all_workers}};

// Called at the end of a thread, whose worker is kept for the next thread: frames that are alive elsewhere will be given
// back to it. A pthread key calls it, not the destructor of a thread_local: keys run after all such destructors, and run
// again if a key's destructor makes a frame.
void leave(void* worker_of_ending_thread) noexcept {
  worker* leaving = static_cast<worker*>(worker_of_ending_thread);
  worker_of_thread = nullptr;
  leave_frame_memory(leaving->frames);
  if (std::exchange(ready_for_stacks, false)) leaving->stacks.leave();
  std::lock_guard guard{spare_lock};
  leaving->spare = spare_workers;
  leaving->thread_number.store(0, std::memory_order_relaxed);  // a figure
  spare_workers = leaving;
}

constexpr auto no_key = static_cast<pthread_key_t>(-1);
constinit pthread_key_t key_to_forget = no_key;

// A thread may hold these locks while another one forks: as it begins or ends, or gets memory for frames. So they are taken
// around a fork(), and the child gets them in a consistent state.
void keep_locks_over_forks() noexcept {
  const auto let_go = [] {
    slab_source::the_one().after_fork();
    task_ids::after_fork();
    top_roots::after_fork();
    spare_lock.unlock();
    walks_lock.unlock();
  };
  const auto hold = [] {
    walks_lock.lock();  // as a walk takes them
    spare_lock.lock();
    top_roots::before_fork();
    task_ids::before_fork();
    slab_source::the_one().before_fork();
  };
  ::pthread_atfork(hold, let_go, let_go);
}

pthread_key_t make_key() noexcept {
  keep_locks_over_forks();
  pthread_key_t key;
  if (pthread_key_create(&key, leave) != 0) fail("the system has no thread-specific key left, and weft needs one");
  key_to_forget = key;
  return key;
}

}  // namespace

// Here, since a program that uses weft has this source in it.
extern "C" [[gnu::visibility("hidden"), gnu::used]] constinit const debug_table weft_debug_core{debug_core::fields};
extern "C" [[gnu::visibility("hidden"), gnu::used]] constinit const debug_table weft_debug_workers{list_of_workers};
WEFT_DEBUG_NOTE("weft_debug_core");
WEFT_DEBUG_NOTE("weft_debug_workers");

[[gnu::tls_model("initial-exec")]] constinit thread_local worker* worker_of_thread = nullptr;
[[gnu::tls_model("initial-exec")]] constinit thread_local bool ready_for_stacks = false;
constinit first_use_function at_first_use = nullptr;

WEFT_SELDOM worker& first_use() noexcept {
  {
    std::lock_guard guard{spare_lock};
    if (spare_workers != nullptr) {
      worker_of_thread = spare_workers;
      spare_workers = worker_of_thread->spare;
    }
  }
  if (worker_of_thread == nullptr) {
    // Deleted only where the library is unloaded: a frame may come home after the last thread ended.
    worker_of_thread = new (std::nothrow) worker;
    if (worker_of_thread == nullptr) fail("a thread that uses weft for the first time has no memory for what it needs");
    note_that_something_stays();
    std::lock_guard guard{spare_lock};
    worker_of_thread->made_before = all_workers;
    worker_of_thread->frames.made_before = all_workers != nullptr ? &all_workers->frames : nullptr;
    all_workers = worker_of_thread;
  } else {
    worker_of_thread->frames.take_over();
    if (event_ring* const ring = worker_of_thread->traces.ring) ring->begin_as_this_thread();
  }
  worker_of_thread->fibers.errno_at = &errno;
  worker_of_thread->thread_number.store(static_cast<int>(::gettid()), std::memory_order_relaxed);  // a figure
  begin_frame_memory(worker_of_thread->frames);
  static const pthread_key_t key = make_key();
  pthread_setspecific(key, worker_of_thread);
  prepare_last_words();
  prepare_fences();
  walk_gate::the_one.note_fences();
  begin_chaos_if_asked();
  if (at_first_use != nullptr) at_first_use();
  return *worker_of_thread;
}

// When the library is unloaded, leave() is gone, too, and threads that have used it go on without their workers. Their
// alternate signal stacks stay, but for that of this thread: no thread can remove another one's.
[[gnu::destructor(unloads_workers)]] static void end_workers() noexcept {
  if (key_to_forget != no_key) pthread_key_delete(key_to_forget);
  if (!is_unloaded()) return;
  if (ready_for_stacks) worker_of_thread->stacks.leave();
  while (all_workers != nullptr) {
    worker* const gone = std::exchange(all_workers, all_workers->made_before);
    while (slab* const one = gone->frames.slabs) {
      gone->frames.slabs = one->next;
      slab_source::the_one().give_back(one);
    }
    gone->stacks.end();
    delete gone->wheel;
    delete gone;
  }
  slab_source::the_one().unmap_all();
  end_rings();
}

worker* newest_worker() noexcept {
  std::lock_guard guard{spare_lock};
  return all_workers;
}

heap& first_heap() noexcept { return this_worker().frames; }

heap* newest_heap() noexcept {
  worker* const newest = newest_worker();
  return newest != nullptr ? &newest->frames : nullptr;
}

// A thread that has no worker yet has posted nothing.
void wait_for_posters(const void* it) noexcept {
  for (const worker* one = newest_worker(); one != nullptr; one = one->made_before) one->hazard.wait_until_not(it);
}

}  // namespace weft::detail
