#include <pthread.h>

#include <weft/executor.hpp>

#include "detail/worker.hpp"

namespace weft {
namespace detail {

/// The jobs posted to an inline executor from within one of its jobs on this thread.
struct inline_queue : job_queue {};

bool run_inlined(worker& here) noexcept {
  job* one = here.inlined != nullptr ? here.inlined->pop() : nullptr;
  if (one == nullptr) return false;
  one->run(*one);  // `one` may be gone after its run
  return true;
}

}  // namespace detail

void inline_executor::post(job& work) noexcept {
  detail::worker& here = detail::this_worker();
  if (here.inlined != nullptr) return here.inlined->push(work);

  detail::inline_queue queue;
  here.inlined = &queue;
  for (job* one = &work; one != nullptr; one = queue.pop()) one->run(*one);  // `one` may be gone after its run
  here.inlined = nullptr;
}

// ---- manual_executor --------------------------------------------------------------------------------------------------

manual_executor::~manual_executor() {
  WEFT_EXPECTS(empty(), "a manual_executor was destroyed with jobs inside: run_all() it first, their tasks still wait");
}

void manual_executor::post(job& work) noexcept { posted_.put(work); }

// Turns what was posted since the last time into a queue, oldest first.
bool manual_executor::refill() noexcept {
  ready_ = posted_.take();
  return ready_ != nullptr;
}

bool manual_executor::run_one() noexcept {
  if (ready_ == nullptr && !refill()) return false;
  job* oldest = ready_;
  ready_ = oldest->next;
  oldest->run(*oldest);
  return true;
}

std::size_t manual_executor::run_all() noexcept {
  std::size_t count = 0;
  while (run_one()) ++count;
  return count;
}

bool manual_executor::empty() const noexcept { return ready_ == nullptr && posted_.empty(); }

// ---- new_thread_executor ------------------------------------------------------------------------------------------------

void new_thread_executor::post(job& work) noexcept {
  running_.fetch_add(1, std::memory_order_relaxed);  // the destructor can't run beside a post
  // The thread needs two addresses and gets one argument: the count travels in the job's link.
  work.next = reinterpret_cast<job*>(&running_);
  const auto body = [](void* argument) -> void* {
    job& mine = *static_cast<job*>(argument);
    auto& running = *reinterpret_cast<std::atomic<std::size_t>*>(mine.next);
    mine.run(mine);                                            // `mine` may be gone
    if (running.fetch_sub(1, std::memory_order_release) == 1)  // -> ended
      running.notify_all();                                    // the executor may be gone: only its address is used
    return nullptr;
  };
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, body, &work) != 0) body(&work);
  pthread_attr_destroy(&attributes);
}

new_thread_executor::~new_thread_executor() {
  for (;;) {
    const std::size_t left = running_.load(std::memory_order_acquire);  // <- ended
    if (left == 0) return;
    running_.wait(left, std::memory_order_relaxed);  // the load above takes the edge
  }
}

}  // namespace weft
