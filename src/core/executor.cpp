#include <pthread.h>

#include <weft/detail/core/waiter.hpp>
#include <weft/executor.hpp>

#include <utility>

#include "core/worker.hpp"
#include "sched/pumping.hpp"

namespace weft {
namespace detail {

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
  detail::pumping::end(pumped_by_);
}

void manual_executor::post(job& work) noexcept { posted_.put(work); }

// Turns the jobs posted since the last time into a queue, the oldest first.
bool manual_executor::refill() noexcept {
  ready_ = posted_.take();
  return ready_ != nullptr;
}

bool manual_executor::run_one() noexcept {
  if (ready_ == nullptr && !refill()) {
    detail::wait_watch::settle();
    if (!refill()) return false;
  }
  job* oldest = ready_;
  ready_ = oldest->next;
  oldest->run(*oldest);  // the executor may be gone after this line
  return true;
}

std::size_t manual_executor::run_all() noexcept {
  const detail::pumping here{pumped_by_};
  std::size_t count = 0;
  while (!here.is_gone() && run_one()) ++count;
  return count;
}

bool manual_executor::empty() const noexcept { return ready_ == nullptr && posted_.empty(); }

// ---- new_thread_executor ------------------------------------------------------------------------------------------------

namespace {

void run_on_this_thread(job& work, const executor& of) noexcept {
  const void* const outer = std::exchange(detail::this_worker().pools.only_for, &of);
  work.run(work);  // the job may be gone after this line
  detail::this_worker().pools.only_for = outer;
}

}  // namespace

void new_thread_executor::post(job& work) noexcept {
  running_.fetch_add(1, std::memory_order_relaxed);  // the destructor can't run beside a post
  // The thread needs two addresses and gets one argument: the address of the executor travels in the link of the job.
  work.next = reinterpret_cast<job*>(this);
  const auto body = [](void* argument) -> void* {
    job& mine = *static_cast<job*>(argument);
    auto& all = *reinterpret_cast<new_thread_executor*>(mine.next);
    run_on_this_thread(mine, all);  // `mine` may be gone
    const pthread_t ended_before = all.ended_.exchange(::pthread_self(), std::memory_order_relaxed);  // a number
    if (ended_before != pthread_t{}) ::pthread_join(ended_before, nullptr);
    all.one_less();
    return nullptr;
  };
  pthread_t thread;
  if (::pthread_create(&thread, nullptr, body, &work) == 0) return;
  run_on_this_thread(work, *this);
  one_less();
}

void new_thread_executor::one_less() noexcept {
  if (running_.fetch_sub(1, std::memory_order_release) == 1)  // -> ended (no model: joining the threads has it, too)
    running_.notify_all();
}

new_thread_executor::~new_thread_executor() {
  WEFT_EXPECTS(detail::this_worker().pools.only_for != this,
               "a new_thread_executor was destroyed by a job of its own: it would wait for itself");
  for (std::size_t left; (left = running_.load(std::memory_order_acquire)) != 0;)  // <- ended (no model: as there)
    running_.wait(left, std::memory_order_relaxed);                                // the load above takes the edge
  const pthread_t last = ended_.load(std::memory_order_relaxed);                   // carried by `ended`
  if (last != pthread_t{}) ::pthread_join(last, nullptr);
}

}  // namespace weft
