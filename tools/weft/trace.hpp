// The command `trace`: what Perfetto and Chrome show of a file of the flight recorder.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

namespace weft_tool {

/// Writes the JSON to `out`, or says in `err` why not. Gives the exit status: 0, 1 where the file is none, 2 for wrong arguments.
int trace(std::span<const std::string> arguments, std::ostream& out, std::ostream& err);

}  // namespace weft_tool
