// A fence whose price one side pays. Two threads that each write one word and then read the other's must not both miss
// the other's write; by the book, each needs a sequentially consistent fence in between. Where one side does it a hundred
// million times a second and the other a few thousand times, the frequent side keeps only the compiler from reordering,
// and the rare one asks the kernel (membarrier) for a fence on every processor that runs this process.
//
// Where the kernel refuses, both are ordinary fences.
//
// No model: what a pair orders is the same either way, so models have two ordinary ones in its place, and miss each.
#pragma once

#include <atomic>

namespace weft::detail {

/// Whether the kernel makes the rare side's fences. Set once, before the first thread that shares something by them; others
/// may ask, and learn it late. No edge. Hidden, so that it is read without a look where it lies: 6 % of skynet.
[[gnu::visibility("hidden")]] extern constinit std::atomic<bool> fences_are_asymmetric;

/// Whether the frequent side's are free.
inline bool light_fences_are_free() noexcept { return fences_are_asymmetric.load(std::memory_order_relaxed); }

/// Asks the kernel. By whoever makes threads that will use these fences; any number of times.
void prepare_fences() noexcept;

/// The frequent side's, between its write and its read.
inline void light_fence() noexcept {
  if (light_fences_are_free()) [[likely]]
    std::atomic_signal_fence(std::memory_order_seq_cst);
  else
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

/// The same, by who knows that it is free: who has been told so once.
inline void free_fence() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }

/// The rare side's. Some 130 ns alone, 400 where other processors are busy with this process.
void heavy_fence() noexcept;

}  // namespace weft::detail
