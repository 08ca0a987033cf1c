// The limit: posix_spawn, and waitpid for whichever of them ends.
#include <spawn.h>
#include <sys/wait.h>

#include "orders.hpp"

int main(int count, char** words) {
  const std::size_t at_once = bench::read_server_options(count, words).connections;
  bench::serve_orders([at_once](std::uint64_t processes) {
    std::uint64_t begun = 0, ended = 0, right = 0;
    while (ended != processes) {
      while (begun != processes && begun - ended < at_once) {
        char name[] = "/bin/true";
        char* arguments[] = {name, nullptr};
        pid_t number;
        if (::posix_spawn(&number, name, nullptr, nullptr, arguments, environ) != 0) std::exit(1);
        ++begun;
      }
      int how = 0;
      if (::waitpid(-1, &how, 0) < 0) std::exit(1);
      ++ended;
      if (WIFEXITED(how) && WEXITSTATUS(how) == 0) ++right;
    }
    return right;
  });
}
