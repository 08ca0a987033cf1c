// How frames go that hold others: a row in which each holds the one before, as its argument, is as long as a program makes it.
// What a frame holds goes with it, by calls in each other, and sixteen deep the next one is put off until the outermost
// call on this stack comes to it. Few are destroyed in the order of the language, many in a loop.
//
// Rejected: to have all frames go so, those of awaits, too, which are in no row: a fork on a pool took 48 instructions more.
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
      mine.destroy_those_put_off();
    outermost = nullptr;
  }

 private:
  letting_go() noexcept {}

  void destroy_nested(std::coroutine_handle<> frame) noexcept;
  void destroy_those_put_off() noexcept;

  unsigned depth_ = 0;
  std::coroutine_handle<> first_;  // of those put off, linked by their continuations, which nobody asks for any more
  std::coroutine_handle<> last_;
};

}  // namespace weft::detail
