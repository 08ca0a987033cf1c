// Destroys frames that own other frames. A task that takes a task as its argument owns that one's frame, so a program can
// make a chain of any length. Destroying a frame destroys what it owns, by nested calls; at nesting depth 16 the next frame
// is deferred, and the outermost call on this stack destroys it. So a short chain is destroyed in the order of the language,
// and a long one in a loop, in bounded stack.
//
// Rejected: to destroy all frames so, also those of awaits, which form no chain: a fork on a pool took 48 instructions more.
#pragma once

#include <coroutine>
#include <weft/detail/core/root.hpp>

#include "core/worker.hpp"

namespace weft::detail {

/// On the stack of the outermost call.
class letting_go {
 public:
  letting_go(const letting_go&) = delete;

  /// Destroys the frame of a coroutine in a root that was never started, or has ended.
  [[gnu::always_inline]] static void destroy(worker& here, std::coroutine_handle<> frame) noexcept {
    // A fiber has one of its own, since a destructor may wait in it, and go on on another thread.
    letting_go*& outermost = here.fiber == nullptr ? here.lets_go : lets_go_in(*here.fiber);
    if (outermost != nullptr) [[unlikely]]
      return outermost->destroy_nested(frame);
    letting_go mine;
    outermost = &mine;
    frame.destroy();
    if (mine.first_) [[unlikely]]
      mine.destroy_deferred();
    outermost = nullptr;
  }

 private:
  letting_go() noexcept {}

  void destroy_nested(std::coroutine_handle<> frame) noexcept;
  void destroy_deferred() noexcept;

  unsigned depth_ = 0;
  std::coroutine_handle<> first_;  // of the deferred ones, linked by their continuations, which nobody reads any more
  std::coroutine_handle<> last_;
};

}  // namespace weft::detail
