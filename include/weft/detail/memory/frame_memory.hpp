// Where coroutine frames live that the compiler did not place in their caller's frame.
//
// Each worker owns a heap of size classes: a free block of the class if there is one, else the next bytes of the
// current slab; a freed block that is on top of the slab is popped, any other goes to its class's list. Fork/join and
// call chains are last-in-first-out, so they run on a few hot lines. A frame freed by another worker finds its owner
// by masking its address, and waits on that owner's list until a slab ends there.
//
// A frame from a resource that the caller chose has two words before it: the resource, and how to give it back. Which
// kind a frame is, one bit of its address tells: a worker's blocks are aligned to 32 bytes, all others lie 16 off.
//
// Below a scope or a with_memory that chose a resource, every frame comes from there, with no change to any signature: the
// worker knows the source of the work that it runs, and allocate_frame is the one place that asks. A source counts its
// frames, so that one which outlives its block is found there and not by what reads freed memory.
//
// Rejected: lists alone (15.2 to 15.5 ns a call of fib against 13.5 to 14.3), pure last-in-first-out (a frame freed
// out of order would hold all that lies below it), a resource word in every frame (8 bytes of each for the few).
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <tuple>  // std::allocator_arg_t
#include <weft/detail/base/config.hpp>
#include <weft/detail/base/forward.hpp>

namespace weft {

class executor;

namespace detail {

struct worker;

/// A worker's heap has a class for each multiple of this, up to that; above it, eight a doubling up to `large_frame`.
inline constexpr std::size_t frame_granule = 32, small_frame = 4096, large_frame = std::size_t{64} << 10;
inline constexpr std::size_t frame_classes =
    small_frame / frame_granule + (std::bit_width(large_frame) - std::bit_width(small_frame)) * 8 + 1;
/// What a frame of `size` takes there; 0: it is not small. Where frames are made and destroyed, a constant.
constexpr std::size_t small_frame_bytes(std::size_t size) noexcept {
  return size <= small_frame ? (size + frame_granule - 1) & ~(frame_granule - 1) : 0;
}

struct free_block {
  free_block* next;
  std::size_t size_class;  // only for a block on its way home
};

class frame_source;
class request_trace;

/// Where a worker's frames come from, what its heap hands out next, and takes back on top: all that a program's own code
/// knows of it.
struct frame_front {
  frame_source* memory = nullptr;  // what the work that runs has chosen; null: the heap
  std::byte* bump = nullptr;       // the next bytes of the current slab, as `end`
  std::byte* end = nullptr;
  std::size_t cached = 0;  // bytes in the lists
  free_block* lists[frame_classes]{};

