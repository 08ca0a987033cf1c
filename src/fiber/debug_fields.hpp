// What readers of this process's memory are told of fibers; see base/debug_note.hpp. A fiber that waits has its registers in
// the context that it begins with, three of which are all that an unwinder needs.
#pragma once

#include <weft/detail/context/context.hpp>
#include <weft/fiber.hpp>

#include "base/debug_note.hpp"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // of classes with bases: supported by both compilers

namespace weft::detail {

struct debug_fiber {
  // From the fiber's frame, which the frames that wait for it name.
  static inline const debug_field fields[] = {
      {"fiber.go_on", reinterpret_cast<const void*>(fiber::go_on)},
      {"fiber.frame", offsetof(fiber, resume)},  // in the fiber; the next ones, too
      {"fiber.context", offsetof(fiber, here_)},
      {"fiber.stack", offsetof(fiber, on_)},
      {"fiber.waits_at", offsetof(fiber, waits_at_)},
      {"context.frame_pointer", offsetof(context, frame_pointer)},
      {"context.resume_at", offsetof(context, resume_at)},
      {"context.stack_pointer", offsetof(context, stack_pointer)},
      {"context.base", offsetof(context, base)},
      {"context.mark", offsetof(context, mark)},
      {"context.mark_waiting", coroutine_core::waiting},
      {"stack.bottom", offsetof(stack_header, bottom)},
  };
};

}  // namespace weft::detail

#pragma GCC diagnostic pop
