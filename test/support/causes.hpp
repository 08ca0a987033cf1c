// What tests of the causes of a stop ask.
#pragma once

#include <gtest/gtest.h>

#include <source_location>
#include <string_view>
#include <vector>
#include <weft/hop.hpp>
#include <weft/stop.hpp>
#include <weft/task.hpp>

#include "weft_test.hpp"

namespace test {

using chain = std::vector<weft::stop_cause>;

inline unsigned line_here(std::source_location at = std::source_location::current()) { return at.line(); }

/// Whether the only cause is this one, of this line of the file that asks.
inline testing::AssertionResult is_only(const chain& why, std::string_view reason, unsigned line,
                                        std::source_location asks = std::source_location::current()) {
  if (why.size() != 1) return testing::AssertionFailure() << why.size() << " causes";
  const std::source_location& at = why[0].where;
  if (why[0].reason == reason && at.line() == line && std::string_view{at.file_name()} == asks.file_name())
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << why[0].reason << " (" << at.file_name() << ':' << at.line() << ')';
}

inline bool is_of_executor(const weft::stop_cause& one) {
  return std::string_view{one.reason}.starts_with("its executor ends") && one.where.line() == 0 &&
         one.thrown_in == nullptr;
}

inline weft::task<> waits_for_good() {
  gate never;
  co_await never;
}
inline weft::task<> yields() { co_await weft::yield(); }

}  // namespace test
