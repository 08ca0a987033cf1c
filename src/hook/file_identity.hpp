// Which file a descriptor number names.
#pragma once

#include <sys/stat.h>

namespace weft::detail {

/// All events, timers and epoll sets share one inode; each socket has its own.
struct file_identity {
  dev_t device = 0;
  ino_t inode = 0;
  bool is_socket = false;
  explicit file_identity(int number) noexcept {
    struct stat about;
    if (::fstat(number, &about) != 0) return;  // the number is no descriptor, so it can't be watched either
    device = about.st_dev;
    inode = about.st_ino;
    is_socket = S_ISSOCK(about.st_mode);
  }
  bool operator==(const file_identity&) const = default;
};

}  // namespace weft::detail
