// Prints where a sweep is if the program ends in it. Part of the test kit.
#pragma once

#include <string>

namespace weft::test::detail {

/// While it lives, prints `where` to stderr if the program ends. One at a time.
class announced {
 public:
  explicit announced(std::string where);
  announced(const announced&) = delete;
  ~announced();

 private:
  const std::string where_;
};

}  // namespace weft::test::detail
