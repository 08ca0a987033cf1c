// A gate that is nearly always open, which many threads pass often and one closes seldom: for what a thread takes out of a
// place where a reader may be looking at it.
//
//   thread   takes it out; fence; looks at the gate; if that is closed, stays until it is open
//   reader   closes the gate; fence; looks at the places; reopens the gate
//
// Either the thread sees the gate closed, or the reader does not find what was taken out. So who has passed may destroy it. The
// fence of the thread costs nothing where the kernel makes that of the reader (fence.hpp); until that is known the gate is
// marked, and each thread makes an ordinary one.
#pragma once

#include <atomic>
#include <weft/detail/base/atomic.hpp>
#include <weft/detail/base/config.hpp>

#include "base/fence.hpp"
#include "base/spin.hpp"

namespace weft::detail {

class passing_gate {
 public:
  constexpr passing_gate() = default;
  passing_gate(const passing_gate&) = delete;

  /// By a thread that has taken something out.
  void pass() noexcept {
    free_fence();
    if (state_.load(std::memory_order_acquire) != open) [[unlikely]]  // <- read
      wait();
  }

  /// By a reader, one at a time.
  void close() noexcept {
    state_.fetch_or(is_closed, std::memory_order_relaxed);  // the fence orders it
    heavy_fence();
  }
  void reopen() noexcept { state_.fetch_and(~is_closed, std::memory_order_release); }  // -> read

  /// When the kernel has been asked for fences. Once they are free they stay so: it does not refuse later.
  void note_fences() noexcept {
    if (light_fences_are_free()) state_.fetch_and(~needs_fence, std::memory_order_relaxed);  // orders nothing
  }

 private:
  WEFT_SELDOM void wait() noexcept {
    full_fence();
    spin_wait spinning;
    while ((state_.load(std::memory_order_acquire) & is_closed) != 0) spinning.once();  // <- read
  }

  static constexpr unsigned open = 0, is_closed = 1, needs_fence = 2;

  //   edge read  the reader's last look at what it found  ->  the thread that passes
  //
  // test/model/walk_model.cpp fails without this edge, and without the fences.
  atomic<unsigned> state_{needs_fence};
};

}  // namespace weft::detail
