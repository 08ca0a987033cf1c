// Prints where a sweep was when the program ends in it. Part of the test kit.
#pragma once

namespace weft::test::detail {

/// Has `where` printed to stderr if the program ends before the next call. It must live until that call. Null: nothing is
/// printed.
void announce(const char* where) noexcept;

}  // namespace weft::test::detail
