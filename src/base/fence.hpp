// An asymmetric fence, whose cost one side pays. Two threads that each write one word and then read the other's must not
// both miss the other's write; by the book, each needs a sequentially consistent fence in between. Where one side does it a
// hundred million times a second and the other a few thousand times, the frequent side keeps only the compiler from
// reordering, and the rare one asks the kernel (membarrier) for a fence on every processor that runs this process.
//
// Where the kernel refuses, both are ordinary fences.
//
// No model: a pair of these orders the same as two ordinary fences, which models have in their place; and a model fails
// without either of those.
#pragma once

#include <atomic>

namespace weft::detail {

/// Whether the kernel makes the rare side's fences. Set once, before the first thread that shares something by them; others
/// may ask, and learn it late. No edge. Hidden, so that it is read without a look where it lies: 6 % of skynet.
[[gnu::visibility("hidden")]] extern constinit std::atomic<bool> fences_are_asymmetric;

/// Whether fences of the frequent side are free.
inline bool light_fences_are_free() noexcept { return fences_are_asymmetric.load(std::memory_order_relaxed); }

/// Asks the kernel for these fences. Called, any number of times, before threads are made that use them.
void prepare_fences() noexcept;

/// The fence of the frequent side, between its write and its read.
inline void light_fence() noexcept {
  if (light_fences_are_free()) [[likely]]
    std::atomic_signal_fence(std::memory_order_seq_cst);
  else
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

/// The same where light_fences_are_free() was true once.
inline void free_fence() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }

/// The fence of the rare side, between its write and its read. Some 130 ns alone, 400 where other processors are busy with
/// this process.
void heavy_fence() noexcept;

/// The fence of both sides where neither of them is frequent: an ordinary one. It pairs with heavy_fence(), too.
inline void full_fence() noexcept { std::atomic_thread_fence(std::memory_order_seq_cst); }

}  // namespace weft::detail
