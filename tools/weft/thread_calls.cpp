#include "thread_calls.hpp"

#include <algorithm>

namespace weft_tool {

native_calls calls_from(const unwinder& by, registers from, const std::optional<code_range>& fibers_begin) {
  constexpr std::size_t most_calls = 512;
  native_calls found;
  for (bool exact = true; found.all.size() != most_calls && from.pc != 0; exact = false) {
    if (fibers_begin && fibers_begin->begin <= from.pc && from.pc <= fibers_begin->end) {
      found.is_of_fiber = true;
      break;
    }
    const address code = exact ? from.pc : from.pc - 1;
    found.all.push_back({code, by.function_at(code), stack_pointer_of(from)});
    const auto caller = by.step(from, exact);
    if (!caller) break;
    from = caller->regs;
  }
  return found;
}

}  // namespace weft_tool
