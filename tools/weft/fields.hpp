// What the library says of itself in the notes of a module: see src/base/debug_note.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "memory.hpp"

namespace weft_tool {

class module;
class target;

class fields {
 public:
  /// Of a module; none where that has no notes. Throws problem where these are not as they should be.
  fields(const module& in, const memory& at);

  bool is_found() const noexcept { return !all_.empty(); }
  bool has(std::string_view name) const { return all_.contains(std::string{name}); }
  /// A number or an address. Throws problem where it is missing: the program has another version of the library.
  std::uint64_t operator[](std::string_view name) const;

  /// Where the library's workers lie, one a thread that has used it.
  std::vector<address> workers(const memory& at) const;

 private:
  std::unordered_map<std::string, std::uint64_t> all_;
  std::string module_;
};

/// Of all modules that have some. Throws problem where none has, or one has notes that are not as they should be.
std::vector<fields> fields_of(const target& in);

}  // namespace weft_tool
