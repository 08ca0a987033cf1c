#include <weft/nothrow.hpp>
#include <weft/task.hpp>

namespace weft::detail {

void fail_empty_task() noexcept {
  fail("an empty task was awaited: it was moved from, or awaited before (a task is awaited once)");
}

void hands_on::returned(frame* self) {
  auto& here = static_cast<hands_on&>(*static_cast<boundary*>(self));
  here.callee_returned_(here);
}

bool destroys_at_once(std::coroutine_handle<> continuation) noexcept {
  const auto& next = *static_cast<const frame*>(continuation.address());
  return next.destroy != boundary::arrive_stopped || next.resume == boundary::go_on ||
         next.resume == hands_on::returned;
}

void destroy_and_rethrow(std::coroutine_handle<> callee, std::exception_ptr& failure) {
  std::exception_ptr kept = std::move(failure);
  const promise_base& promise = promise_base::of(callee);
  promise.owner->top = promise.continuation;
  callee.destroy();
  rethrow(std::move(kept));
}

}  // namespace weft::detail
