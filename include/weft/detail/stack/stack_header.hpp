// What stands at the top of each stack, and says whose it is.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::detail {

class stack_region;

/// Who runs on a stack: a type of callable, and its address where it is a function.
struct stack_user {
  const char* type = nullptr;  // from the compiler, of static duration
  const void* code = nullptr;  // null: the type says it
  bool operator==(const stack_user&) const = default;
};

/// What stands at the top of each stack.
struct alignas(64) stack_header {
  stack_header* next;        // in the pool's list
  std::byte* bottom;         // the lowest byte that may be used
  stack_region* region;      // null: the memory is the user's
  stack_user user;           // as the next: of whom runs on it, or ran last
  const char* name;          // what the user calls that one, or null
  void* fiber;               // the thread sanitizer's
  std::uint16_t size_class;  // where it is a pool's
  bool fresh;                // nothing ever ran on it, since its pages were zero
  bool guarded;
  unsigned known_to_valgrind;  // where the memory is the user's: its number

  std::byte* top() noexcept { return reinterpret_cast<std::byte*>(this); }
  std::size_t usable() const noexcept {
    return static_cast<std::size_t>(reinterpret_cast<const std::byte*>(this) - bottom);
  }
};
static_assert(sizeof(stack_header) == 64);

/// A pool's stack has so many bytes more than was asked for, whatever its colour: for what lies above the frames.
inline constexpr std::size_t free_above_stack = 1024;

/// Makes a stack of memory that is the user's. Ends the program if that is too small.
stack_header& stack_in(void* memory, std::size_t bytes) noexcept;

/// Gives back what take() or stack_in() gave; ends the program if it has run over.
void give_back_stack(stack_header& one) noexcept;

/// Before a thread switches to a stack for the first time: it gets an alternate signal stack, on which an overflow is
/// caught. Cheap where that was done.
void prepare_thread_for_stacks() noexcept;

/// Where the library is unloaded: all go.
void end_stacks() noexcept;

}  // namespace weft::detail
