// Readiness by io_uring: a ring for each worker of a runtime.
//
// A direction of a descriptor is armed once, by a multishot poll, when a task first waits for it: in the ring of the worker
// that runs the task, or of some worker if the task runs on another thread. Later waits cost no system call of their own. An
// idle worker sleeps in its ring if something is armed there, and on its futex otherwise. A worker that sleeps in its ring is
// woken through an eventfd; the ring polls it edge-triggered, so that nobody has to read it.
//
// Only its owner, the worker's thread, uses a ring: rings are made for a single issuer, and the kernel completes requests when
// the owner enters the ring (SINGLE_ISSUER, DEFER_TASKRUN), which costs least. Another thread that needs something armed or
// cancelled puts the descriptor into the owner's inbox, and wakes the owner.
//
// An armed poll keeps the file open in the kernel. So close() shuts a connection down, and the ring's owner cancels the polls
// when it next enters the ring. A descriptor is reused only after the last completion for it: so no completion is taken for
// that of a later descriptor.
//
// An owner that computes does not see its completions. The guard (io_guard.hpp) notices that within 10 ms, by a flag that the
// kernel sets, and wakes an idle worker, which asks poll() about the descriptors that are waited for in that ring.
//
// Files. A worker makes its own tasks' calls on files through its ring (ring_call.hpp). It submits them in batches: when it has
// twice looked for jobs and found none, after some sixty jobs, or as it falls asleep. Only the owner can take a completion:
// while it computes, its tasks' calls on files do not end.
//
// Losses. When the completion queue is full, the kernel keeps completions in memory that it allocates; if it gets no memory, it
// drops them, and counts them. Each one dropped was the last completion of its request. So the owner finds out which requests
// the kernel no longer has (find_lost() in uring_lost.cpp): a lost poll is armed anew; a lost call fails, or is made again.
//
// Rejected: (a) a signal that makes the computing owner enter its ring. It would interrupt the program's system calls, and take
// a signal number from the program. (b) Rings that any thread may enter: 1.2 to 2.5 times the processor time. (c) Completions
// that other threads take: the kernel produces them only when the owner enters.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>
#include <weft/detail/base/inbox.hpp>
#include <weft/io_backend.hpp>

#include "io/io_guard.hpp"
#include "io/io_service.hpp"
#include "io/kernel_ring.hpp"
#include "io/ring_call.hpp"
#include "sched/parker.hpp"
#include "sched/sleep_word.hpp"

namespace weft::detail {

class uring;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final

/// A worker's ring, and how the worker sleeps.
class uring_worker final : public parker, public call_ring {
 public:
  /// Throws error.
  explicit uring_worker(uring& of);
  ~uring_worker() override;
  /// Returns a negative error number if the system refuses the ring, else 0.
  int make_ring(ring_size& size) noexcept { return ring_.make(size); }

  void prepare() noexcept override {
    was_idle_ = true;
    word_.prepare();
  }
  void commit(time_point until) noexcept override;
  void wake() noexcept override;
  bool poll(bool between_jobs) noexcept override;

  /// Any thread: has the owner arm a direction, or cancel the descriptor's polls (`unwatch`), or do so and then have it reused
  /// (`retire`).
  void ask(descriptor& one, std::uint32_t what) noexcept;
  static constexpr std::uint32_t bit(direction which) noexcept { return which == direction::in ? 1 : 2; }
  static constexpr std::uint32_t retire = 4, unwatch = 8;

  bool begin(ring_call& one, root& self) noexcept override;
  void cancel(ring_call& one) noexcept override;

  /// Whether the calling thread owns the ring.
  bool is_here() const noexcept { return owner_.load(std::memory_order_relaxed) == this_owner(); }  // as declared
  /// Makes the calling thread the owner, once.
  void begin_here() noexcept;
  /// Called instead of poll() where there is no pool: whether there are completions, which report() then handles.
  bool look() noexcept;
  void report() noexcept;
  bool has_calls() const noexcept { return under_way_ != nullptr; }

  /// By the guard: whether the worker has not looked for jobs since the guard's last look, while its ring has work.
  bool is_stuck() noexcept;
  std::atomic<bool> has_stuck{false};  // set by the guard, cleared by who looks after this worker. A hint, no edge

  io_stats so_far() const noexcept;

 private:
  // User data that is no address: of requests whose completion is ignored, and of the poll of wake_fd_.
  static constexpr std::uint64_t of_nobody = 0, of_wake_fd = 1;
  // The low bits of user data that is an address: a descriptor's out direction; a call.
  static constexpr std::uint64_t of_out = 1, of_call = 2;
  static std::uint64_t packed(const descriptor& one, direction which) noexcept {
    return reinterpret_cast<std::uintptr_t>(&one) | (which == direction::in ? 0 : of_out);
  }

