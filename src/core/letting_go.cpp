#include "core/letting_go.hpp"

namespace weft::detail {

void letting_go::destroy_nested(std::coroutine_handle<> frame) noexcept {
  if (depth_ == deepest_stop) {
    promise_base::of(frame).continuation = nullptr;
    (first_ ? promise_base::of(last_).continuation : first_) = frame;
    last_ = frame;
    return;
  }
  ++depth_;
  frame.destroy();
  --depth_;
}

void letting_go::destroy_deferred() noexcept {
  while (const std::coroutine_handle<> one = first_) {
    first_ = promise_base::of(one).continuation;
    one.destroy();
  }
}

void let_go(std::coroutine_handle<> frame) noexcept { letting_go::destroy(this_worker(), frame); }

void destroy_frame(std::coroutine_handle<> frame) noexcept {
  worker& here = this_worker();
  if (here.unwound == frame.address()) {
    here.unwound = nullptr;
    return;
  }
  WEFT_EXPECTS(promise_base::of(frame).owner == nullptr || frame.done(),
               "a task was destroyed while it waits: it must end first (request a stop, then await or join it)");
  if (root* self = here.current; self != nullptr) self->top = self->innermost();  // `top` may lie in this frame
  letting_go::destroy(here, frame);
}

}  // namespace weft::detail
