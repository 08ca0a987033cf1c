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
// Rejected: lists alone (15.2 to 15.5 ns a call of fib against 13.5 to 14.3), pure last-in-first-out (a frame freed
// out of order would hold all that lies below it), a resource word in every frame (8 bytes of each for the few).
#pragma once

#include <cstddef>
#include <new>
#include <tuple>  // std::allocator_arg_t
#include <weft/detail/config.hpp>

namespace weft::detail {

/// Allocates `size` bytes aligned to 16 from the calling worker's heap. Throws std::bad_alloc. Cost: some 2 ns.
[[nodiscard]] void* allocate_frame(std::size_t size);

/// Frees what any function of this header allocated, on any thread.
void free_frame(void* frame, std::size_t size) noexcept;

/// What stands before a frame that no worker's heap gave.
struct alignas(16) foreign_frame_header {
  void* resource;
  void (*release)(void* resource, void* block, std::size_t bytes) noexcept;
};

/// Allocates a frame from `resource` (std::pmr::memory_resource or one shaped like it), which must outlive the frame.
template <class Resource>
[[nodiscard]] void* allocate_frame(std::size_t size, Resource& resource) {
  constexpr std::size_t alignment = 32;  // so that the frame, after its header, lies 16 off
  void* block = resource.allocate(sizeof(foreign_frame_header) + size, alignment);
  return ::new (block) foreign_frame_header{&resource,
                                            [](void* from, void* old, std::size_t bytes) noexcept {
                                              static_cast<Resource*>(from)->deallocate(old, bytes, alignment);
                                            }} +
         1;
}

/// What frames hold, in bytes. Threads: any; approximate while workers run.
struct frame_memory_stats {
  std::size_t slabs;   ///< taken from the system for all workers' frames, and not given back
  std::size_t cached;  ///< freed blocks that the calling worker keeps for its next frames
};
frame_memory_stats frame_memory_now() noexcept;

/// Gives every slab of the calling worker that holds no live frame back to the system.
void trim_frame_memory() noexcept;

/// Base of every promise: its frame comes from the worker, or from what follows a std::allocator_arg.
struct frame_allocated {
  static void* operator new(std::size_t size) { return allocate_frame(size); }

  // f(std::allocator_arg, resource or polymorphic_allocator, ...). Inlined, since g++ takes a template for no match of
  // the operator delete below, and warns.
  template <class From, class... Args>
  [[gnu::always_inline]] static inline void* operator new(std::size_t size, std::allocator_arg_t, const From& from,
                                                          const Args&...) {
    return allocate_frame(size, resource_of(from));
  }
  // The same for a member function or a lambda's call operator: the object comes first.
  template <class Self, class From, class... Args>
  [[gnu::always_inline]] static inline void* operator new(std::size_t size, const Self&, std::allocator_arg_t,
                                                          const From& from, const Args&...) {
    return allocate_frame(size, resource_of(from));
  }

  static void operator delete(void* frame, std::size_t size) noexcept { free_frame(frame, size); }

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

}  // namespace weft::detail
