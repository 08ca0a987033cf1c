// Names of functions, for async stacks. What a frame knows is the address of its resume function, a local symbol: dladdr
// reads only what is exported and can't name it. So the module's file is read, here, for its full symbol table; where
// that was stripped, the separate debug file that carries the same build id.
//
// A file is opened, mapped and searched when a name is asked for, and the last one stays mapped, so a stack inside one
// module opens one file. Nothing is allocated and no lock is taken but the loader's, since a process that is being aborted
// looks up names, too.
//
// Rejected: (a) dladdr with -rdynamic: exports every function, and resume functions are still local. (b) libdw or
// libbfd: dependencies of the core for one table; libbacktrace: no package of its own. They also read line tables,
// which release builds lack; `./dev symbolize` does that, offline. (c) A sorted index: a search of 100,000 symbols takes
// 0.1 ms, and whoever prints a stack has time.
#pragma once

#include <charconv>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string_view>

#include "trace/names.hpp"

namespace weft::detail {

/// A file, mapped to read; empty if it can't be.
class mapped_file {
 public:
  mapped_file() = default;
  mapped_file(const mapped_file&) = delete;
  ~mapped_file() { close(); }

  void open(const char* path) noexcept;
  void close() noexcept;
  std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

/// Whether the ELF file has all symbols, and not only those for the loader. The file is not trusted, here and below.
bool has_full_symbols(std::span<const std::byte> file) noexcept;
/// The function that has this place of the ELF file in it, mangled; empty: none that is known.
std::string_view symbol_at(std::span<const std::byte> file, std::uintptr_t offset) noexcept;

/// Where an address of code lies. The texts live until the symbolizer's next find().
struct code_place {
  std::string_view module;    // path of the file; empty: in none that is loaded
  std::uintptr_t offset = 0;  // the address as the file counts them, which is what addr2line takes
  std::string_view symbol;    // mangled; empty: no symbol covers it
};

class symbolizer {
 public:
  code_place find(const void* code) noexcept;

 private:
  void enter_module(const void* code) noexcept;
  void open_symbols() noexcept;
  bool covers(std::uintptr_t address) const noexcept { return begin_ <= address && address < end_; }

  std::uintptr_t base_ = 0, begin_ = 0, end_ = 0;  // of the module that was looked at last
  std::span<const std::byte> build_id_;            // in that module's memory
  char path_[PATH_MAX]{};
  mapped_file file_;
};

/// Puts the text for a resume function: its name, or `module+0xoffset` where there is none.
template <class Put>
void describe(const code_place& place, bool demangled, Put put) {
  if (!place.symbol.empty()) {
    const std::string_view function = function_of(place.symbol);
    const auto readable = demangled ? demangle(function) : nullptr;
    return put(readable ? std::string_view{readable.get()} : function);
  }
  char digits[16];
  const char* end = std::to_chars(digits, std::end(digits), place.offset, 16).ptr;
  put(place.module);
  put(place.module.empty() ? "0x" : "+0x");
  put(std::string_view{digits, end});
}

}  // namespace weft::detail
