// How many descriptors this process has, so that a test sees whether one is left.
#pragma once

#include <dirent.h>

#include <chrono>
#include <cstddef>
#include <thread>

namespace test {

inline std::size_t open_descriptors() {
  DIR* const all = ::opendir("/proc/self/fd");
  std::size_t count = 0;
  while (::readdir(all) != nullptr) ++count;
  ::closedir(all);
  return count;
}

/// Whether there are `count` of them now, or within a minute: a thread may be about to close one.
inline bool come_to_descriptors(std::size_t count) {
  for (int i = 0; i != 60'000; ++i) {
    if (open_descriptors() == count) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return open_descriptors() == count;
}

}  // namespace test
