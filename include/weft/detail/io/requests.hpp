// What others ask of the owner of something that is theirs, too: bits in a word, and the thing lies in its owner's inbox as
// long as there are any.
#pragma once

#include <atomic>
#include <cstdint>
#include <weft/detail/base/atomic.hpp>

namespace weft::detail {

class requests {
 public:
  /// Any thread. True: there were none, so the caller puts the thing into its owner's inbox.
  [[nodiscard]] bool add(std::uint32_t what) noexcept {
    return bits_.fetch_or(what, std::memory_order_acq_rel) == 0;  // ->, <- asks
  }
  /// By the owner, that has taken it out of its inbox: all of them.
  std::uint32_t take() noexcept { return bits_.exchange(0, std::memory_order_acq_rel); }  // ->, <- asks
  /// By the owner, where nobody else asks any more; a hint otherwise.
  bool any() const noexcept { return bits_.load(std::memory_order_relaxed) != 0; }  // as said: no edge

 private:
  //   edge asks  all that was done with it before it was asked for  ->  the owner that takes the request; and how the owner
  //              has taken it out of its inbox  ->  who puts it there again
  atomic<std::uint32_t> bits_{0};
};

}  // namespace weft::detail
