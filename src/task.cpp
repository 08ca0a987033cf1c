#include <weft/task.hpp>

namespace weft::detail {

void fail_empty_task() noexcept {
  fail("an empty task was awaited: it was moved from, or awaited before (a task is awaited once)");
}

void destroy_and_rethrow(std::coroutine_handle<> callee, std::exception_ptr& failure) {
  std::exception_ptr kept = std::move(failure);
  const promise_base& promise = promise_base::of(callee);
  promise.owner->top = promise.continuation;
  callee.destroy();
  rethrow(std::move(kept));
}

}  // namespace weft::detail
