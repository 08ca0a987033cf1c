// weft dump: all tasks of a process or a core file, once.
#include <iostream>

#include "commands.hpp"
#include "report.hpp"
#include "target.hpp"
#include "tasks.hpp"

namespace weft_tool {

int run_dump(std::span<const std::string> arguments) {
  std::string which;
  auto* write = write_text;
  look_options how;
  for (const std::string& one : arguments) {
    if (one == "--text")
      write = write_text;
    else if (one == "--json")
      write = write_json;
    else if (one == "--dot")
      write = write_dot;
    else if (one == "--no-stacks")
      how.stacks = false;
    else if (one.starts_with("--"))
      throw wrong_usage{"there is no option " + one};
    else if (which.empty())
      which = one;
    else
      throw wrong_usage{"one process or core file at a time"};
  }
  if (which.empty()) throw wrong_usage{"which process or core file?"};
  auto from = open_target(which);
  tasks_seen all = look_at(*from, how);
  look_again_if_doubtful(from, all, how);
  write(std::cout, all, *from);
  std::cout.flush();
  if (!std::cout) throw problem{"the output could not be written"};
  return 0;
}

}  // namespace weft_tool
