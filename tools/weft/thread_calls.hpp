// The plain functions on a machine stack of a target, whoever runs on it: a thread, or a fiber that waits.
#pragma once

#include <optional>
#include <vector>

#include "memory.hpp"
#include "unwind.hpp"

namespace weft_tool {

struct native_call {
  address code;      // where it is: in the innermost, what it does next; in others, the call
  address function;  // where it begins, as .eh_frame says; 0: not known
  address stack;     // its stack pointer
};

/// The code in which the stack of each fiber begins.
struct code_range {
  address begin = 0, end = 0;
};

struct native_calls {
  std::vector<native_call> all;  // innermost first
  bool is_of_fiber = false;      // they end where a fiber's stack begins, and two of the library are outermost
};

/// The calls of whoever has these registers. Of a stack that leads in a circle, or nowhere, the first ones.
native_calls calls_from(const unwinder& by, registers from, const std::optional<code_range>& fibers_begin);

}  // namespace weft_tool
