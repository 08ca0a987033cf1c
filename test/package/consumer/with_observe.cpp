// Says nothing of an observer, and has one all the same: WEFT_OBSERVE asks for it, and weft::observe is linked.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <weft/task.hpp>

namespace {

weft::task<> work() { co_return; }

}  // namespace

int main() {
  char folder[] = "/tmp/weft-observe-XXXXXX";
  if (::mkdtemp(folder) == nullptr) return 1;
  const std::string socket = std::string{folder} + "/" + std::to_string(::getpid()) + ".sock";
  if (std::getenv("WEFT_OBSERVE") == nullptr) {  // it is read as the program begins
    ::setenv("WEFT_OBSERVE", ("socket,dir=" + std::string{folder}).c_str(), 1);
    ::setenv("FOLDER", folder, 1);
    ::execl("/proc/self/exe", "with_observe", static_cast<char*>(nullptr));
    return 1;
  }
  ::rmdir(folder);
  weft::sync_wait(work());
  const std::string mine = std::string{std::getenv("FOLDER")} + "/" + std::to_string(::getpid()) + ".sock";
  const bool is_there = ::access(mine.c_str(), F_OK) == 0;
  if (!is_there) std::puts("the process is not observed");
  return is_there ? 0 : 1;
}
