// Writes a whole text to a descriptor.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string_view>

namespace weft::detail {

/// Blocks as the descriptor does. False: not all was written; errno says why.
inline bool write_all(int to, std::string_view text) noexcept {
  while (!text.empty()) {
    const auto size = ::write(to, text.data(), text.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(size));
  }
  return true;
}

}  // namespace weft::detail
