// Requests to the thread that owns an object: bits in a word of the object. While any bit is set, the object is in its owner's
// inbox.
#pragma once

#include <atomic>
#include <cstdint>
#include <weft/detail/base/atomic.hpp>

namespace weft::detail {

class requests {
 public:
  /// Any thread. True: no bit was set, so the caller must put the object into its owner's inbox.
  [[nodiscard]] bool add(std::uint32_t what) noexcept {
    return bits_.fetch_or(what, std::memory_order_acq_rel) == 0;  // ->, <- asks
  }
  /// By the owner, after it has taken the object out of its inbox: clears and returns all bits.
  std::uint32_t take() noexcept { return bits_.exchange(0, std::memory_order_acq_rel); }  // ->, <- asks
  /// Exact for the owner once no other thread makes requests; a hint otherwise.
  bool any() const noexcept { return bits_.load(std::memory_order_relaxed) != 0; }  // no edge: take() has it

 private:
  //   edge asks  all that was done with the object before the request  ->  the owner that takes the request; and the owner's
  //              removal of the object from its inbox  ->  the thread that puts it there again
  atomic<std::uint32_t> bits_{0};
};

}  // namespace weft::detail
