// The memory of a run: it lists all frames, and fails an allocation when told to. Part of the test kit.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <mutex>
#include <string>
#include <weft/detail/memory/frame_memory.hpp>

namespace weft::test::detail {

/// Which allocation of the calling thread fails. Counts allocations of frames and of operator new, while it is armed.
struct allocation_faults {
  bool armed = false;
  std::size_t count = 0;    // so far
  std::size_t fail_at = 0;  // the one that fails, from 1 on; 0: none
  bool all_fail = false;

  /// Counts an allocation. True: it is to fail.
  bool next() noexcept { return armed && (++count == fail_at || all_fail); }
};
allocation_faults& faults_of_thread() noexcept;

/// While this lives, the calling thread's allocations are the kit's own, and neither counted nor failed.
class kit_allocates {
 public:
  kit_allocates() noexcept : before_{faults_of_thread().armed} { faults_of_thread().armed = false; }
  kit_allocates(const kit_allocates&) = delete;
  ~kit_allocates() { faults_of_thread().armed = before_; }

 private:
  bool before_;
};

/// Where the frames of one run come from. Each block is in a list, with the stack of its allocation.
class frame_tracker final : std::pmr::memory_resource {
 public:
  frame_tracker() = default;
  frame_tracker(const frame_tracker&) = delete;

  weft::detail::frame_source& source() noexcept { return source_; }
  std::pmr::memory_resource* resource() noexcept { return this; }

  /// How many frames are alive.
  std::size_t live() const noexcept;
  /// Describes them for people.
  std::string describe() const;
  /// By any thread: whether this frame is alive. `maker`: the function that made it; null if that was outside of all tasks.
  bool find_maker(const void* frame, const void*& maker) const noexcept;

 private:
  struct block;

  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override;
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  mutable std::mutex lock_;  // of the list
  block* newest_ = nullptr;
  std::size_t live_ = 0;
  weft::detail::frame_source source_{this, true};  // counts frames, too; ends the program if one outlives it
};

}  // namespace weft::test::detail
