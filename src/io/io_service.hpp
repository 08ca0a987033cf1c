// What watches descriptors: the epoll set of a runtime, or that of the process, for programs without a runtime.
//
// A child that is forked has a copy of it, whose set, or rings, are the parent's still: what the child took out of the set
// would be reported to nobody, and what it put in, to the parent. So there it touches neither. A descriptor that is closed in
// the child is closed there alone, and whoever waits for it waits in the parent.
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

  /// Whether this process was forked from the one that has made it.
  bool is_inherited() const noexcept;

  /// Watches `number`, which is non-blocking, and is the service's from now on. Throws error, or std::bad_alloc; then it is
  /// the caller's still. `tries_first`: it counts as ready, since who comes first tries.
  descriptor& watch(int number, bool tries_first);
  /// Reports no more changes of that number.
  virtual void stop_watching(int number) noexcept = 0;
  /// By who is about to wait: has changes in that direction reported from now on.
  virtual void arm(descriptor& one, direction which) noexcept = 0;
  /// The ring of the worker that calls; null: there is none.
  virtual call_ring* ring_here() noexcept { return nullptr; }
  /// Whether the system keeps the file of a descriptor open for it.
  virtual bool keeps_open(const descriptor&) const noexcept { return false; }

  /// By a thread that wakes who waits by it, and then touches it still: it stays until the visit ends.
  void begin_visit() noexcept { visitors_.fetch_add(1, std::memory_order_relaxed); }  // who waits carries it
  void end_visit() noexcept {
    visitors_.fetch_sub(1, std::memory_order_release);  // -> visited (no model: as declared)
  }

  /// What hooks watch by it, and how many fibers have these stay; see hook/waiting.cpp.
  struct watches_of_hooks {
    std::mutex lock;
    std::size_t fibers = 0;
    number_watch* first = nullptr;
  };
  watches_of_hooks of_hooks;

  /// By who was the last to use it.
  void give_back(descriptor& one) noexcept;

  /// How many descriptors it watches. For people and tests: it is over when it is read.
  std::size_t watched() const noexcept;

 protected:
  ~io_service() = default;  // by who knows that nothing is watched
  void wait_for_visitors() const noexcept;
  /// An error number.
  virtual int begin_to_watch(descriptor& one) noexcept = 0;
  /// Whether what nobody has any more can be used again at once. Otherwise the service calls use_again() later.
  virtual bool retire(descriptor&) noexcept { return true; }
  void use_again(descriptor& one) noexcept;
  /// Calls `each` for all descriptors from that number on, the unused ones, too, until it says no, and counts. False: that were
  /// all. None comes meanwhile, and none is used again.
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

  //   edge visited  all that a visitor did by it  ->  its destructor. No model: a count
  std::atomic<std::uint32_t> visitors_{0};
  const std::uint32_t forks_;  // of the process that has made it

  mutable std::mutex lock_;
  std::vector<std::unique_ptr<descriptor[]>> slabs_;  // what is in them is used again, and goes with the service
  descriptor* unused_ = nullptr;
  std::size_t watched_ = 0;
};

/// That of the running task's executor; the process's own, where that has none.
io_service& io_service_here();
/// By the test kit: what is watched by the process's own otherwise, this gives the service for. Null: back to that.
void watch_elsewhere(io_service& (*its)()) noexcept;

}  // namespace weft::detail
