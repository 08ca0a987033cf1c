// The subcommands of weft. Each gets the words behind its name, and gives the status that the program ends with. Throws
// problem where it can't do its work, and wrong_usage where it was asked wrongly.
#pragma once

#include <span>
#include <stdexcept>
#include <string>

namespace weft_tool {

struct wrong_usage : std::runtime_error {
  using std::runtime_error::runtime_error;
};

int run_dump(std::span<const std::string> arguments);
int run_top(std::span<const std::string> arguments);

}  // namespace weft_tool
