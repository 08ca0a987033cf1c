// A function of an async stack: an address, and its name. What gives such stacks is in observe.hpp.
#pragma once

#include <compare>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>

namespace weft {

/// One function of an async stack. An address; all else is looked up when it is asked for, in the symbol table of the
/// file or of its separate debug file, which is opened for that.
class async_frame {
 public:
  async_frame() = default;
  explicit async_frame(const void* code) noexcept : address_{code} {}  ///< an address in its code

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

/// A line a frame: `#0  name`, or `#0  module+0xoffset`, which `./dev symbolize` turns into a name where it has the
/// symbols.
std::ostream& operator<<(std::ostream& out, std::span<const async_frame> stack);
std::string to_string(std::span<const async_frame> stack);

}  // namespace weft
