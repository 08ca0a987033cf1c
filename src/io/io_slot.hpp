// What operations on descriptors keep in each worker.
#pragma once

#include <cstdint>

namespace weft::detail {

struct io_slot {
  std::uint64_t turn = 0;   // of a pool's worker: the job that it is at
  unsigned operations = 0;  // that were begun in it
};

}  // namespace weft::detail
