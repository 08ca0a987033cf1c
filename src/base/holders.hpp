// How many hold something: whoever is the last to let go sees to its end.
#pragma once

#include <atomic>
#include <cstdint>
#include <weft/detail/base/atomic.hpp>

namespace weft::detail {

class holders {
 public:
  explicit holders(std::uint32_t first) noexcept : count_{first} {}

  /// By one that holds it, for another one.
  void add() noexcept { count_.fetch_add(1, std::memory_order_relaxed); }  // there is one, so it is not at its end
  /// Takes that back, by the same: the other one has never been.
  void take_back() noexcept { count_.fetch_sub(1, std::memory_order_relaxed); }  // nothing was done with it
  /// By one that goes. True: it was the last.
  [[nodiscard]] bool let_go() noexcept {
    return count_.fetch_sub(1, std::memory_order_acq_rel) == 1;  // -> gone, <- gone
  }

 private:
  //   edge gone  all that a holder did with it  ->  the last one, which ends it
  atomic<std::uint32_t> count_;
};

}  // namespace weft::detail
