// How a lower layer asks what a root is in that runs. Only a thread itself can say that, in a handler of a signal; so it is asked
// only while a watchdog is there, which has taken that signal over.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>

namespace weft::detail {

class root;

/// Gives how many it has put into `into`, innermost first; 0: no thread runs `of`, or it is not known what it is in. `of` may be
/// gone, and is only compared. Waits for the thread's answer, up to a tenth of a second; without locks.
using running_probe = std::size_t (*)(const root& of, std::span<const void*> into) noexcept;

/// Null: nobody is to be asked. Relaxed: what it leads to is code alone.
inline constinit std::atomic<running_probe> probe_of_running{nullptr};

/// Whether threads of this process are asked by that signal anyway: who wants to know what one is in may do so, too.
inline bool are_threads_asked() noexcept {
  return probe_of_running.load(std::memory_order_relaxed) != nullptr;  // as declared
}

}  // namespace weft::detail
