// The set of processors that a thread may run on, which it hands on to the threads and processes that it starts.
#pragma once

#include <array>

namespace weft::detail {

class processor_set {
 public:
  /// Of the calling thread. Empty where it can't be read.
  static processor_set here() noexcept;
  /// Has the calling thread run on these alone. Does nothing for an empty set, or where the system refuses.
  void hold_here() const noexcept;

 private:
  std::array<unsigned long, 128> bits_{};
  bool is_known_ = false;
};

/// Notes that the calling thread is pinned, and where it might run otherwise. `before` outlives the thread.
void is_pinned_here(const processor_set& before) noexcept;

/// While this lives, a pinned thread may run wherever the maker of its pool might. So what it starts meanwhile, a thread or a
/// process, does not share its one processor. Costs nothing on other threads. No other fiber may run meanwhile.
class as_unpinned {
 public:
  as_unpinned() noexcept;
  as_unpinned(const as_unpinned&) = delete;
  ~as_unpinned() {
    if (is_pinned_) pinned_.hold_here();
  }

 private:
  bool is_pinned_;
  processor_set pinned_;
};

}  // namespace weft::detail
