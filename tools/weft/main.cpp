// weft: looks into programs that use the library, from outside. Each subcommand is one line of the table below, and one
// source.
#include <exception>
#include <iostream>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "commands.hpp"
#include "memory.hpp"
#include "trace.hpp"

namespace weft_tool {
namespace {

int run_trace(std::span<const std::string> arguments) { return trace(arguments, std::cout, std::cerr); }

struct command {
  std::string_view name;
  int (*run)(std::span<const std::string> arguments);
  std::string_view usage;
};

constexpr command commands[] = {
    {"dump", run_dump,
     "dump PID|CORE [--text|--json|--dot] [--no-stacks]  all tasks, what each waits for, and deadlocks"},
    {"top", run_top, "top PID [--once]                                  workers and tasks, again each second"},
    {"trace", run_trace,
     "trace PID|CORE|FILE > trace.json                   what was recorded, for Perfetto and Chrome"},
};

void write_usage(std::ostream& out) {
  out << "weft looks into a program that uses weft, which need not have prepared for it.\n\n";
  for (const command& one : commands) out << "  weft " << one.usage << '\n';
  out << "\nA number is a process, a file that begins as an ELF file does is a core file, and any other file is a "
         "recording;\n"
         "weft trace --help has its options.\n"
         "\nIt takes what ptrace needs: the same user or root. A status of 2 says that it was asked wrongly, one of 1 "
         "that it\n"
         "could not look.\n";
}

}  // namespace
}  // namespace weft_tool

int main(int count, char** words) {
  using namespace weft_tool;
  const std::vector<std::string> all(words + 1, words + count);
  if (all.empty() || all[0] == "--help" || all[0] == "-h") {
    write_usage(all.empty() ? std::cerr : std::cout);
    return all.empty() ? 2 : 0;
  }
  try {
    for (const command& one : commands)
      if (one.name == all[0]) return one.run(std::span{all}.subspan(1));
    std::cerr << "weft: there is no command " << all[0] << "; see weft --help\n";
    return 2;
  } catch (const wrong_usage& what) {
    std::cerr << "weft " << all[0] << ": " << what.what() << "; see weft --help\n";
    return 2;
  } catch (const std::bad_alloc&) {
    std::cerr << "weft: out of memory\n";
  } catch (const std::exception& what) {
    std::cerr << "weft: " << what.what() << '\n';
  }
  return 1;
}
