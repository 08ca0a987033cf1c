#include "detail/worker.hpp"

#include <mutex>
#include <weft/detail/async_stack.hpp>

namespace weft::detail {
namespace {

constinit std::mutex spare_lock;
constinit worker* spare_workers = nullptr;

// At the end of a thread its worker waits for the next thread: frames that are alive elsewhere still come home to it.
struct leave_at_exit {
  ~leave_at_exit() {
    worker* leaving = worker_of_thread;
    if (leaving == nullptr) return;
    worker_of_thread = nullptr;
    leaving->frames.sweep();
    std::lock_guard guard{spare_lock};
    leaving->spare = spare_workers;
    spare_workers = leaving;
  }
};

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
  if (worker_of_thread == nullptr)
    worker_of_thread = new worker;  // never deleted: a frame may come home after the last thread ended
  thread_local leave_at_exit leaver;
  static_cast<void>(leaver);
  prepare_last_words();
  return *worker_of_thread;
}

}  // namespace weft::detail
