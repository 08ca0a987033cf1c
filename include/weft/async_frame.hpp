// A function of an async stack: an address, and its name. observe.hpp has the functions that give such stacks.
#pragma once

#include <compare>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>

namespace weft {

/// One function of an async stack. It holds an address only; each other member looks its answer up when it is called, in the
/// symbol table of the program or library, or of its separate debug file, and opens these files for that. Threads: any.
class async_frame {
 public:
  async_frame() = default;
  explicit async_frame(const void* code) noexcept : address_{code} {}  ///< an address in its code

  /// The function's resume address: the same for all calls of a coroutine function. Null: there is none.
  const void* address() const noexcept { return address_; }

  /// Its name and parameters, "parse(std::string_view)"; empty if the file has no symbols.
  std::string function() const;
  /// The path of the program or shared library that it is in; empty if that was unloaded.
  std::string module() const;
  /// The address within that file, as addr2line takes it.
  std::uintptr_t offset() const;

  friend auto operator<=>(const async_frame&, const async_frame&) = default;

 private:
  const void* address_ = nullptr;
};

/// Writes a line for each function: `#0  name`, or `#0  module+0xoffset`, which `./dev symbolize` turns into a name if it has
///                                       the symbols.
std::ostream& operator<<(std::ostream& out, std::span<const async_frame> stack);
std::string to_string(std::span<const async_frame> stack);

}  // namespace weft
