#include <weft/task.hpp>

namespace weft::detail {

void fail_empty_task() noexcept {
  fail("an empty task was awaited: it was moved from, or awaited before (a task is awaited once)");
}

}  // namespace weft::detail
