// What fail() prints before its sentence. fail() is in the lowest layer, which knows no tasks, so a higher one sets a
// function here.
#pragma once

#include <atomic>

namespace weft::detail {

/// Prints the async stack of the task that runs on this thread, if one does. Null until the first worker exists.
/// Relaxed: it points to code, and so carries no data.
inline constinit std::atomic<void (*)() noexcept> print_running_stack{nullptr};

}  // namespace weft::detail
