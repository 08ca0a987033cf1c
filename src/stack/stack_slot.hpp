// What each worker keeps for its stacks: the alternate signal stack on which an overflow is reported.
#pragma once

#include <cstddef>

namespace weft::detail {

struct stack_slot {
  void* signal_stack = nullptr;  // kept for the worker's next thread
  std::size_t signal_stack_bytes = 0;
  bool signal_stack_is_in_use = false;  // by the worker's present thread

  /// Called when the worker's thread ends; its next thread gets the memory. Defined in stack_overflow.cpp, as end() is.
  void leave() noexcept;
  /// Called when the library is unloaded.
  void end() noexcept;
};

}  // namespace weft::detail
