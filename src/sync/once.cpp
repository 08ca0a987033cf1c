#include <weft/once.hpp>

#include <weft/detail/core/async_stack.hpp>

namespace weft {

// Ends the program if the caller is awaited by the coroutine that runs the function, and so would wait for itself. Called
// before a wait. The address in state_ is that of a frame which is alive: the turn of a coroutine writes `open` or `done`
// before its frame goes.
void once::expect_others(std::coroutine_handle<> caller) const noexcept {
  const std::uintptr_t at_it = state_.load(std::memory_order_relaxed);  // as declared
  if (at_it <= done) return;
  const detail::root& self = *detail::current_root();
  for (detail::stack_walk walk{self, caller}; walk.next() != nullptr && walk.is_in(self);)
    WEFT_EXPECTS(walk.last_frame() != at_it,
                 "the function of a once called that once, and would wait for itself: it has not been done yet");
}

}  // namespace weft
