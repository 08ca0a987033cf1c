// What a strand is: its queue, and the turn, the one job that it has in the executor below while there is something to do.
//
// The core belongs to the strand and to the turn: a strand may be destroyed by a job of its own, or, since whoever waited
// for the last job may go on before that has returned, while a turn ends. Whoever comes last deletes.
#pragma once

#include <atomic>
#include <cstdint>
#include <weft/executor.hpp>

#include "sched/serial_queue.hpp"

namespace weft::detail {

class strand_core final : private job {
 public:
  /// `itself`: the strand, which is known by its address to those that stand on it.
  strand_core(const executor& itself, executor& below) noexcept : itself_{&itself}, below_{&below} { run = serve; }

  void post(job& work) noexcept {
    if (jobs_.put(work)) below_->post(*this);  // else this may be gone
  }
  bool is_inside() const noexcept;
  executor& below() const noexcept { return *below_; }
  /// The strand goes.
  void release() noexcept;

 private:
  static constexpr unsigned most_in_a_row = 32;

  static void serve(job& turn) noexcept;
  void run_one(job& work) noexcept;

  const executor* itself_;
  executor* below_;
  serial_queue<job> jobs_;
  // What has been taken and not run, oldest first. Written by whose turn it is; relaxed, since the turn carries it. Who
  // destroys the strand meanwhile, which is a mistake then, looks, too.
  std::atomic<job*> taken_{nullptr};
  // The thread that is at a job; 0: none. Relaxed: a thread looks for what it wrote itself.
  std::atomic<std::uintptr_t> server_{0};
};

}  // namespace weft::detail