  /// `bytes` as small_frame_bytes() gives them. What `otherwise` gives, if there is neither a block nor room.
  template <class Otherwise>
  WEFT_ALWAYS_INLINE void* take(std::size_t bytes, Otherwise otherwise) {
    free_block*& list = lists[bytes / frame_granule];
    if (free_block* const block = list) {
      list = block->next;
      cached -= bytes;
      return block;
    }
    std::byte* const block = bump;
    if (reinterpret_cast<std::uintptr_t>(block) + bytes > reinterpret_cast<std::uintptr_t>(end)) [[unlikely]]
      return otherwise();
    bump = block + bytes;
    return block;
  }
  /// False: the block is not on top, or of another heap.
  WEFT_ALWAYS_INLINE bool take_back(void* block, std::size_t bytes) noexcept {
    if (static_cast<std::byte*>(block) + bytes != bump) [[unlikely]]
      return false;
    bump = static_cast<std::byte*>(block);
    return true;
  }
};

#if WEFT_INLINES_FRAMES
/// The calling thread's, or an empty one: before the thread's first frame, and where the address sanitizer watches, for
/// which each frame is a block of its own from `operator new`: it says who made and freed it, and does not hand it out again
/// soon. So nothing here knows of it, and objects that were compiled with it and without go together. The
/// compiler can't keep it over a suspension, behind which the thread may be another: it knows neither what is read here nor
/// that it is the same each time.
WEFT_ALWAYS_INLINE inline frame_front& frames_here() noexcept {
  frame_front* here;
  asm volatile(
      "movq weft_frames_here@gottpoff(%%rip), %0\n\t"
      "movq %%fs:(%0), %0"
      : "=r"(here));
  return *here;
}
#endif

[[nodiscard]] void* allocate_small_frame(std::size_t size, std::size_t bytes);
[[nodiscard]] void* allocate_large_frame(std::size_t size);
void free_small_frame(void* frame, std::size_t size, std::size_t bytes) noexcept;
void free_large_frame(void* frame, std::size_t size) noexcept;

/// What stands before a frame that no worker's heap gave.
struct alignas(16) foreign_frame_header {
  void* resource;
  void (*release)(void* resource, void* block, std::size_t frame_size) noexcept;
};

/// What is asked of a resource for a frame of `size`: its header, too, and a size that is a multiple of the alignment,
/// without which libstdc++'s pool resources (12) do not keep the alignment.
inline constexpr std::size_t foreign_frame_alignment = 32;  // so that the frame, after its header, lies 16 off
constexpr std::size_t foreign_frame_bytes(std::size_t size) noexcept {
  return (sizeof(foreign_frame_header) + size + foreign_frame_alignment - 1) & ~(foreign_frame_alignment - 1);
}

/// Puts the header into a block for a frame, which begins behind it. Ends the program if the block is not aligned.
void* begin_foreign_frame(void* block, const foreign_frame_header& header) noexcept;

/// Allocates a frame from `resource` (std::pmr::memory_resource or one shaped like it), which must outlive the frame.
template <class Resource>
[[nodiscard]] void* allocate_frame(std::size_t size, Resource& resource) {
  void* block = resource.allocate(foreign_frame_bytes(size), foreign_frame_alignment);
  return begin_foreign_frame(block, {&resource, [](void* from, void* old, std::size_t bytes) noexcept {
                                       static_cast<Resource*>(from)->deallocate(old, foreign_frame_bytes(bytes),
                                                                                foreign_frame_alignment);
                                     }});
}

/// A resource that frames come from, and how many of them are alive. Lives in the frame that chose the resource, and
/// ends the program if one of its frames is left.
///
/// Where it is not shared, it keeps one freed block of each small size for the next frame of that size, so a loop of forks
/// goes round one hot block, also above a resource that never uses memory again. The rest goes back at once.
class frame_source {
 public:
  /// `shared`: the resource may be used by several executors at once. Belongs to the trace of the work that runs, if any.
  frame_source(std::pmr::memory_resource* resource, bool shared) noexcept;
  /// No memory of its own: counts for `trace` what is taken from `outer`, or where that is null from the worker's heap.
  frame_source(request_trace& trace, frame_source* outer) noexcept;
  frame_source(const frame_source&) = delete;
  ~frame_source();

  [[nodiscard]] void* allocate(std::size_t size);

  std::pmr::memory_resource* resource() const noexcept { return resource_; }
  bool is_shared() const noexcept { return keeps_below_ == 0; }
  /// The traced request that this work is a part of; null: it is none.
  request_trace* trace() const noexcept { return trace_; }
  std::size_t live() const noexcept { return live_.load(std::memory_order_relaxed); }  // read where all has ended

  /// Gives back the blocks that are kept. By who may allocate. False: there were none.
  bool trim() noexcept;

  /// By a worker that begins to run work of `where` (null: of no executor, so of this worker): ends the program if
  /// another one has used a source that is not shared.
  void enter(const executor* where, const worker& here) noexcept;

 private:
  static constexpr std::size_t kept_sizes = 16;  // one for each multiple of the alignment
  static constexpr std::size_t most_kept = kept_sizes * foreign_frame_alignment;

  std::size_t live_in_here() const noexcept;
  [[nodiscard]] void* allocate_anew(std::size_t bytes);
  [[nodiscard]] void* allocate_traced(std::size_t size);
  [[nodiscard]] void* ask_resource(std::size_t bytes);
  void give_back(void* block, std::size_t bytes) noexcept;
  static void release(void* source, void* block, std::size_t frame_size) noexcept;

