// The command `trace` as a program of its own, weft-trace.
#include <iostream>
#include <string>
#include <vector>

#include "trace.hpp"

int main(int count, char** words) {
  const std::vector<std::string> arguments(words + 1, words + count);
  return weft_tool::trace(arguments, std::cout, std::cerr);
}
