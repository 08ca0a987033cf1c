// The epoll set of the process, for descriptors that are made outside of a runtime.
#include <pthread.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <system_error>
#include <weft/env.hpp>
#include <weft/error.hpp>

#include "base/helper_signals.hpp"
#include "base/unloading.hpp"
#include "io/epoll.hpp"

namespace weft::detail {
namespace {

// The process's epoll set, and a thread that sleeps in it. A waiter without an executor resumes on that thread. Never destroyed,
// since the last destructors of the process may use streams. The thread ends before the library is unloaded.
class process_epoll {
 public:
  epoll& with_thread() {
    const std::lock_guard guard{lock_};
    if (!running_) start();
    return set_;
  }

  // A forked child makes a process_epoll of its own, and leaves the parent's as it is.
  static process_epoll& instance() {
    process_epoll* seen = current.load(std::memory_order_acquire);  // <- made (no model: as declared)
    while (seen == nullptr || seen->set_.is_inherited()) {
      auto made = std::make_unique<process_epoll>();
      if (current.compare_exchange_strong(seen, made.get(),
                                          std::memory_order_acq_rel,   // ->, <- made (no model: as declared)
                                          std::memory_order_acquire))  // <- made (no model: as declared)
        return *made.release();
    }
    return *seen;
  }

 private:
  void start() {
    if (!ends_in_time_) ends_in_time_ = at_end(end_current);
    ending_.store(false, std::memory_order_relaxed);  // ordered by pthread_create()
    const helper_signals as_helper;
    const int refused = ::pthread_create(
        &thread_, nullptr,
        [](void* its) -> void* {
          static_cast<process_epoll*>(its)->run();
          return nullptr;
        },
        this);
    if (refused != 0)
      throw error{std::error_code{refused, std::generic_category()}, "start the thread that waits for sockets"};
    ::pthread_setname_np(thread_, "weft-io");
    running_ = true;
  }

  void run() noexcept {
    epoll::changes changes;
    while (!ending_.load(std::memory_order_relaxed)) {  // relaxed: the eventfd orders it, written after `ending_`
      set_.wait(epoll::time_point::max(), changes, [] { return true; });
      changes.report();
    }
  }

  static void end_current() noexcept {
    process_epoll* const one = current.load(std::memory_order_acquire);  // <- made (no model: as declared)
    if (!one->set_.is_inherited()) one->end();
  }
  void end() noexcept {
    const std::lock_guard guard{lock_};
    if (is_unloading()) ends_in_time_ = false;  // a destructor of a static may start it again
    if (!running_ || pthread_equal(thread_, pthread_self()) != 0) return;
    ending_.store(true, std::memory_order_relaxed);  // the kernel orders it: the interrupt() comes after it
    set_.interrupt();
    ::pthread_join(thread_, nullptr);
    running_ = false;
  }

  //   edge made  its construction  ->  who finds it. No model: relacy has no statics
  static constinit std::atomic<process_epoll*> current;

  epoll set_;
  std::mutex lock_;  // guards the members below, but for `ending_`
  bool running_ = false, ends_in_time_ = false;
  pthread_t thread_{};
  std::atomic<bool> ending_{false};
};

constinit std::atomic<process_epoll*> process_epoll::current{nullptr};

// The test kit's function in place of the process's own service. Null: there is none.
//   edge elsewhere  all before it was set  ->  who finds it. No model: relacy has no statics.
std::atomic<io_service& (*)()> elsewhere{nullptr};

}  // namespace

void watch_elsewhere(io_service& (*its)()) noexcept {
  elsewhere.store(its, std::memory_order_release);  // -> elsewhere (no model: as declared)
}

io_service& io_service_here() {
  const executor* const where = current_env().executor;
  if (io_service* const its = where != nullptr ? where->io() : nullptr; its != nullptr) return *its;
  auto* const of_tests = elsewhere.load(std::memory_order_acquire);  // <- elsewhere (no model: as declared)
  if (of_tests != nullptr) return of_tests();
  return process_epoll::instance().with_thread();
}

}  // namespace weft::detail
