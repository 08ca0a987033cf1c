// The command `trace`: what Perfetto and Chrome show of what a flight recorder has, be it in a file of its own, in a process that
// runs, or in a core file.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

namespace weft_tool {

/// Writes the JSON to `out` or to the file that was asked for, or says in `err` why not. Gives the exit status: 0, 1 where it
/// could not be done, 2 for wrong arguments.
int trace(std::span<const std::string> arguments, std::ostream& out, std::ostream& err);

}  // namespace weft_tool
