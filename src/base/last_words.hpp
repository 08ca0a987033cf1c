// What fail() says before its sentence. It stands in the lowest layer and knows no tasks, so whoever does leaves a
// function here.
#pragma once

#include <atomic>

namespace weft::detail {

/// Prints the async stack of the task that runs on this thread, if one does. Null until the first worker exists; a
/// pointer to code, so it carries no data and needs no order.
inline constinit std::atomic<void (*)() noexcept> print_running_stack{nullptr};

}  // namespace weft::detail
