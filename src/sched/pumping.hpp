// A loop over what an object has, each of which may destroy that object: the jobs of an executor that is pumped by hand, the
// timers of a clock. The loop knows by a record on its stack whether its object is still there; they nest.
#pragma once

namespace weft::detail {

class pumping {
 public:
  /// `innermost` is the object's, null outside of its loops.
  explicit pumping(pumping*& innermost) noexcept : innermost_{innermost}, outer_{innermost} {
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdangling-pointer"  // it does not see that the destructor takes it back
#endif
    innermost = this;
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
  }
  pumping(const pumping&) = delete;
  ~pumping() {
    if (!is_gone_) innermost_ = outer_;
  }

  /// Whether the object was destroyed in this loop.
  bool is_gone() const noexcept { return is_gone_; }

  /// By the object's destructor.
  static void end(pumping* innermost) noexcept {
    for (; innermost != nullptr; innermost = innermost->outer_) innermost->is_gone_ = true;
  }

 private:
  pumping*& innermost_;
  pumping* const outer_;
  bool is_gone_ = false;
};

}  // namespace weft::detail
