#include "detail/worker.hpp"

#include <pthread.h>

#include <mutex>
#include <weft/detail/async_stack.hpp>

#include "detail/spin.hpp"

namespace weft::detail {
namespace {

constinit std::mutex spare_lock;
constinit worker* spare_workers = nullptr;
constinit worker* all_workers = nullptr;  // under the same lock; none is ever taken out

// At the end of a thread its worker waits for the next thread: frames that are alive elsewhere still come home to it. By
// a key, not by a thread_local's destructor: keys come after all of those, and again if one needs frames after that.
void leave(void* worker_of_ending_thread) noexcept {
  worker* leaving = static_cast<worker*>(worker_of_ending_thread);
  worker_of_thread = nullptr;
  leaving->frames.leave();
  std::lock_guard guard{spare_lock};
  leaving->spare = spare_workers;
  spare_workers = leaving;
}

pthread_key_t make_key() noexcept {
  pthread_key_t key;
  if (pthread_key_create(&key, leave) != 0) fail("the system has no thread-specific key left, and weft needs one");
  return key;
}

}  // namespace

[[gnu::tls_model("initial-exec")]] constinit thread_local worker* worker_of_thread = nullptr;

[[gnu::noinline, gnu::cold]] worker& first_use() noexcept {
  {
    std::lock_guard guard{spare_lock};
    if (spare_workers != nullptr) {
      worker_of_thread = spare_workers;
      spare_workers = worker_of_thread->spare;
    }
  }
  if (worker_of_thread == nullptr) {
    worker_of_thread = new worker;  // never deleted: a frame may come home after the last thread ended
    std::lock_guard guard{spare_lock};
    worker_of_thread->made_before = all_workers;
    all_workers = worker_of_thread;
  } else {
    worker_of_thread->frames.take_over();
  }
  static const pthread_key_t key = make_key();
  pthread_setspecific(key, worker_of_thread);
  prepare_last_words();
  return *worker_of_thread;
}

// A thread that has no worker yet has posted nothing.
void wait_for_posters(const void* it) noexcept {
  worker* one;
  {
    std::lock_guard guard{spare_lock};
    one = all_workers;
  }
  for (; one != nullptr; one = one->made_before) {
    spin_wait wait;
    while (one->posting_to.load(std::memory_order_acquire) == it) wait.once();  // <- posted (no model)
  }
}

}  // namespace weft::detail
