// An I/O service watches descriptors for readiness: by a runtime's epoll set or rings, or by the process's own epoll set, for
// programs without a runtime.
//
// A forked child has a copy of the service, but the epoll set or the rings are still the parent's: a descriptor that the child
// removed from the set would be reported to nobody, and one that it added would be reported to the parent. So in the child the
// service uses neither. A descriptor closed in the child is closed there alone; the tasks that wait for it are in the parent.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>
#include <weft/detail/io/descriptor.hpp>

namespace weft::detail {

class call_ring;
struct number_watch;

class io_service {
 public:
  io_service() noexcept;
  io_service(const io_service&) = delete;

  /// Whether this process was forked from the one that has made the service.
  bool is_inherited() const noexcept;

  /// Watches `number`, which is non-blocking, and takes it over. Throws error, or std::bad_alloc; then it is the caller's still.
  /// `tries_first`: both directions count as ready until a try finds that it has to wait.
  descriptor& watch(int number, bool tries_first);
  /// Reports no more changes of that number.
  virtual void stop_watching(int number) noexcept = 0;
  /// Ends the polls that keep a closed descriptor's file open, where the service has such. By its owner.
  virtual void cancel_polls(descriptor&) noexcept {}
  /// By a task that is about to wait: has changes in that direction reported from now on.
  virtual void arm(descriptor& one, direction which) noexcept = 0;
  /// The ring of the calling worker; null: there is none.
  virtual call_ring* ring_here() noexcept { return nullptr; }
  /// Whether an armed poll of this service keeps the descriptor's file open.
  virtual bool keeps_open(const descriptor&) const noexcept { return false; }

  /// By a thread that wakes a waiter of this service and uses the service after that: the destructor waits for end_visit().
  /// Relaxed: the wake-up comes after it, and orders it before a destructor that the waiter brings about.
  void begin_visit() noexcept { visitors_.fetch_add(1, std::memory_order_relaxed); }
  void end_visit() noexcept {
    visitors_.fetch_sub(1, std::memory_order_release);  // -> visited (no model: as declared)
  }

  /// The numbers that hooked system calls watch by this service, and how many fibers wait for them; see hook/waiting.cpp.
  struct watches_of_hooks {
    std::mutex lock;
    std::size_t fibers = 0;
    number_watch* first = nullptr;
  };
  watches_of_hooks of_hooks;

  /// By the last user of the descriptor.
  void give_back(descriptor& one) noexcept;

  /// How many descriptors it watches. For people and tests: the number may have changed when the caller reads it.
  std::size_t watched() const noexcept;

 protected:
  ~io_service() = default;  // the derived class has checked that nothing is watched
  void wait_for_visitors() const noexcept;
  /// Returns an error number, or 0.
  virtual int begin_to_watch(descriptor& one) noexcept = 0;
  /// Whether a descriptor without users can be reused at once. Otherwise the service calls use_again() later.
  virtual bool retire(descriptor&) noexcept { return true; }
  void use_again(descriptor& one) noexcept;
  /// Whether another descriptor than this one has its number.
  bool is_watched_by_another(const descriptor& one) noexcept;
  /// Calls `each` for the descriptors from index `from` on, also the unused ones, until it returns false, and moves `from` behind
  /// them. Returns false after the last one. It holds the lock: meanwhile no descriptor is made or reused.
  template <class Each>
  bool for_each(std::size_t& from, Each each) noexcept {
    const std::lock_guard guard{lock_};
    while (from != slabs_.size() * slab) {
      descriptor& one = slabs_[from / slab][from % slab];
      ++from;
      if (!each(one)) return true;
    }
    return false;
  }

 private:
  static constexpr std::size_t slab = 64;

  //   edge visited  all that a visitor did with the service  ->  the service's destructor. No model: a count
  std::atomic<std::uint32_t> visitors_{0};
  const std::uint32_t forks_;  // forks_of_process in the process that has made the service

  mutable std::mutex lock_;
  std::vector<std::unique_ptr<descriptor[]>> slabs_;  // reused, and freed with the service
  descriptor* unused_ = nullptr;
  std::size_t watched_ = 0;
};

/// The service of the running task's executor; the process's own, if the executor has none.
io_service& io_service_here();
/// By the test kit: from now on `its` gives the service to use instead of the process's own. Null: the process's own again.
void watch_elsewhere(io_service& (*its)()) noexcept;

}  // namespace weft::detail
