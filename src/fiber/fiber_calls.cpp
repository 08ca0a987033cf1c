#include <unwind.h>
#include <weft/detail/core/async_stack.hpp>
#include <weft/fiber.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <mutex>

#include "core/worker.hpp"
#include "fiber/debug_fields.hpp"

namespace weft::detail {
namespace {

constexpr std::size_t room_for_unwinding = std::size_t{16} << 10;

// Two functions of the library are outermost on each fiber's stack: that of the context switch, and that of the fiber.
constexpr std::size_t outermost_calls = 2;

struct unwinding {
  call_list& into;
  const void* waits_at;  // where the stack of a fiber ended that waits; null: it runs
  bool inside;           // whether the walk has passed the caller
};

// Whether the function's own stack pointer was at `stack_pointer`, or above.
bool is_above(_Unwind_Context* at, const void* stack_pointer) noexcept {
  return _Unwind_GetCFA(at) >= reinterpret_cast<std::uintptr_t>(stack_pointer);
}

_Unwind_Reason_Code add_call(_Unwind_Context* at, void* argument) {
  auto& self = *static_cast<unwinding*>(argument);
  call_list& into = self.into;
  const auto* const code = reinterpret_cast<const char*>(_Unwind_GetIP(at));
  const code_range end = outermost_code();
  if (end.begin <= code && code <= end.end) {
    into.count -= std::min(into.count, outermost_calls);
    return _URC_NORMAL_STOP;
  }
  if (!self.inside && !(self.waits_at != nullptr ? is_above(at, self.waits_at) : code == into.after))
    return _URC_NO_REASON;
  self.inside = true;
  into.code[into.count++] = code - 1;  // inside the call; the return address is that of the instruction after it
  return into.count == std::size(into.code) ? _URC_NORMAL_STOP : _URC_NO_REASON;
}

[[gnu::noinline]] void unwind_here(call_list& into, const void* waits_at) noexcept {
  unwinding state{into, waits_at, waits_at == nullptr && into.after == nullptr};
  _Unwind_Backtrace(add_call, &state);
}

}  // namespace

extern "C" [[gnu::visibility("hidden"), gnu::used]] constinit const debug_table weft_debug_fiber{debug_fiber::fields};
WEFT_DEBUG_NOTE("weft_debug_fiber");
bool is_of_fiber(const frame& one) noexcept { return fiber::is_frame(one); }

void list_calls(const frame& one, call_list& into) noexcept {
  into.count = 0;
  fiber* const of = fiber::of(one);
  if (of == nullptr) return;
  if (this_worker().fiber == of) return unwind_here(into, nullptr);
  if (!into.ask) return;
  // Two that are asked about may have the same fiber wait for them.
  static constinit std::mutex one_asks_at_a_time;
  const std::lock_guard asking{one_asks_at_a_time};
  if (!of->waits() || of->room_below() < room_for_unwinding) return;
  const int kept = errno;
  auto list = [&into, at = of->waits_at()] { unwind_here(into, at); };
  of->ask([](void* all) noexcept { (*static_cast<decltype(list)*>(all))(); }, &list);
  errno = kept;
}

}  // namespace weft::detail
