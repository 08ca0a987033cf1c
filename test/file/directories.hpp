// Directories of a test's own, which go with what is in them.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace test {

class own_directory {
 public:
  explicit own_directory(std::string_view inside = std::filesystem::temp_directory_path().native()) {
    path_ = std::string{inside} + "/weft-test-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
  }
  own_directory(const own_directory&) = delete;
  ~own_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string at(std::string_view name) const { return path_ + "/" + std::string{name}; }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator{path_}, {}));
  }

 private:
  std::string path_;
};

/// On a disk's file system, where the temporary directory is, and in memory.
inline std::vector<std::string> places_for_files() {
  std::vector<std::string> all{std::filesystem::temp_directory_path().native()};
  if (::access("/dev/shm", W_OK) == 0) all.emplace_back("/dev/shm");
  return all;
}

inline std::string text_in(const std::string& path) {
  std::ifstream from{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{from}, {}};
}
inline void put(const std::string& path, std::string_view text) {
  std::ofstream{path, std::ios::binary | std::ios::trunc} << text;
}

/// Bytes that differ from place to place.
inline std::string pattern(std::size_t size, unsigned seed = 0) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i != size; ++i) text[i] = static_cast<char>((i * 31 >> 4) + i + seed);
  return text;
}

}  // namespace test
