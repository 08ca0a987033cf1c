// A count of references: whoever drops the last one destroys the object.
#pragma once

#include <atomic>
#include <cstdint>
#include <weft/detail/base/atomic.hpp>

namespace weft::detail {

class ref_count {
 public:
  explicit ref_count(std::uint32_t first) noexcept : count_{first} {}

  /// By a holder, for another one.
  void add() noexcept { count_.fetch_add(1, std::memory_order_relaxed); }  // the caller holds it, so it is not 0
  /// Takes an add() back, by the same holder: the other one does not come to be.
  void take_back() noexcept { count_.fetch_sub(1, std::memory_order_relaxed); }  // nothing was done with it
  /// By a holder, which it is not any more. True: it was the last.
  [[nodiscard]] bool let_go() noexcept {
    return count_.fetch_sub(1, std::memory_order_acq_rel) == 1;  // -> gone, <- gone
  }

 private:
  //   edge gone  all that a holder did with the object  ->  the last one, which destroys it
  atomic<std::uint32_t> count_;
};

}  // namespace weft::detail
