// The least tasks: one that gives, one that fails, one that waits, one that opens a gate for that.
#pragma once

#include <stdexcept>
#include <weft/task.hpp>

#include "weft_test.hpp"

namespace test {

inline weft::task<int> give(int value) { co_return value; }
inline weft::task<int> fail(const char* why) {
  throw std::runtime_error{why};
  co_return 0;
}
inline weft::task<int> after(gate& door, int value) {
  co_await door;
  co_return value;
}
inline weft::task<int> open(gate& door, int value) {
  door.open();
  co_return value;
}

}  // namespace test
