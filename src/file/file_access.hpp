// Makes objects of class file, for the sources of this folder.
#pragma once

#include <string>
#include <weft/file.hpp>

#include "file/open_file.hpp"

namespace weft::detail {

struct file_access {
  /// Throws std::bad_alloc; then the number is closed.
  static file take_over(owned_number number, opened_as how);
  /// Opens `path` with the flags of open(2). `path` outlives the task, and contains no NUL.
  static task<file> open(int flags, unsigned permissions, const std::string& path);
};

}  // namespace weft::detail
