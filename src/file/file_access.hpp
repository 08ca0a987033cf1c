// What sources of this folder may do with a file.
#pragma once

#include <string>
#include <weft/file.hpp>

#include "file/open_file.hpp"

namespace weft::detail {

struct file_access {
  /// Throws std::bad_alloc; then it is closed.
  static file take_over(owned_number number, bool appends, bool is_direct);
  /// With the system's flags. `path` stays, and has no zero in it.
  static task<file> open(int flags, unsigned permissions, const std::string& path);
};

}  // namespace weft::detail
