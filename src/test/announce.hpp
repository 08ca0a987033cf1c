// Prints where a sweep is if the program ends in it. Part of the test kit.
#pragma once

namespace weft::test::detail {

/// From now on, prints `where` to stderr if the program ends. The text must live until the next call. Null: prints nothing.
void announce(const char* where) noexcept;

}  // namespace weft::test::detail
