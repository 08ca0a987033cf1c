// A region: a piece of address space that a pool cuts stacks from. A list has all regions. A signal handler reads it when a
// stack has overflowed, so a region's record is never freed, but reused.
//
// Its slots, from the first one on:
//
//     cut: handed out once, and now in use, idle in the pool, or cold | guarded: ready to be cut | nothing yet
//
// `cold_` has the numbers of the cold slots, last in, first out; the last `warmed_` of them have their first page again.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <weft/stack_pool.hpp>

#include "stack/stack_guard.hpp"

namespace weft::detail {

class stack_region {
 public:
  static constexpr std::size_t colours = 23, colour_bytes = 128;
  static_assert((colours - 1) * colour_bytes + sizeof(stack_header) + free_above_stack <= page_bytes);

  /// Makes a region of `slots` slots, for stacks of `usable` bytes. Throws std::bad_alloc.
  static stack_region& make(stack_pool& pool, const stack_pool_options& options, stack_guard guard, std::uint16_t of,
                            std::size_t usable, std::size_t slots);
  /// Frees the address space. None of its stacks is in use any more.
  void end(std::pmr::memory_resource* memory) noexcept;

  /// Frees the records that no pool uses, when the library is unloaded.
  static void forget_all() noexcept;

  /// The region in whose slots `address` lies; null: in none's. May be called in a signal handler.
  static stack_region* of(const void* address) noexcept;

  bool is_full() const noexcept { return cut_ == slots_ && cold_count_ == 0; }

  /// Takes a slot that nothing runs on; it has a guard and a header. Throws if the system refuses a guard.
  stack_header& take();

  /// Adds a slot to the cold ones; the caller then lets go of memory_of(one). True: the region was full, and has room now.
  bool cool(const stack_header& one) noexcept;
  iovec memory_of(const stack_header& one) const noexcept;

  /// Gives back the first pages that were made resident in advance and are not used.
  void let_go_of_ready() noexcept;

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

  stack_pool& pool() const noexcept { return *pool_; }

  stack_region* next_of_class = nullptr;   // a list of the pool's; of a spare record: the next spare one
  stack_region* next_with_room = nullptr;  // a list of the pool's: the next region that is not full

 private:
  static constexpr std::size_t most_at_once = 64;
  using batch = std::array<iovec, most_at_once>;

  explicit stack_region(std::size_t slots);
  std::size_t ready_at_once() const noexcept;
  iovec first_page_of(std::size_t slot) noexcept;
  void guard_more();
  void warm() noexcept;

  std::byte* begin() const noexcept { return begin_.load(std::memory_order_relaxed); }

  // Null: in no pool. Relaxed: a reader in a signal handler asks about the stack that its own thread runs on.
  std::atomic<std::byte*> begin_{nullptr};
  stack_region* next_in_all_ = nullptr;  // written before the region enters the list
  stack_pool* pool_ = nullptr;
  std::size_t slots_;
  std::size_t slot_bytes_ = 0;
  std::size_t first_colour_ = 0;
  std::size_t guard_bytes_ = 0;
  std::size_t cut_ = 0;      // how many slots were handed out once
  std::size_t guarded_ = 0;  // how many have a guard, and, from cut_ on, perhaps their first page
  std::size_t cold_count_ = 0;
  std::size_t warmed_ = 0;
  bool populated_ = false;                 // the slots that are guarded and not cut have their first page
  std::unique_ptr<std::uint32_t[]> cold_;  // slots whose memory went back
  std::unique_ptr<unsigned[]> known_to_valgrind_;
  std::uint16_t size_class_ = 0;
  stack_guard guard_ = stack_guard::none;
  bool coloured_ = true;
  bool of_system_ = true;  // mapped, and not of a resource: zero at first, and can be let go of
  bool huge_pages_ = false;
};

}  // namespace weft::detail
