// Readiness by io_uring: a ring for each worker of a runtime.
//
// A direction of a descriptor is armed once, by a multishot poll, when somebody first waits for it: in the ring of the worker
// where that is, or of some worker if it is on another thread. No later wait costs a system call for itself. An idle worker
// sleeps in its ring if something is armed there, and on its futex otherwise; who sleeps in a ring is woken through an eventfd,
// which the ring polls, too, edge-triggered, so that nobody reads it.
//
// Only the owner of a ring ever touches it: rings are made for a single issuer, and the kernel does their work when the owner
// enters them (SINGLE_ISSUER, DEFER_TASKRUN), which costs least. Others ask: they put the descriptor into the owner's inbox,
// and wake the owner.
//
// What is in the kernel keeps the file open. So close() shuts a connection down, and the ring's owner cancels the polls when it
// next enters the ring. A descriptor is used again only when the last completion for it has come: none comes too late.
//
// An owner that computes sees nothing of its ring. The guard notices that within 10 ms, by a flag that the kernel sets, and
// wakes an idle worker, which asks the system for the readiness of what is waited for there (poll()).
//
// Files. The owner's own tasks have its ring do calls about files (ring_call.hpp), which it hands to the kernel together: when it
// has looked for jobs twice and found none, or has done some sixty, or as it falls asleep. A completion waits for the owner, as
// all in its ring: nobody can take it for one that computes.
//
// Losses. The kernel keeps completions that find no room, by memory that it allocates then; where it gets none it drops them, and
// counts. What it drops is the last completion of something. The owner then finds out what the kernel has no more
// (find_lost() in uring_lost.cpp): a poll that is over is armed anew; a call that is over has failed, or is done again.
//
// Rejected: (a) a signal that has the computing owner enter its ring. It would end system calls of programs early, and take a
// signal from them. (b) Rings that any thread may enter: 1.2 to 2.5 times the processor time. (c) Completions that others
// reap: they have to wait for the owner anyway.
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

/// How a worker sleeps, and its ring.
class uring_worker final : public parker, public call_ring {
 public:
  /// Throws error.
  explicit uring_worker(uring& of);
  ~uring_worker() override;
  /// A negative error number: the system refuses it. At last by a smaller ring.
  int make_ring(ring_size& size) noexcept { return ring_.make(size); }

  void prepare() noexcept override { word_.prepare(); }
  void commit(time_point until) noexcept override;
  void wake() noexcept override;
  bool poll(bool between_jobs) noexcept override;

  /// Any thread: has its owner arm a direction, or let go of the descriptor (`retire`).
  void ask(descriptor& one, std::uint32_t what) noexcept;
  static constexpr std::uint32_t bit(direction which) noexcept { return which == direction::in ? 1 : 2; }
  static constexpr std::uint32_t retire = 4;

  bool begin(ring_call& one, root& self) noexcept override;
  void cancel(ring_call& one) noexcept override;

  /// By the guard: whether it runs the same job as at the last look, while something waits in its ring.
  bool is_stuck() noexcept;
  std::atomic<bool> has_stuck{false};  // since a look of the guard. A hint, no edge

  io_stats so_far() const noexcept;

 private:
  static constexpr std::uint64_t of_nobody = 0, of_bell = 1;  // user data that is no address
  // In an address: of a descriptor's direction; of a call.
  static constexpr std::uint64_t of_out = 1, of_call = 2;
  static std::uint64_t packed(const descriptor& one, direction which) noexcept {
    return reinterpret_cast<std::uintptr_t>(&one) | (which == direction::in ? 0 : of_out);
  }

  bool is_here() const noexcept { return owner_.load(std::memory_order_relaxed) == this_owner(); }  // as declared
  static std::uintptr_t this_owner() noexcept;
  void begin_here() noexcept;
  void listen_to_bell() noexcept;
  void perform(descriptor* asked) noexcept;
  void perform_one(descriptor& one) noexcept;
  bool arm(descriptor& one, direction which) noexcept;
  bool cancel(descriptor& one) noexcept;
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
    figure.store(figure.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);  // its owner's alone writes
  }

  uring* const of_;
  kernel_ring ring_;
  const int bell_;
  bool hears_bell_ = false;  // its owner's: the ring polls the eventfd
  bool has_slept_ = false;   // its owner's: since it has last told the guard
  // Its owner's: there are calls that the kernel has not got, and it has looked for jobs in vain since the last one.
  bool has_calls_ = false, has_found_none_ = false;
  bool has_ended_some_ = false;     // its owner's: since the last look, calls that were in its inbox
  std::size_t out_ = 0;             // its owner's: directions that the kernel polls, and calls that it does
  bool misses_some_ = false;        // its owner's: it was about to sleep, and completions were lost
  unsigned lost_ = 0;               // its owner's: completions of which it has found out what they were
  ring_call* under_way_ = nullptr;  // its owner's: a list of the calls that the kernel does
  inbox<descriptor> inbox_;         // of descriptors that others ask something for
  inbox<waiter> calls_;             // of calls that others stop
  sleep_word word_;
  std::atomic<std::uintptr_t> owner_{0};  // its thread; relaxed: another one finds that it is none, whatever it reads
  // Figures, no edge.
  std::atomic<std::uint64_t> waits_{0}, changes_{0}, interrupts_{0}, looks_{0};
  std::atomic<bool> has_unfinished_{false};  // submissions or completions that it has not come to. A hint, no edge
  std::uint64_t looks_seen_ = 0;             // the guard's
};

class uring final : public io_service, private io_guard {
 public:
  /// Throws error.
  explicit uring(unsigned workers, ring_size size = {});
  ~uring();
  /// 0, or why the system refuses rings.
  int make_rings() noexcept;

  using io_guard::begin;
  using io_guard::end;
  uring_worker& worker(unsigned which) noexcept { return *workers_[which]; }
  void arm(descriptor& one, direction which) noexcept override;
  call_ring* ring_here() noexcept override;
  bool keeps_open(const descriptor& one) const noexcept override {
    return one.is_armed(direction::in) || one.is_armed(direction::out);
  }
  void stop_watching(int) noexcept override {}  // the rings keep it open, not the number

  ring_size size() const noexcept { return size_; }
  io_stats stats() const noexcept;

 private:
  friend class uring_worker;

  bool needs_one() noexcept override;
  int begin_to_watch(descriptor& one) noexcept override;
  bool retire(descriptor& one) noexcept override;
  bool look_after_stuck(const uring_worker& by) noexcept;
  void look_after(uring_worker& stuck) noexcept;

  std::vector<std::unique_ptr<uring_worker>> workers_;
  ring_size size_;
  std::atomic<unsigned> next_home_{0};     // for who is no worker. No edge: any will do
  std::atomic<bool> is_any_stuck_{false};  // some worker `has_stuck`. A hint, no edge
};

}  // namespace weft::detail
