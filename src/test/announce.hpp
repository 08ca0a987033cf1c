// Where a sweep is, for a program that ends in it. Part of the test kit.
#pragma once

namespace weft::test::detail {

/// Says on stderr where a sweep is if the program ends now. `where` lives until the next call; null: nowhere.
void announce(const char* where) noexcept;

}  // namespace weft::test::detail
