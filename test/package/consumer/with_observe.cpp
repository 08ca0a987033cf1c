// with_observe DIRECTORY: says nothing of an observer, and has one with a socket there all the same: WEFT_OBSERVE asks for it,
// and weft::observe is linked.
#include <unistd.h>

#include <cstdio>
#include <string>
#include <weft/task.hpp>

namespace {

weft::task<> work() { co_return; }

}  // namespace

int main(int, char** arguments) {
  weft::sync_wait(work());
  const std::string socket = std::string{arguments[1]} + "/" + std::to_string(::getpid()) + ".sock";
  const bool is_there = ::access(socket.c_str(), F_OK) == 0;
  if (!is_there) std::puts("the process is not observed");
  return is_there ? 0 : 1;
}
