// A piece of address space that a pool cuts stacks from, and the list of all of them, which is read when a stack has run
// over: in a signal handler, so a region's record is never freed, but used again.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <weft/detail/stack_pool.hpp>

#include "detail/stack_guard.hpp"

namespace weft::detail {

class stack_region {
 public:
  static constexpr std::size_t colours = 24, colour_bytes = 128;
  static_assert((colours - 1) * colour_bytes + sizeof(stack_header) + free_above_stack <= page_bytes);

  /// Of `slots` slots, for stacks of `usable` bytes. Throws std::bad_alloc.
  static stack_region& make(const stack_pool_options& options, stack_guard guard, std::size_t usable,
                            std::size_t slots);
  /// None of its stacks is in use any more.
  void end(std::pmr::memory_resource* memory) noexcept;

  /// The region whose slots `address` lies in; null: none's. In a signal handler, too.
  static stack_region* of(const void* address) noexcept;

  bool is_full() const noexcept { return cut_ == slots_ && cold_count_ == 0; }

  /// A slot that nothing runs on, guarded, with a header. Throws where the system has no more guards.
  stack_header& take(stack_pool& pool, std::uint16_t size_class, bool zeroed);

  /// Its memory goes back to the system.
  void cool(stack_header& one) noexcept;

  stack_header& header_of(std::size_t slot) noexcept;
  std::size_t slot_of(const void* address) const noexcept {
    return static_cast<std::size_t>(static_cast<const std::byte*>(address) - begin()) / slot_bytes_;
  }
  std::byte* slot_begin(std::size_t slot) const noexcept { return begin() + slot * slot_bytes_; }
  std::size_t guard_bytes() const noexcept { return guard_ == stack_guard::none ? 0 : guard_bytes_; }
  std::size_t slot_bytes() const noexcept { return slot_bytes_; }
  std::size_t bytes() const noexcept { return slots_ * slot_bytes_; }
  std::size_t cut() const noexcept { return cut_; }
  std::size_t cold() const noexcept { return cold_count_; }

  stack_region* next_of_class = nullptr;  // for the pool

 private:
  explicit stack_region(std::size_t slots);

  std::byte* begin() const noexcept { return begin_.load(std::memory_order_relaxed); }

  // Null: in no pool. Relaxed: a reader in a signal handler asks about the stack that its own thread runs on.
  std::atomic<std::byte*> begin_{nullptr};
  stack_region* next_in_all_ = nullptr;  // written before the region enters the list
  std::size_t slots_;
  std::size_t slot_bytes_ = 0;
  std::size_t guard_bytes_ = 0;
  std::size_t cut_ = 0;  // so many slots have a guard and had a header
  std::size_t cold_count_ = 0;
  std::unique_ptr<std::uint32_t[]> cold_;  // slots whose memory went back
  std::unique_ptr<unsigned[]> known_to_valgrind_;
  stack_guard guard_ = stack_guard::none;
  bool coloured_ = true;
};

}  // namespace weft::detail
