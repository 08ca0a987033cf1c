// Seeing inside: async stacks. A debugger and std::stacktrace show how a task was resumed; an async stack shows who
// awaits whom, down to the root, in release builds, too.
#pragma once

#include <compare>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace weft {

namespace detail { class root; }

/// One function of an async stack. An address; all else is looked up when it is asked for, in the symbol table of the
/// file or of its separate debug file, which is opened for that.
class async_frame {
 public:
  async_frame() = default;
  explicit async_frame(const void* code) noexcept : address_{code} {}

  /// Where the function is resumed: one address for each coroutine function.
  const void* address() const noexcept { return address_; }

  /// Its name and parameters, "parse(std::string_view)"; empty where the file has no symbols.
  std::string function() const;
  /// The program or shared library that it is in: a path; empty if that was unloaded.
  std::string module() const;
  /// The address as that file counts them, which is what addr2line takes.
  std::uintptr_t offset() const;

  friend auto operator<=>(const async_frame&, const async_frame&) = default;

 private:
  const void* address_ = nullptr;
};

/// Gives the functions that wait for each other, innermost first: the task that runs on this thread, what awaits it, and
/// so on to its root; from a child of when_all on to whoever awaits the when_all. Empty outside of tasks.
///
/// Usable  anywhere below a task's body, in a plain function, too.
/// Cost    two loads a frame, and the vector. No names are looked up.
std::vector<async_frame> async_stack();

/// Gives the stack of a root that waits, from outside, on any thread. Empty if it does not wait in weft now: it runs, is
/// queued to run, or waits for an awaitable of another library. Whoever would end its wait spins until this is done.
///
/// Lifetime  whoever calls holds what keeps the root alive.
std::vector<async_frame> async_stack(detail::root& suspended);

/// A line a frame: `#0  name`, or `#0  module+0xoffset`, which `./dev symbolize` turns into a name where it has the
/// symbols.
std::ostream& operator<<(std::ostream& out, const std::vector<async_frame>& stack);
std::string to_string(const std::vector<async_frame>& stack);

}  // namespace weft
