// A directory for a test, in memory where the system has that. By means that are not weft's, and that allocate nothing by operator new
// but what a name takes: a sweep has allocations fail.
#pragma once

#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace test {

class temporary_tree {
 public:
  temporary_tree() {
    const char* const where = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    ::strcpy(path_, where);
    ::strcat(path_, "/weft-test-XXXXXX");
    if (::mkdtemp(path_) == nullptr) std::abort();
  }
  temporary_tree(const temporary_tree&) = delete;
  ~temporary_tree() {
    const auto remove = [](const char* one, const struct stat*, int, FTW*) { return ::remove(one); };
    ::nftw(path_, remove, 16, FTW_DEPTH | FTW_PHYS);
  }

  std::string path() const { return path_; }
  std::string at(std::string_view name) const { return path() + "/" + std::string{name}; }
  /// Makes a file, and the directories that it lies in.
  std::string file(std::string_view name, std::string_view text = "x") const {
    const std::size_t slash = name.rfind('/');
    if (slash != std::string_view::npos) directory(name.substr(0, slash));
    std::string where = at(name);
    const int number = ::open(where.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
    if (::write(number, text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::abort();
    ::close(number);
    return where;
  }
  std::string directory(std::string_view name) const {
    for (std::size_t end = name.find('/'); end != std::string_view::npos; end = name.find('/', end + 1))
      ::mkdir(at(name.substr(0, end)).c_str(), 0755);
    std::string where = at(name);
    ::mkdir(where.c_str(), 0755);
    return where;
  }

 private:
  char path_[64];
};

}  // namespace test