  std::pmr::memory_resource* resource_;
  std::size_t keeps_below_;  // so large blocks; 0: none, since it is shared
  frame_source* outer_;      // of one that only counts: where frames come from
  request_trace* trace_;
  // Frames that were not given back. Where the source is not shared, only one worker at a time has it, and what orders
  // its work orders this, too: relaxed, and no read-modify-write. There `busy` is added while a thread is in
  // allocate(): whoever finds it ends the program, and two that miss each other are what the declaration says is not so.
  std::atomic<std::size_t> live_{0};
  // Who uses it: an executor, or a worker. Relaxed: who finds another one there ends the program.
  std::atomic<const void*> user_{nullptr};
  // By size; null: none. With their headers. Used as the count is; of a shared source always null.
  foreign_frame_header* kept_[kept_sizes]{};
};

/// Allocates `size` bytes aligned to 16: from the source of the work that runs, if it has one, else from the calling
/// worker's heap. Throws std::bad_alloc. Cost: some 1 ns.
[[nodiscard]] WEFT_ALWAYS_INLINE inline void* allocate_frame(std::size_t size) {
  const std::size_t bytes = small_frame_bytes(size);
  if (bytes == 0) return allocate_large_frame(size);
#if WEFT_INLINES_FRAMES
  frame_front& here = frames_here();
  if (here.memory != nullptr) [[unlikely]]
    return here.memory->allocate(size);
  return here.take(bytes, [=] { return allocate_small_frame(size, bytes); });
#else
  return allocate_small_frame(size, bytes);
#endif
}

/// Frees what any function of this header allocated, on any thread.
WEFT_ALWAYS_INLINE inline void free_frame(void* frame, std::size_t size) noexcept {
  if constexpr (WEFT_FILLS_FRAMES) std::memset(frame, 0xdd, size);
  const std::size_t bytes = small_frame_bytes(size);
  if (bytes == 0) return free_large_frame(frame, size);
#if WEFT_INLINES_FRAMES
  if (frames_here().take_back(frame, bytes)) [[likely]]
    return;
#endif
  free_small_frame(frame, size, bytes);
}

/// What all of this aligns a frame to. One of a coroutine with a parameter, variable or result that needs more lies somewhere
/// inside of a larger block, whose address stands before it, and whose first word leads to it.
inline constexpr std::size_t frame_alignment = 16;
constexpr std::size_t block_bytes(std::size_t size, std::size_t alignment) noexcept {
  return alignment > frame_alignment ? size + alignment : size;
}
WEFT_ALWAYS_INLINE inline void* frame_in(void* block, std::size_t alignment) noexcept {
  if (alignment <= frame_alignment) return block;
  auto** const frame =
      reinterpret_cast<void**>((reinterpret_cast<std::uintptr_t>(block) + alignment) & ~(alignment - 1));
  *static_cast<void**>(block) = frame;
  frame[-1] = block;
  return frame;
}
WEFT_ALWAYS_INLINE inline void* block_of(void* frame, std::size_t alignment) noexcept {
  return alignment > frame_alignment ? static_cast<void**>(frame)[-1] : frame;
}

/// Until the end of the block, frames come from `source` (null: from the worker's heap).
class ambient_memory {
 public:
  explicit ambient_memory(frame_source* source) noexcept;
  ambient_memory(const ambient_memory&) = delete;
  ~ambient_memory();

 private:
  frame_source* outer_;
};

/// What a thread that sleeps in weft does once a second, at `now`, in milliseconds of a steady clock: gives back what the
/// calling worker, and those that it freed frames of, have not needed for long. True: there is more, so do it again.
bool age_frame_memory(long now) noexcept;

/// Base of what is no coroutine and lies in frame memory all the same.
struct frame_allocated {
  static void* operator new(std::size_t size) { return allocate_frame(size); }
  static void operator delete(void* it, std::size_t size) noexcept { free_frame(it, size); }
};

/// Base of every promise: its frame comes from the worker, or from what follows a std::allocator_arg. Of no other type: only
/// inside of a coroutine does the compiler say what a frame must be aligned to.
struct promise_allocated {
  [[gnu::always_inline]] static inline void* operator new(std::size_t size) {
    const std::size_t alignment = WEFT_FRAME_ALIGNMENT(size);
    return frame_in(allocate_frame(block_bytes(size, alignment)), alignment);
  }

  // f(std::allocator_arg, resource or polymorphic_allocator, ...). Inlined, since g++ takes a template for no match of
  // the operator delete below, and warns.
  template <class From, class... Args>
  [[gnu::always_inline]] static inline void* operator new(std::size_t size, std::allocator_arg_t, const From& from,
                                                          const Args&...) {
    const std::size_t alignment = WEFT_FRAME_ALIGNMENT(size);
    return frame_in(allocate_frame(block_bytes(size, alignment), resource_of(from)), alignment);
  }
  // The same for a member function or a lambda's call operator: the object comes first.
  template <class Self, class From, class... Args>
  [[gnu::always_inline]] static inline void* operator new(std::size_t size, const Self&, std::allocator_arg_t,
                                                          const From& from, const Args&...) {
    const std::size_t alignment = WEFT_FRAME_ALIGNMENT(size);
    return frame_in(allocate_frame(block_bytes(size, alignment), resource_of(from)), alignment);
  }

  [[gnu::always_inline]] static inline void operator delete(void* frame, std::size_t size) noexcept {
    const std::size_t alignment = WEFT_FRAME_ALIGNMENT(size);
    free_frame(block_of(frame, alignment), block_bytes(size, alignment));
  }

 private:
  template <class From>
  static auto& resource_of(const From& from) {
    if constexpr (requires { from->allocate(std::size_t{}, std::size_t{}); }) {
      return *from;
    } else {
      static_assert(
          requires { from.resource()->allocate(std::size_t{}, std::size_t{}); },
          "after std::allocator_arg, weft takes a std::pmr::memory_resource* or a polymorphic_allocator");
      return *from.resource();
    }
  }
};

}  // namespace detail
}  // namespace weft
