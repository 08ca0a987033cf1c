// A worker's count of operations on descriptors, for has_had_its_turn().
#pragma once

#include <cstdint>

namespace weft::detail {

struct io_slot {
  std::uint64_t turn = 0;   // in a pool: the number of the job that began the last operation
  unsigned operations = 0;  // begun in that job
};

}  // namespace weft::detail
