#include <weft/coroutine.hpp>

#include <algorithm>
#include <utility>

#include "core/worker.hpp"

#if WEFT_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

extern "C" {  // NOLINTNEXTLINE(readability-identifier-naming): the sanitizer's name
[[gnu::weak]] void* __tsan_create_fiber(unsigned flags);
}

namespace weft::detail {

stack_header& stack_for(const stack_options& options, const stack_user& user) {
  stack_pool& pool = options.pool != nullptr ? *options.pool : stack_pool::process_wide();
  stack_header& one = options.memory.empty() ? pool.take(std::max(options.size, least_stack_size), user)
                                             : stack_in(options.memory.data(), options.memory.size());
  one.user = user;
  one.name = options.name;
  return one;
}

coroutine_core::coroutine_core(stack_header& on, start_function start) noexcept : on_{on} {
  if (__tsan_create_fiber != nullptr) on.fiber = __tsan_create_fiber(0);
  ::new (&rest()) away_from_the_line{
      .start = start,
      .failure = nullptr,
      .notes = {.bottom = on.bottom, .size = on.usable(), .fiber = on.fiber},
  };
  prepare_context(here_, reinterpret_cast<std::byte*>(this), coroutine_core::start, this);
  here_.mark = waiting;
}

void* coroutine_core::go_in_throwing(std::exception_ptr failure) noexcept {
  rest().failure = std::move(failure);
  return go_in_as(throwing, nullptr);
}

void coroutine_core::ask(void (*answer)(void*) noexcept, void* argument) noexcept {
  question one{answer, argument};
  static_cast<void>(go_in_as(asked, &one));
}

// Where it waits, when it was resumed for something else than to go on.
void* coroutine_core::brought_in(void* passed) {
  if (here_.mark == crossed) {
    here_.mark = running;
    came_across(*static_cast<coroutine_core*>(passed));
    return nullptr;
  }
  while (here_.mark == asked) {
    static_cast<const question*>(passed)->call(static_cast<const question*>(passed)->argument);
    here_.mark = waiting;
    passed = exchange(here_, nullptr, rest().notes);
  }
  if (here_.mark == running) return passed;
  if (here_.mark == unwinding) throw stopped{};
  here_.mark = running;
  rethrow(std::move(rest().failure));
}

void coroutine_core::refuse_to_yield() {
  if (here_.mark == unwinding) throw stopped{};
  fail("yield was called by something else than the coroutine that it belongs to");
}

// The outermost function on a stack. It never returns: the last switch does not come back.
void coroutine_core::start(void* argument, void* passed) noexcept {
  auto& self = *static_cast<coroutine_core*>(argument);
  away_from_the_line& rest = self.rest();
  arrived_first(rest.notes);
  void* last = nullptr;
  try {
    last = rest.start(self, passed);
  } catch (const stopped&) {
    if (self.here_.mark != unwinding) rest.failure = std::current_exception();  // a failure of the function
  } catch (...) {                                                               // resume() rethrows it
    rest.failure = caught();
  }
  self.here_.mark = ended;
  static_cast<void>(jump_noted(self.here_, last, rest.notes, true));
  __builtin_unreachable();
}

void coroutine_core::destroy() noexcept {
  if (here_.mark == waiting) {
    // Not on a fiber's stack, which might wait in there and go on on another thread: the exception says it there.
    worker& here = this_worker();
    const bool is_off_fibers = here.fiber == nullptr;
    const auto outer = here.unwinds;
    if (is_off_fibers) here.unwinds = unwind_kind::stack;
    static_cast<void>(go_in_as(unwinding, nullptr));
    if (is_off_fibers) here.unwinds = outer;
    if (rest().failure) lose_error("coroutine", rest().failure);
  }
  WEFT_EXPECTS(here_.mark == ended, "a coroutine was destroyed while it runs: from inside, or on another thread");
  stack_header& on = on_;
  rest().~away_from_the_line();
  this->~coroutine_core();
  give_back_stack(on);
}

void fail_resume(const coroutine_core* what) noexcept {
  if (what == nullptr)
    fail("a coroutine was resumed that has ended, or is empty");
  else
    fail("a coroutine was resumed while it runs: from inside, or on another thread");
}

// ---- call_on_stack --------------------------------------------------------------------------------------------------

#if WEFT_ASAN
namespace {

// The sanitizer follows: on the way there, and on the way back, also of an exception.
struct noted_call {
  stack_header& on;
  void (*call)(void*);
  void* argument;
  void* frames = nullptr;
  const void* bottom = nullptr;
  std::size_t size = 0;

  static void there(void* self) {
    auto& mine = *static_cast<noted_call*>(self);
    __sanitizer_finish_switch_fiber(nullptr, &mine.bottom, &mine.size);
    struct back {
      noted_call& mine;
      ~back() { __sanitizer_start_switch_fiber(nullptr, mine.bottom, mine.size); }
    } const at_end{mine};
    mine.call(mine.argument);
  }
  ~noted_call() { __sanitizer_finish_switch_fiber(frames, nullptr, nullptr); }
};

}  // namespace
#endif

void call_on_stack(stack_header& on, void (*call)(void*), void* argument) {
  prepare_thread_for_stacks();
#if WEFT_ASAN
  noted_call noted{on, call, argument};
  __sanitizer_start_switch_fiber(&noted.frames, on.bottom, on.usable());
  call_on_top_of(on.top(), noted_call::there, &noted);
#else
  call_on_top_of(on.top(), call, argument);
#endif
}

}  // namespace weft::detail