  static std::uintptr_t this_owner() noexcept;
  void poll_wake_fd() noexcept;
  void perform(descriptor* asked) noexcept;
  void perform_one(descriptor& one) noexcept;
  bool arm(descriptor& one, direction which) noexcept;
  bool cancel(descriptor& one) noexcept;
  bool cancel_polls(descriptor& one) noexcept;
  bool has_asked() const noexcept { return !inbox_.empty() || !calls_.empty(); }
  void perform_asked() noexcept {
    if (!inbox_.empty()) perform(inbox_.take());
    if (!calls_.empty()) [[unlikely]]
      perform_calls();
  }
  void perform_calls() noexcept;
  bool cancel_here(ring_call& one) noexcept;
  void ended(ring_call& one, int result) noexcept;
  bool reap() noexcept;
  bool has_lost_some() const noexcept { return ring_.lost() != lost_; }
  void find_lost() noexcept;
  bool probe_polls(std::size_t& from) noexcept;
  bool probe_calls() noexcept;
  bool reap_all() noexcept;
  void completed(const io_uring_cqe& what) noexcept;
  void note_unfinished() noexcept;
  void count(std::atomic<std::uint64_t>& figure, std::uint64_t more) noexcept {
    figure.store(figure.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);  // only the owner writes it
  }

  uring* const of_;
  kernel_ring ring_;
  const int wake_fd_;  // the eventfd that wakes the worker from a sleep in its ring

  // Used by the owner alone.
  bool polls_wake_fd_ = false;   // the ring polls the eventfd
  bool was_idle_ = false;        // it has entered the set of idle workers since it last called uring::has_left()
  bool has_calls_ = false;       // there are calls, or cancellations of calls, that were not submitted
  bool has_found_none_ = false;  // it has looked for jobs, and found none, since the last call was begun
  bool has_ended_some_ = false;  // since the last poll(), it has ended calls from its inbox
  std::size_t in_kernel_ = 0;    // directions that the kernel polls, and calls that the kernel has
  bool must_find_lost_ = false;  // it was about to sleep, and completions were lost: the next poll() calls find_lost()
  unsigned lost_ = 0;            // the number of lost completions that find_lost() has dealt with
  ring_call* under_way_ = nullptr;  // the list of the calls that the kernel has

  inbox<descriptor> inbox_;  // descriptors that other threads have armed, or given up
  inbox<waiter> calls_;      // calls that other threads have stopped
  sleep_word word_;
  std::atomic<std::uintptr_t> owner_{0};  // its thread's id; relaxed: another thread never reads its own id here
  // Figures, no edge.
  std::atomic<std::uint64_t> waits_{0}, changes_{0}, interrupts_{0}, looks_{0};
  std::atomic<bool> has_unfinished_{false};  // submissions or completions yet to be handled. A hint, no edge
  std::uint64_t looks_seen_ = 0;             // used by the guard alone: looks_ at its last look
};

class uring final : public io_service, private io_guard {
 public:
  /// Throws error.
  explicit uring(unsigned workers, ring_size size = {});
  ~uring();
  /// Returns 0, or the error number with which the system refuses rings.
  int make_rings() noexcept;

  using io_guard::begin;
  using io_guard::end;
  /// Called instead of begin() where there is no pool: the calling thread is the only worker.
  void begin_here() noexcept;
  uring_worker& worker(unsigned which) const noexcept { return *workers_[which]; }
  void arm(descriptor& one, direction which) noexcept override;
  call_ring* ring_here() noexcept override;
  bool keeps_open(const descriptor& one) const noexcept override {
    return one.is_armed(direction::in) || one.is_armed(direction::out);
  }
  void stop_watching(int) noexcept override {}  // the polls are not by number: cancel_polls() and retire() end them
  void cancel_polls(descriptor& one) noexcept override;

  ring_size size() const noexcept { return size_; }
  io_stats stats() const noexcept;

 private:
  friend class uring_worker;

  unsigned worker_here() const noexcept;
  bool needs_one(bool left_lately) noexcept override;
  int begin_to_watch(descriptor& one) noexcept override;
  bool retire(descriptor& one) noexcept override;
  bool look_after_stuck(const uring_worker& by) noexcept;
  void look_after(uring_worker& stuck) noexcept;

  std::vector<std::unique_ptr<uring_worker>> workers_;
  ring_size size_;
  std::atomic<unsigned> next_home_{0};     // for a thread that is no worker. No edge: any ring will do
  std::atomic<bool> is_any_stuck_{false};  // some worker `has_stuck`. A hint, no edge
};

}  // namespace weft::detail
