// How much memory coroutine frames hold, and how to give free memory back. The book's chapter on memory says where frames come
// from, and how long free memory is kept.
//
//     w::trim_frame_memory();                             // after a peak that does not come again
//     std::size_t held = w::frame_memory_now().slabs;
#pragma once

#include <cstddef>

namespace weft {

/// The memory held for frames, in bytes.
struct frame_memory_stats {
  std::size_t slabs;   ///< taken from the system for the frames of all threads, and not given back
  std::size_t cached;  ///< freed blocks that the calling thread's worker keeps for its next frames: a part of `slabs`
};

/// Counts the memory of frames, without that of frames from a resource of the program's own.
///
/// Threads   any, also one that has run no task. Approximate while others run.
/// Cost      two reads.
[[nodiscard]] frame_memory_stats frame_memory_now() noexcept;

/// Gives memory back to the system: each slab of the calling thread's worker that holds no live frame, and the free slabs that
/// the process keeps.
///
/// weft does this by itself, within some seconds. Call it after a peak that does not come again, or before you measure memory.
///
/// Threads   any; each gives back its own slabs.
/// Cost      a walk over the worker's free blocks, and a system call for each run of slabs that it gives back.
void trim_frame_memory() noexcept;

}  // namespace weft
